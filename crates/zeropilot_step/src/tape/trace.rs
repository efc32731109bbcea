//! What a tape writes down: the ordered events of one pass, and who listens to them.

use super::work::Work;
use crate::model::{ModuleId, ParameterId};
use crate::task::Publication;
use crate::zero::{Collective, HostCopy};

/// A storage of the trace. Ids are never reused, so a storage is also the name of its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(u32);

/// Ids from here on are weights.
const FIRST_WEIGHT: u32 = 1 << 31;

impl StorageId {
    /// A tensor that exists outside the step (parameters, the batch) and is not counted here.
    pub const OUTSIDE: Self = Self(u32::MAX);

    pub(crate) fn new(index: usize) -> Self {
        // A trace of four billion storages would not fit in memory long before the index overflows.
        #[allow(clippy::cast_possible_truncation)]
        Self(index as u32)
    }

    /// The place of this storage in [`Trace::storages`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The weight of a parameter: counted by whoever gathers it, not by the tape.
    pub(crate) fn weight(parameter: ParameterId) -> Self {
        // Parameters are few; the index leaves the marking bit alone.
        #[allow(clippy::cast_possible_truncation)]
        Self(FIRST_WEIGHT + parameter.index() as u32)
    }

    pub(crate) fn as_weight(self) -> Option<ParameterId> {
        (self.0 >= FIRST_WEIGHT && self != Self::OUTSIDE)
            .then(|| ParameterId::new((self.0 - FIRST_WEIGHT) as usize))
    }

    pub(crate) fn is_counted(self) -> bool {
        self.0 < FIRST_WEIGHT
    }
}

/// What a storage is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Made by the forward pass, or by its recomputation.
    Activation,
    /// Integer helpers: positions, expert indices, labels.
    Index,
    /// Logits, log-probabilities and the loss.
    Loss,
    /// Gradient of an activation, or a temporary of a backward formula.
    ActivationGradient,
    /// Gradient of a parameter.
    ParameterGradient,
}

/// Size and purpose of one storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Size in bytes.
    pub bytes: u64,
    /// Purpose.
    pub category: Category,
}

/// Which pass a module event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Forward, including the forward re-run of a checkpointed layer.
    Forward,
    /// Backward.
    Backward,
}

/// Whether a module event comes before or after the module's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Before: the parameters are needed from here on.
    Before,
    /// After: the parameters are no longer needed by this call.
    After,
}

/// Places a program points out, so that a reader can cut the trace into phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// The logits are about to be computed.
    Head,
    /// The model has returned; its output is still held.
    ForwardDone,
    /// The model's body is called instead of the model.
    Bypass,
    /// A forward pass of the model begins that is not the first of its micro step.
    Begin,
    /// The model begins to generate.
    Generate,
    /// It has generated.
    Generated,
    /// Another engine is given the weights, and generates.
    Publish(Publication),
    /// What precedes happens once in a step, before its first micro step.
    Rolled,
    /// The model runs without gradients, before it runs to be trained.
    Score,
    /// The value model runs by itself without gradients, before it runs to be trained.
    Value,
    /// The model runs as its own reference, until the loss is computed.
    Reference,
    /// Another model runs: the one of this number.
    Visit(u8),
    /// The model and the others have returned; the loss is computed from what they returned.
    Loss,
    /// The caller has dropped the output; only what is saved for backward is alive.
    Saved,
    /// The backward formula of the output projection has run.
    HeadDone,
    /// Backward is complete.
    BackwardDone,
}

/// One event of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A storage comes to life.
    Allocate(StorageId),
    /// A storage dies.
    Free(StorageId),
    /// The gradient of a parameter is complete. From here on the storage belongs to the listener:
    /// no [`Event::Free`] follows for it.
    Gradient(ParameterId, StorageId),
    /// A part of the gradient of a parameter; more will come. The storage belongs to the listener from here on.
    PartOfGradient(ParameterId, StorageId),
    /// The re-run of a checkpointed part has saved a weight: its present storage stays alive even if
    /// the parameter is released. Outside of a re-run a saved weight is the parameter itself.
    Hold(ParameterId),
    /// Backward has used a weight saved by a re-run.
    LetGo(ParameterId),
    /// A module begins or ends (only recorded when the tape has module events switched on).
    Module(ModuleId, Pass, Edge),
    /// Ranks that share a sequence communicate, and the program waits for the result.
    Exchange(Collective),
    /// A checkpoint goes to the host or comes back, and the program waits for it.
    Offload(HostCopy),
    /// A place in the program.
    Mark(Mark),
    /// A border between two layers of a stack, or of the stack.
    LayerBorder,
    /// What kernels have done since the last event that is neither an allocation nor a release; the place in
    /// [`Trace::works`].
    Work(u32),
}

/// The ordered events of one pass, with the sizes of the storages they name.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// All events in order.
    pub events: Vec<Event>,
    /// Sizes, by [`StorageId::index`].
    pub storages: Vec<Storage>,
    /// What kernels do, by stretch.
    pub works: Vec<Work>,
}

/// Someone who follows a trace: ZeRO's hooks, a memory ledger, a clock.
///
/// All methods have an empty body, so that a listener names only what it wants to hear.
pub trait Listener {
    /// A storage comes to life.
    fn allocate(&mut self, id: StorageId, storage: Storage) {
        let _ = (id, storage);
    }
    /// A storage dies.
    fn free(&mut self, id: StorageId, storage: Storage) {
        let _ = (id, storage);
    }
    /// The gradient of a parameter is complete; its storage now belongs to the listener.
    fn gradient(&mut self, parameter: ParameterId, id: StorageId, storage: Storage) {
        let _ = (parameter, id, storage);
    }
    /// A part of the gradient of a parameter; its storage now belongs to the listener.
    fn part_of_gradient(&mut self, parameter: ParameterId, id: StorageId, storage: Storage) {
        let _ = (parameter, id, storage);
    }
    /// The present storage of a weight is kept for backward.
    fn hold(&mut self, parameter: ParameterId) {
        let _ = parameter;
    }
    /// A kept weight has been used.
    fn let_go(&mut self, parameter: ParameterId) {
        let _ = parameter;
    }
    /// A module begins or ends.
    fn module(&mut self, module: ModuleId, pass: Pass, edge: Edge) {
        let _ = (module, pass, edge);
    }
    /// Ranks that share a sequence communicate.
    fn exchange(&mut self, call: Collective) {
        let _ = call;
    }
    /// A checkpoint goes to the host or comes back.
    fn offload(&mut self, copy: HostCopy) {
        let _ = copy;
    }
    /// A place in the program.
    fn mark(&mut self, mark: Mark) {
        let _ = mark;
    }
    /// A border between two layers, or of the stack they are in: in forward one before every layer and one after
    /// the last, in backward as many, where the nodes of another layer begin to run.
    fn layer_border(&mut self) {}
    /// What kernels have done since the last event that is neither an allocation nor a release.
    fn work(&mut self, work: Work) {
        let _ = work;
    }
}

impl Trace {
    /// Tell `listener` every event in order.
    pub fn replay(&self, listener: &mut impl Listener) {
        for &event in &self.events {
            match event {
                Event::Allocate(id) => listener.allocate(id, self.storages[id.index()]),
                Event::Free(id) => listener.free(id, self.storages[id.index()]),
                Event::Gradient(parameter, id) => {
                    listener.gradient(parameter, id, self.storages[id.index()]);
                }
                Event::PartOfGradient(parameter, id) => {
                    listener.part_of_gradient(parameter, id, self.storages[id.index()]);
                }
                Event::Hold(parameter) => listener.hold(parameter),
                Event::LetGo(parameter) => listener.let_go(parameter),
                Event::Module(module, pass, edge) => listener.module(module, pass, edge),
                Event::Exchange(call) => listener.exchange(call),
                Event::Offload(copy) => listener.offload(copy),
                Event::Mark(mark) => listener.mark(mark),
                Event::LayerBorder => listener.layer_border(),
                Event::Work(place) => listener.work(self.works[place as usize]),
            }
        }
    }

    /// The modules that begin, in order: what ZeRO-3 records as its trace.
    pub fn module_starts(&self) -> impl Iterator<Item = (ModuleId, Pass)> + '_ {
        self.events.iter().filter_map(|event| match event {
            Event::Module(module, pass, Edge::Before) => Some((*module, *pass)),
            _ => None,
        })
    }
}
