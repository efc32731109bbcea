//! An autograd tape that only knows storages.
//!
//! A program runs on a [`Tape`] as it would run eagerly: every operation allocates its outputs, saves
//! what its gradient will need, and [`Tape::backward`] runs the gradients in the order of the real
//! engine. What comes out is a [`Trace`].
//!
//! Three rules decide everything. *Forward*: an operation packs the inputs it saves, allocates its
//! outputs, packs the outputs it saves; without a wanted gradient it makes no node and saves nothing.
//! *Variables*: a tensor lives as long as a handle, a saved slot or a gradient refers to its storage.
//! *Backward*: of the ready nodes the newest runs first, a leaf accumulator before all others.

mod backward;
mod checkpoint;
mod core;
mod formula;
mod graph;
mod module_event;
mod nested;
mod tensor;
mod trace;
mod work;

use serde::Deserialize;
use std::cell::RefCell;

use crate::zero::Collective;

use self::core::{Core, FIRST_ACTIVATION_LEAF, Operation};
pub(crate) use self::graph::{Formula, Input, Target};

pub use checkpoint::{NoRerun, Rerun};
pub use tensor::Tensor;
pub use trace::{Category, Edge, Event, Listener, Mark, Pass, Storage, StorageId, Trace};
pub use work::Work;

pub(crate) use self::core::Operation as TapeOperation;
pub(crate) use self::work::Arithmetic;

/// Whose accounting a trace follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accounting {
    /// A real run: a scatter writes into its zeros, composed attention adds its mask in place, and two
    /// gradients of one tensor are added in place when the first is nobody else's and no view.
    #[default]
    Real,
    /// A run under the recorder that measured the test vectors. A dispatch mode switches these
    /// in-place forms off, so the vectors contain the second copy.
    Recorded,
}

/// Whose kernels compute, where it changes what they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernels {
    /// PyTorch on CPUs, as measured.
    #[default]
    Cpu,
    /// PyTorch on CUDA, from its code: dropout keeps a byte per element, and no attention that PyTorch chooses keeps
    /// its scores.
    Cuda,
}

/// Whether a program runs under `torch.autocast` with 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autocast {
    /// It does not: everything has the format of the weights.
    #[default]
    Off,
    /// It does, and the outputs are copied to 32 bits, as accelerate's `convert_outputs_to_fp32` does.
    OutputsInFp32,
}

/// Which kernels norms, rotary positions and gated activations run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKernels {
    /// As the model writes them.
    #[default]
    Model,
    /// Liger's, from its code: an RMS norm saves its input and a factor for each row and writes its gradient over the
    /// incoming one, a gated activation writes gradients over what it saved, rotary positions are turned in place. Not
    /// run on a GPU by us.
    Liger,
}

/// Which form attention takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttentionForm {
    /// The one the model takes if nothing is asked for: PyTorch's choice, or for Gemma 2 its own.
    #[default]
    AsModel,
    /// Written out, with the scores of all heads kept.
    Eager,
    /// A fused kernel that keeps no scores, whatever the model.
    Flash,
    /// FlashAttention 3, which differs in the scratch memory of backward.
    Flash3,
}

impl AttentionForm {
    /// Whether a fused kernel was asked for.
    #[must_use]
    pub fn is_fused(self) -> bool {
        matches!(self, Self::Flash | Self::Flash3)
    }
}

/// How a tape runs its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whose accounting to follow.
    pub accounting: Accounting,
    /// Whose kernels compute.
    pub kernels: Kernels,
    /// Which form attention takes.
    pub attention: AttentionForm,
    /// Whether the program runs under `torch.autocast`, and what becomes of its outputs.
    pub autocast: Autocast,
    /// Which kernels norms, rotary positions and gated activations run in.
    pub layer_kernels: LayerKernels,
    /// Record module events and wrap module arguments and outputs (ZeRO stage 3).
    pub module_events: bool,
    /// Replace linear operations by the ZeRO-3 linear (`memory_efficient_linear`).
    pub zero3_linear: bool,
}

/// The tape. See the [module](self).
#[derive(Debug)]
pub struct Tape {
    core: RefCell<Core>,
    options: Options,
}

impl Tape {
    /// An empty tape.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { core: RefCell::new(Core::new()), options }
    }

    /// How this tape runs.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Everything recorded so far.
    #[must_use]
    pub fn into_trace(self) -> Trace {
        let mut core = self.core.into_inner();
        core.settle_work();
        core.trace
    }

    /// A tensor from outside the step, such as the token ids of the batch: not counted.
    #[must_use]
    pub fn outside(&self, elements: u64, element_bytes: u8) -> Tensor<'_> {
        Tensor {
            tape: self,
            storage: StorageId::OUTSIDE,
            target: Target::None,
            elements,
            element_bytes,
        }
    }

    /// A new tensor without history.
    #[must_use]
    pub fn fresh(&self, elements: u64, element_bytes: u8, category: Category) -> Tensor<'_> {
        let bytes = elements * u64::from(element_bytes);
        let mut core = self.core.borrow_mut();
        core.work(Work::moving(bytes));
        let storage = core.allocate(bytes, category);
        drop(core);
        Tensor { tape: self, storage, target: Target::None, elements, element_bytes }
    }

    /// Run `body` without building a graph.
    pub fn no_grad<R>(&self, body: impl FnOnce() -> R) -> R {
        self.core.borrow_mut().no_grad += 1;
        let result = body();
        self.core.borrow_mut().no_grad -= 1;
        result
    }

    /// Run `body` with adapters switched off (`disable_adapter` of PEFT).
    pub fn without_adapters<R>(&self, body: impl FnOnce() -> R) -> R {
        self.core.borrow_mut().adapters_off += 1;
        let result = body();
        self.core.borrow_mut().adapters_off -= 1;
        result
    }

    /// Whether adapters are switched off.
    pub(crate) fn has_adapters_off(&self) -> bool {
        self.core.borrow().adapters_off > 0
    }

    /// Point out a place of the program.
    pub fn mark(&self, mark: Mark) {
        let mut core = self.core.borrow_mut();
        match mark {
            Mark::Loss => core.is_in_loss = true,
            Mark::Saved => core.is_in_loss = false,
            _ => {}
        }
        if !core.is_stopped() {
            core.tell(Event::Mark(mark));
        }
    }

    /// Ranks that share a sequence communicate.
    pub(crate) fn exchange(&self, call: Collective) {
        let mut core = self.core.borrow_mut();
        if !core.is_stopped() {
            core.tell(Event::Exchange(call));
        }
    }

    /// Point out that a layer begins, or that the last one has ended.
    pub fn layer_border(&self) {
        self.core.borrow_mut().border_layer();
    }

    /// Point out the moment when the node that produced `tensor` has run in backward.
    pub fn mark_backward(&self, tensor: &Tensor<'_>, mark: Mark) {
        if let Target::Node { node, .. } = tensor.target
            && let Some(node) = self.core.borrow_mut().nodes.get_mut(node as usize)
        {
            node.mark = Some(mark);
        }
    }

    /// Make a tensor without history need a gradient (`enable_input_require_grads`).
    #[must_use]
    pub fn require_grad<'t>(&'t self, tensor: Tensor<'t>) -> Tensor<'t> {
        if tensor.needs_grad() {
            return tensor;
        }
        let mut tensor = tensor;
        let mut core = self.core.borrow_mut();
        if core.no_grad > 0 {
            // No graph begins at it, so that nothing refers to it.
            drop(core);
            return tensor;
        }
        if core.is_rerunning() {
            tensor.target = Target::Ghost;
            drop(core);
            return tensor;
        }
        tensor.target = Target::Leaf(FIRST_ACTIVATION_LEAF + core.activation_leaves);
        core.activation_leaves += 1;
        // Its accumulator refers to the tensor until the graph goes.
        core.retain(tensor.storage);
        core.leaf_storages.push(tensor.storage);
        drop(core);
        tensor
    }

    /// Remembers the scratch tensors of a kernel, for [`Formula::FreshAll`].
    pub(crate) fn keep_scratch(&self, bytes: Vec<u64>) -> u32 {
        self.core.borrow_mut().place_of_scratch(bytes)
    }

    /// Whether products run in 16 bits whatever their operands are.
    pub(crate) fn casts_products(&self) -> bool {
        self.options.autocast != Autocast::Off
    }

    /// The outputs of a model as its caller gets them.
    #[must_use]
    pub(crate) fn returned<'t>(&'t self, outputs: Vec<Tensor<'t>>) -> Vec<Tensor<'t>> {
        match self.options.autocast {
            Autocast::OutputsInFp32 => outputs.iter().map(|output| output.cast_loss(4)).collect(),
            Autocast::Off => outputs,
        }
    }

    /// Record an operation that makes one tensor, plus `extra` storages it only keeps for backward.
    pub(crate) fn record<'t>(
        &'t self,
        operation: &Operation<'_>,
        elements: u64,
        element_bytes: u8,
        saves_output: bool,
        extra: &[u64],
    ) -> Tensor<'t> {
        const MOST_EXTRAS: usize = 2;
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        let bytes = elements * u64::from(element_bytes);
        core.work(Work::of(operation.arithmetic, elements, bytes + operation.read()));
        let storage = core.allocate(bytes, operation.category);
        let mut kept = [storage; MOST_EXTRAS + 1];
        for (slot, &bytes) in kept[1..].iter_mut().zip(extra) {
            *slot = core.allocate(bytes, operation.category);
        }
        let first = usize::from(!saves_output);
        let target = core.finish(begun, operation, &kept[first..=extra.len()], 1);
        core.refer(target);
        for &storage in &kept[1..=extra.len()] {
            core.release(storage);
        }
        drop(core);
        Tensor { tape: self, storage, target, elements, element_bytes }
    }

    /// Make the result of untracked work the output of `operation`, as a custom function does.
    pub(crate) fn adopt<'t>(
        &'t self,
        mut made: Tensor<'t>,
        operation: &Operation<'_>,
    ) -> Tensor<'t> {
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        made.target = core.finish(begun, operation, &[], 1);
        core.refer(made.target);
        drop(core);
        made
    }

    /// A node without a tensor: a view of a parameter, which only has its place in backward.
    pub(crate) fn node_for(&self, operation: &Operation<'_>) -> Target {
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        core.finish(begun, operation, &[], 1)
    }

    /// Record an operation whose output shares the storage of `tensor`.
    pub(crate) fn view_of<'t>(
        &'t self,
        tensor: &Tensor<'t>,
        elements: u64,
        operation: &Operation<'_>,
    ) -> Tensor<'t> {
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        let target = core.finish(begun, operation, &[], 1);
        core.retain(tensor.storage);
        core.refer(target);
        drop(core);
        Tensor {
            tape: self,
            storage: tensor.storage,
            target,
            elements,
            element_bytes: tensor.element_bytes,
        }
    }

    /// As [`Tape::views_of`], for `count` outputs of `elements` each; at most 255.
    pub(crate) fn many_views_of<'t>(
        &'t self,
        tensor: &Tensor<'t>,
        elements: u64,
        count: u8,
        operation: &Operation<'_>,
    ) -> Vec<Tensor<'t>> {
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        let target = core.finish(begun, operation, &[], usize::from(count));
        let views = (0..count).map(|output| core.refer_to_view(tensor.storage, target, output));
        let views: Vec<Target> = views.collect();
        drop(core);
        let view = |target: Target| Tensor {
            tape: self,
            storage: tensor.storage,
            target,
            elements,
            element_bytes: tensor.element_bytes,
        };
        views.into_iter().map(view).collect()
    }

    /// Keeps a tensor alive until [`Tape::drop_kept`].
    pub(crate) fn keep(&self, tensor: &Tensor<'_>) {
        let mut core = self.core.borrow_mut();
        if tensor.storage.is_counted() {
            core.retain(tensor.storage);
            core.kept.push(tensor.storage);
        }
    }

    /// Bytes of what [`Tape::keep`] keeps.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let core = self.core.borrow();
        core.kept.iter().map(|storage| core.trace.storages[storage.index()].bytes).sum()
    }

    /// How many tensors [`Tape::keep`] keeps.
    pub(crate) fn kept(&self) -> usize {
        self.core.borrow().kept.len()
    }

    /// Lets go of some of them, counted from the first.
    pub(crate) fn drop_kept_in(&self, places: std::ops::Range<usize>) {
        let mut core = self.core.borrow_mut();
        let dropped: Vec<StorageId> = core.kept.drain(places).collect();
        dropped.into_iter().for_each(|storage| core.release(storage));
    }

    /// Lets go of what [`Tape::keep`] has kept.
    pub(crate) fn drop_kept(&self) {
        let mut core = self.core.borrow_mut();
        for storage in std::mem::take(&mut core.kept) {
            core.release(storage);
        }
    }

    /// Record an operation with several outputs that all share the storage of `tensor`.
    pub(crate) fn views_of<'t, const N: usize>(
        &'t self,
        tensor: &Tensor<'t>,
        elements: [u64; N],
        operation: &Operation<'_>,
    ) -> [Tensor<'t>; N] {
        let mut core = self.core.borrow_mut();
        let begun = core.begin(operation);
        let target = core.finish(begun, operation, &[], N);
        let mut output = 0;
        let views = elements.map(|elements| {
            let view = core.refer_to_view(tensor.storage, target, output);
            output += 1;
            (view, elements)
        });
        drop(core);
        views.map(|(target, elements)| Tensor {
            tape: self,
            storage: tensor.storage,
            target,
            elements,
            element_bytes: tensor.element_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Label, Model, Parameter};
    use crate::primitive::LinearKind;

    /// Sizes as they come and go: positive when allocated, negative when freed.
    fn changes(trace: &Trace) -> Vec<i64> {
        let size = |id: StorageId| i64::try_from(trace.storages[id.index()].bytes).expect("small");
        let change = |event: &Event| match event {
            Event::Allocate(id) => Some(size(*id)),
            Event::Free(id) => Some(-size(*id)),
            _ => None,
        };
        trace.events.iter().filter_map(change).collect()
    }

    fn weight(elements: u64, is_trainable: bool) -> Parameter {
        let mut model = Model::default();
        let top = model.add_module(None, Label::Top, &std::collections::BTreeSet::new()).id;
        model.add_parameter(top, "weight", elements, 2, is_trainable)
    }

    #[test]
    fn a_variable_lives_until_it_is_rebound() {
        let tape = Tape::new(Options::default());
        {
            let mut x = tape.fresh(10, 4, Category::Activation);
            x = x.scale();
            assert_eq!(x.elements(), 10);
        }
        assert_eq!(changes(&tape.into_trace()), [40, 40, -40, -40]);
    }

    #[test]
    fn a_frozen_weight_saves_no_input() {
        for (is_trainable, is_kept) in [(true, true), (false, false)] {
            let tape = Tape::new(Options::default());
            let y = {
                let x = tape.fresh(6, 2, Category::Activation);
                x.linear(weight(12, is_trainable), None, LinearKind::Linear, 3)
            };
            let freed = tape.core.borrow().trace.events.len() == 3;
            assert_eq!(freed, !is_kept);
            assert_eq!((y.elements(), y.needs_grad()), (8, is_trainable));
            drop(y);
        }
    }

    #[test]
    fn a_saved_view_keeps_the_whole_storage() {
        let tape = Tape::new(Options::default());
        let y = {
            let whole = tape.require_grad(tape.fresh(8, 4, Category::Activation)).scale();
            let half = whole.slice(4);
            half.activate()
        };
        // The input of the scaling and its whole output are alive, though only half of it is saved.
        let live: i64 = changes(&tape.core.borrow().trace).iter().sum();
        assert_eq!(live, 32 + 32 + 16);
        drop(y);
    }

    /// `x * 1` used twice, then summed: its gradient receives two contributions.
    fn diamond(accounting: Accounting) -> u64 {
        let tape = Tape::new(Options { accounting, ..Options::default() });
        {
            let x = tape.require_grad(tape.fresh(100, 4, Category::Activation)).scale();
            let (left, right) = (x.activate(), x.activate());
            let loss = left.add(&right).sum(100);
            tape.backward(&loss, &NoRerun);
        }
        let trace = tape.into_trace();
        trace.storages.iter().filter(|s| s.category == Category::ActivationGradient).count() as u64
    }

    #[test]
    fn a_real_run_adds_gradients_in_place() {
        assert_eq!(diamond(Accounting::Recorded), diamond(Accounting::Real) + 1);
    }

    struct Twice<'p>(&'p dyn Fn(&Tensor<'_>));

    impl Rerun for Twice<'_> {
        fn rerun<'t>(&self, _key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
            (self.0)(&arguments[0]);
            None
        }
    }

    #[test]
    fn a_rerun_stops_at_the_last_saved_tensor() {
        let weight = weight(4, true);
        let tape = Tape::new(Options::default());
        {
            let x = tape.fresh(20, 2, Category::Activation);
            let loss = tape.checkpoint(0, vec![x], |arguments| {
                arguments[0].activate().linear(weight, None, LinearKind::Linear, 2)
            });
            let again = |x: &Tensor<'_>| {
                let _ = x.activate().linear(weight, None, LinearKind::Linear, 2);
            };
            tape.mark(Mark::Saved);
            tape.backward(&loss, &Twice(&again));
        }
        let trace = tape.into_trace();
        let saved = trace.events.iter().position(|event| *event == Event::Mark(Mark::Saved));
        let backward = &trace.events[saved.expect("the mark")..];
        let forward_made = |event: &&Event| match event {
            Event::Allocate(id) => trace.storages[id.index()].category == Category::Activation,
            _ => false,
        };
        // Only the activation is made again; the product is not, because nothing after it is saved.
        assert_eq!(backward.iter().filter(forward_made).count(), 1);
    }
}
