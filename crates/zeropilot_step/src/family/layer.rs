//! The layers programs are made of: modules with their parameters, adapters included.

use super::split_vocabulary;
use crate::model::{Module, Parameter};
use crate::primitive::LinearKind;
use crate::shape::Switches;
use crate::tape::{Tape, Tensor};

/// A linear layer, perhaps with an adapter around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) module: Module,
    pub(crate) weight: Parameter,
    pub(crate) bias: Option<Parameter>,
    pub(crate) width_in: u64,
    pub(crate) kind: LinearKind,
    pub(crate) wrapper: Wrapper,
    pub(crate) split: Split,
}

/// How ranks share a linear layer; each has the weights of its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// Every rank has all of it.
    Whole,
    /// Every rank makes some of the outputs.
    Outputs {
        ranks: u64,
        /// Whether all ranks get all of them.
        is_joined: bool,
    },
    /// Every rank has some of the inputs, and the sum is made by all.
    Inputs { ranks: u64 },
}

impl Split {
    /// Every rank makes some of the outputs and keeps them.
    pub(crate) fn outputs(ranks: u64) -> Self {
        if ranks > 1 { Self::Outputs { ranks, is_joined: false } } else { Self::Whole }
    }

    /// Every rank has some of the inputs.
    pub(crate) fn inputs(ranks: u64) -> Self {
        if ranks > 1 { Self::Inputs { ranks } } else { Self::Whole }
    }
}

/// What the adapter library has put around a module.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrapper {
    None,
    /// A low-rank adapter beside the base layer.
    Adapter(Adapter),
    /// A trained copy that replaces the module.
    TrainedCopy(Module),
}

/// The parts of a low-rank adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adapter {
    pub(crate) base: Module,
    pub(crate) dropout: Module,
    pub(crate) down: (Module, Parameter),
    pub(crate) up: (Module, Parameter),
    pub(crate) rank: u64,
    pub(crate) has_dropout: bool,
}

/// A wrapper whose adapter is added to a tensor of the module inside before that module runs.
#[derive(Debug)]
pub(crate) struct FoldingWrapper {
    pub(crate) module: Module,
    /// The name of the tensor.
    pub(crate) parameter: String,
    pub(crate) down: Parameter,
    pub(crate) up: Parameter,
}

impl Linear {
    /// Call the layer, with its module events.
    pub(crate) fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| match self.wrapper {
            Wrapper::None => self.apply(&x),
            Wrapper::Adapter(adapter) if tape.has_adapters_off() => {
                tape.call(adapter.base, &x, |x| self.apply(&x))
            }
            Wrapper::Adapter(adapter) => self.apply_adapted(&x, adapter),
            Wrapper::TrainedCopy(copy) => tape.call(copy, &x, |x| self.apply(&x)),
        })
    }

    /// The same, shared by ranks.
    pub(crate) fn shared(self, split: Split) -> Self {
        Self { split, ..self }
    }

    /// The operation alone.
    pub(crate) fn apply<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let product = |x: &Tensor<'t>| x.linear(self.weight, None, self.kind, self.width_in);
        let with_bias = |out: Tensor<'t>| match self.bias {
            Some(bias) => out.add_parameter(bias),
            None => out,
        };
        match self.split {
            Split::Whole => x.linear(self.weight, self.bias, self.kind, self.width_in),
            Split::Outputs { ranks, is_joined } => {
                let out = with_bias(product(&x.shared_input(ranks)));
                if is_joined { out.join_over(ranks) } else { out }
            }
            Split::Inputs { ranks } => with_bias(product(x).sum_over(ranks)),
        }
    }

    fn apply_adapted<'t>(&self, x: &Tensor<'t>, adapter: Adapter) -> Tensor<'t> {
        let mut result = x.tape().call(adapter.base, x, |x| self.apply(&x));
        let model_bytes = result.element_bytes();
        let x = x.cast(adapter.down.1.element_bytes);
        result = {
            let scaled = {
                let out = adapter.call(&x, self.width_in);
                out.scale()
            };
            result.add(&scaled)
        };
        result.cast(model_bytes)
    }
}

impl Adapter {
    fn call<'t>(&self, x: &Tensor<'t>, width_in: u64) -> Tensor<'t> {
        let tape = x.tape();
        let low = {
            let kept = tape.call(self.dropout, x, |x| x.dropout(self.has_dropout));
            linear(tape, self.down, &kept, width_in)
        };
        linear(tape, self.up, &low, self.rank)
    }
}

fn linear<'t>(
    tape: &'t Tape,
    (module, weight): (Module, Parameter),
    x: &Tensor<'t>,
    width_in: u64,
) -> Tensor<'t> {
    tape.call(module, x, |x| x.linear(weight, None, LinearKind::Linear, width_in))
}

/// An embedding table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedding {
    pub(crate) module: Module,
    pub(crate) weight: Parameter,
    pub(crate) width: u64,
    pub(crate) wrapper: Wrapper,
    /// Ranks of which each has the rows of some words.
    pub(crate) ranks: u64,
}

impl Embedding {
    /// Look up `ids`.
    pub(crate) fn call<'t>(&self, ids: &Tensor<'t>) -> Tensor<'t> {
        ids.tape().call_by_keyword(self.module, || self.run(ids))
    }

    /// Look up the input of a model, whose embedding may be made to need a gradient: a hook of the
    /// module itself, so its backward is announced.
    pub(crate) fn call_on_input<'t>(
        &self,
        ids: &Tensor<'t>,
        switches: Switches,
        is_scaled: bool,
    ) -> Tensor<'t> {
        let tape = ids.tape();
        tape.call_by_keyword(self.module, || {
            let mut rows = self.run(ids);
            if is_scaled {
                rows = rows.scale();
            }
            if switches.input_gradients { tape.require_grad(rows) } else { rows }
        })
    }

    fn run<'t>(&self, ids: &Tensor<'t>) -> Tensor<'t> {
        match self.wrapper {
            Wrapper::None => self.apply(ids),
            Wrapper::Adapter(adapter) if ids.tape().has_adapters_off() => {
                ids.tape().call_by_keyword(adapter.base, || self.apply(ids))
            }
            Wrapper::Adapter(adapter) => self.apply_adapted(ids, adapter),
            Wrapper::TrainedCopy(copy) => ids.tape().call_by_keyword(copy, || self.apply(ids)),
        }
    }

    pub(crate) fn apply<'t>(&self, ids: &Tensor<'t>) -> Tensor<'t> {
        if self.ranks > 1 {
            return split_vocabulary::look_up(ids, self.weight, self.width, self.ranks);
        }
        ids.look_up(self.weight, self.width)
    }

    fn apply_adapted<'t>(&self, ids: &Tensor<'t>, adapter: Adapter) -> Tensor<'t> {
        let tape = ids.tape();
        let mut result = tape.call_by_keyword(adapter.base, || self.apply(ids));
        let model_bytes = result.element_bytes();
        let low = ids.look_up_transposed(adapter.down.1, adapter.rank);
        let scaled = {
            let up = low.linear(adapter.up.1, None, LinearKind::Product, adapter.rank);
            up.scale()
        };
        result = result.add(&scaled);
        result.cast(model_bytes)
    }
}

/// A convolution whose windows do not overlap, or whose overlap no size depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convolution {
    pub(crate) module: Module,
    pub(crate) weight: Parameter,
    pub(crate) bias: Option<Parameter>,
    pub(crate) channels: u64,
}

impl Convolution {
    /// Call the convolution on `x`; it has `places` places.
    pub(crate) fn call<'t>(&self, x: &Tensor<'t>, places: u64) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| self.apply(&x, places))
    }

    /// The operation alone.
    pub(crate) fn apply<'t>(&self, x: &Tensor<'t>, places: u64) -> Tensor<'t> {
        x.convolution(self.weight, self.bias, places * self.channels, self.channels)
    }
}

/// Which norm a family uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormKind {
    Rms,
    Gemma,
    T5,
    Layer,
}

/// A norm over rows of `width`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) module: Module,
    pub(crate) weight: Parameter,
    pub(crate) bias: Option<Parameter>,
    pub(crate) width: u64,
    pub(crate) kind: NormKind,
    /// Ranks of which each has only some of the rows.
    pub(crate) ranks: u64,
}

impl Norm {
    /// Call the norm, with its module events.
    pub(crate) fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| match (self.kind, self.bias) {
            (NormKind::Layer, Some(bias)) => x.layer_norm(self.weight, bias, self.width),
            (NormKind::Gemma, _) => x.gemma_norm(self.weight, self.width),
            (NormKind::T5, _) => x.t5_norm(self.weight, self.width),
            (NormKind::Rms | NormKind::Layer, _) => x.rms_norm(self.weight, self.width, self.ranks),
        })
    }
}
