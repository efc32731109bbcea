//! Module calls: events around a module's work, and alias nodes that carry them into backward.

use super::Tape;
use super::core::Operation;
use super::graph::Formula;
use super::tensor::Tensor;
use super::trace::{Category, Edge, Pass};
use super::work::Arithmetic;
use crate::model::Module;

impl Tape {
    /// Call `module` on one positional argument.
    pub fn call<'t>(
        &'t self,
        module: Module,
        argument: &Tensor<'t>,
        body: impl FnOnce(Tensor<'t>) -> Tensor<'t>,
    ) -> Tensor<'t> {
        let argument = self.enter(module, argument);
        let output = body(argument);
        self.leave(module, output)
    }

    /// Call `module` with keyword arguments only: there is nothing to wrap on the way in.
    pub fn call_by_keyword<'t>(
        &'t self,
        module: Module,
        body: impl FnOnce() -> Tensor<'t>,
    ) -> Tensor<'t> {
        self.enter_silently(module);
        let output = body();
        self.leave(module, output)
    }

    /// Begin `module` with one positional argument; the argument as the module sees it.
    pub fn enter<'t>(&'t self, module: Module, argument: &Tensor<'t>) -> Tensor<'t> {
        self.enter_silently(module);
        self.wrap_argument(module, argument)
    }

    /// Begin `module` without a positional tensor argument.
    pub fn enter_silently(&self, module: Module) {
        if !self.options.module_events {
            return;
        }
        let mut core = self.core.borrow_mut();
        core.record_module(module.id, Pass::Forward, Edge::Before);
        let index = module.id.index();
        if core.arguments_open.len() <= index {
            core.arguments_open.resize(index + 1, 0);
        }
        if core.muted == 0 && !core.is_stopped() {
            core.arguments_open[index] = 0;
        }
        core.muted += u32::from(module.is_leaf || core.muted > 0);
    }

    /// Wrap one more positional argument of `module`, so that its backward tells when it is done.
    pub fn wrap_argument<'t>(&'t self, module: Module, argument: &Tensor<'t>) -> Tensor<'t> {
        if !self.options.module_events || !self.is_audible(module) {
            return argument.clone();
        }
        let mut core = self.core.borrow_mut();
        if argument.needs_grad() && core.no_grad == 0 && !core.is_stopped() {
            core.arguments_open[module.id.index()] += 1;
        }
        drop(core);
        self.alias(argument, Formula::ModuleEnd(module.id))
    }

    /// End `module` with one output; the output as the caller sees it.
    pub fn leave<'t>(&'t self, module: Module, output: Tensor<'t>) -> Tensor<'t> {
        self.leave_silently(module);
        self.wrap_output(module, &output)
    }

    /// End `module`; outputs are wrapped one by one with [`Tape::wrap_output`].
    pub fn leave_silently(&self, module: Module) {
        if !self.options.module_events {
            return;
        }
        let mut core = self.core.borrow_mut();
        core.muted = core.muted.saturating_sub(1);
        core.record_module(module.id, Pass::Forward, Edge::After);
    }

    /// Wrap an output of `module`, so that its gradient announces the module's backward.
    pub fn wrap_output<'t>(&'t self, module: Module, output: &Tensor<'t>) -> Tensor<'t> {
        if !self.options.module_events || self.core.borrow().muted > 0 {
            return output.clone();
        }
        self.alias(output, Formula::ModuleStart(module.id))
    }

    /// Whether the module just entered is not inside a leaf block.
    fn is_audible(&self, module: Module) -> bool {
        self.core.borrow().muted <= u32::from(module.is_leaf)
    }

    fn alias<'t>(&'t self, tensor: &Tensor<'t>, formula: Formula) -> Tensor<'t> {
        let operation = Operation {
            formula,
            inputs: &[tensor.input()],
            saved_inputs: &[],
            saves_late: false,
            category: Category::Activation,
            arithmetic: Arithmetic::None,
        };
        self.view_of(tensor, tensor.elements, &operation)
    }
}
