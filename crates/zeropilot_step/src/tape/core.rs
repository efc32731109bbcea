//! The tape's state: storages with reference counts, the graph, and the checkpointed layers.

use super::graph::{Formula, Gradient, Input, NO_FRAME, Node, Span, Target};
use super::nested::Tile;
use super::trace::{Category, Event, Storage, StorageId, Trace};
use super::work::{Arithmetic, Work};
use crate::model::{ModuleId, ParameterId};

/// What happens when an operation saves a tensor for backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// It is kept.
    Keep,
    /// Inside a checkpointed layer: it is only counted.
    Count { frame: u32 },
    /// Re-running a checkpointed layer: it is kept for the node that counted it.
    Restore { frame: u32 },
    /// The re-run has restored everything; the rest of the program does nothing.
    Stopped,
}

/// An argument a checkpointed layer holds until its last saved slot is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    pub(crate) storage: StorageId,
    pub(crate) elements: u64,
    pub(crate) element_bytes: u8,
    pub(crate) target: Target,
}

/// A checkpointed layer.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) key: u32,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) counted: u32,
    pub(crate) open: u32,
    pub(crate) is_restored: bool,
    /// Slots whose node died before the re-run: nobody will ask for them.
    pub(crate) abandoned: Vec<u32>,
    pub(crate) restored: Vec<StorageId>,
}

/// A part of the program that runs again, with a graph, in backward.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) key: u32,
    /// Elements of each argument, and bytes of an element.
    pub(crate) sizes: Vec<(u64, u8)>,
    /// Elements of each tile of the first argument; none where it runs at once.
    pub(crate) tiles: Vec<u64>,
    /// The first argument waits on the host.
    pub(crate) on_host: bool,
}

/// The accumulator of a leaf.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leaf {
    pub(crate) pending: u32,
    pub(crate) gradient: Option<Gradient>,
}

/// What a slot of the saved arena holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Saved {
    Storage(StorageId),
    Counted(u32),
}

/// Leaves from here on are activations made to need a gradient, not parameters.
pub(crate) const FIRST_ACTIVATION_LEAF: u32 = 1 << 30;

/// One operation to record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) formula: Formula,
    pub(crate) inputs: &'a [Input],
    pub(crate) saved_inputs: &'a [StorageId],
    /// Custom functions save their inputs after they have made their outputs.
    pub(crate) saves_late: bool,
    pub(crate) category: Category,
    pub(crate) arithmetic: Arithmetic,
}

impl Operation<'_> {
    /// Bytes of its operands.
    pub(crate) fn read(&self) -> u64 {
        self.inputs.iter().map(|input| input.elements * u64::from(input.element_bytes)).sum()
    }
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) trace: Trace,
    /// What kernels have done since it was last told.
    untold: Work,
    references: Vec<u32>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) saved: Vec<Saved>,
    pub(crate) outputs: Vec<Option<Gradient>>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) parts: Vec<Part>,
    /// Parts that are being run again.
    pub(crate) again: u32,
    /// The tile that backward goes through.
    pub(crate) tile: Option<Tile>,
    pub(crate) packing: Packing,
    pub(crate) no_grad: u32,
    pub(crate) adapters_off: u32,
    pub(crate) muted: u32,
    pub(crate) activation_leaves: u32,
    /// The activations that are leaves.
    pub(crate) leaf_storages: Vec<StorageId>,
    /// Per module: wrapped arguments whose backward has not come yet.
    pub(crate) arguments_open: Vec<u32>,
    /// How many nodes there were at each border between layers.
    pub(crate) layer_borders: Vec<u32>,
    /// Bytes of the scratch tensors of kernels, one list for each kind of call.
    pub(crate) scratch: Vec<Vec<u64>>,
    /// Tensors that stay alive though no variable holds them.
    pub(crate) kept: Vec<StorageId>,
    /// The models have returned: what is computed now is the loss.
    pub(crate) is_in_loss: bool,
    graveyard: Vec<u32>,
}

// Arena positions are u32 on purpose: a trace that large would not fit in memory anyway.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn position(length: usize) -> u32 {
    length as u32
}

impl Core {
    pub(crate) fn new() -> Self {
        Self {
            trace: Trace::default(),
            untold: Work::default(),
            references: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            saved: Vec::new(),
            outputs: Vec::new(),
            frames: Vec::new(),
            parts: Vec::new(),
            again: 0,
            tile: None,
            packing: Packing::Keep,
            no_grad: 0,
            adapters_off: 0,
            muted: 0,
            activation_leaves: 0,
            leaf_storages: Vec::new(),
            arguments_open: Vec::new(),
            layer_borders: Vec::new(),
            scratch: Vec::new(),
            kept: Vec::new(),
            is_in_loss: false,
            graveyard: Vec::new(),
        }
    }

    /// The place of a list of scratch tensors; calls that are alike share one.
    pub(crate) fn place_of_scratch(&mut self, bytes: Vec<u64>) -> u32 {
        let known = self.scratch.iter().position(|other| *other == bytes);
        position(known.unwrap_or_else(|| {
            self.scratch.push(bytes);
            self.scratch.len() - 1
        }))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.packing == Packing::Stopped
    }

    /// Whether a checkpointed layer is being run again.
    pub(crate) fn is_rerunning(&self) -> bool {
        matches!(self.packing, Packing::Restore { .. } | Packing::Stopped)
    }

    /// Kernels have run.
    pub(crate) fn work(&mut self, work: Work) {
        if self.is_stopped() {
            return;
        }
        self.untold += work;
        if self.is_rerunning() || self.again > 0 {
            self.untold.repeated += work.operations();
        }
    }

    /// Something happens that others hear of.
    pub(crate) fn tell(&mut self, event: Event) {
        self.settle_work();
        self.trace.events.push(event);
    }

    /// Tells what kernels have done.
    pub(crate) fn settle_work(&mut self) {
        if !self.untold.is_nothing() {
            self.trace.events.push(Event::Work(position(self.trace.works.len())));
            self.trace.works.push(std::mem::take(&mut self.untold));
        }
    }

    pub(crate) fn allocate(&mut self, bytes: u64, category: Category) -> StorageId {
        if self.is_stopped() || bytes == 0 {
            return StorageId::OUTSIDE;
        }
        let category = match category {
            Category::Activation if self.is_in_loss => Category::Loss,
            other => other,
        };
        let id = StorageId::new(self.references.len());
        self.references.push(1);
        self.trace.storages.push(Storage { bytes, category });
        self.trace.events.push(Event::Allocate(id));
        id
    }

    pub(crate) fn retain(&mut self, id: StorageId) {
        if id.is_counted() {
            self.references[id.index()] += 1;
        }
    }

    pub(crate) fn release(&mut self, id: StorageId) {
        if !id.is_counted() {
            return;
        }
        let references = &mut self.references[id.index()];
        *references -= 1;
        if *references == 0 {
            self.trace.events.push(Event::Free(id));
        }
    }

    pub(crate) fn is_shared(&self, id: StorageId) -> bool {
        id.is_counted() && self.references[id.index()] > 1
    }

    /// Give a gradient away: the listener owns the storage from now on.
    pub(crate) fn hand_over(&mut self, parameter: ParameterId, id: StorageId) {
        self.tell(Event::Gradient(parameter, id));
    }

    fn pack(&mut self, storage: StorageId, formula: Formula) {
        match self.packing {
            Packing::Keep => {
                self.retain(storage);
                if let Some(parameter) = storage.as_weight().filter(|_| formula.keeps_views()) {
                    self.tell(Event::Hold(parameter));
                }
                self.saved.push(Saved::Storage(storage));
            }
            Packing::Count { frame } => {
                let frame = &mut self.frames[frame as usize];
                self.saved.push(Saved::Counted(frame.counted));
                frame.counted += 1;
                frame.open += 1;
            }
            Packing::Restore { frame } => {
                let state = &self.frames[frame as usize];
                let is_abandoned = state.abandoned.contains(&position(state.restored.len()));
                let storage = if is_abandoned { StorageId::OUTSIDE } else { storage };
                self.retain(storage);
                if let Some(parameter) = storage.as_weight() {
                    self.tell(Event::Hold(parameter));
                }
                let frame = &mut self.frames[frame as usize];
                frame.restored.push(storage);
                if position(frame.restored.len()) == frame.counted {
                    self.packing = Packing::Stopped;
                }
            }
            Packing::Stopped => {}
        }
    }

    /// Start an operation: decide whether it makes a node, and save its inputs.
    pub(crate) fn begin(&mut self, operation: &Operation<'_>) -> Begun {
        let needs_grad =
            self.no_grad == 0 && operation.inputs.iter().any(|input| input.target.wants());
        let saved_from = position(self.saved.len());
        if needs_grad && !operation.saves_late {
            self.pack_all(operation.saved_inputs, operation.formula);
        }
        Begun { needs_grad, saved_from }
    }

    fn pack_all(&mut self, storages: &[StorageId], formula: Formula) {
        for &storage in storages {
            self.pack(storage, formula);
        }
    }

    /// Finish an operation whose outputs have been made: save them and make the node.
    pub(crate) fn finish(
        &mut self,
        begun: Begun,
        operation: &Operation<'_>,
        saved_outputs: &[StorageId],
        outputs: usize,
    ) -> Target {
        if self.is_stopped() {
            return Target::Ghost;
        }
        if !begun.needs_grad {
            return Target::None;
        }
        if operation.saves_late {
            self.pack_all(operation.saved_inputs, operation.formula);
        }
        self.pack_all(saved_outputs, operation.formula);
        let frame = match self.packing {
            Packing::Restore { .. } | Packing::Stopped => return Target::Ghost,
            Packing::Count { frame } => frame,
            Packing::Keep => NO_FRAME,
        };
        let inputs = self.push_inputs(operation.inputs);
        let node = Node {
            formula: operation.formula,
            inputs,
            saved: Span {
                start: begun.saved_from,
                len: position(self.saved.len()) - begun.saved_from,
            },
            outputs: Span { start: position(self.outputs.len()), len: position(outputs) },
            frame,
            arithmetic: operation.arithmetic,
            references: 0,
            pending: 0,
            mark: None,
        };
        self.outputs.resize(self.outputs.len() + outputs, None);
        self.nodes.push(node);
        Target::Node { node: position(self.nodes.len() - 1), output: 0 }
    }

    fn push_inputs(&mut self, inputs: &[Input]) -> Span {
        let span = Span { start: position(self.inputs.len()), len: position(inputs.len()) };
        for input in inputs {
            self.refer(input.target);
            self.inputs.push(*input);
        }
        span
    }

    /// A handle or a node now refers to `target`.
    pub(crate) fn refer(&mut self, target: Target) {
        if let Target::Node { node, .. } = target
            && let Some(node) = self.nodes.get_mut(node as usize)
        {
            node.references += 1;
        }
    }

    /// A handle or a node no longer refers to `target`; a node nobody refers to dies with what it
    /// saved, and so on down the graph.
    /// One more view of a storage, the output of that number of a node; where its gradient goes.
    pub(crate) fn refer_to_view(&mut self, storage: StorageId, of: Target, output: u8) -> Target {
        let target = match of {
            Target::Node { node, .. } => Target::Node { node, output },
            other => other,
        };
        self.retain(storage);
        self.refer(target);
        target
    }

    pub(crate) fn unrefer(&mut self, target: Target) {
        let Target::Node { node, .. } = target else { return };
        self.graveyard.push(node);
        while let Some(index) = self.graveyard.pop() {
            let Some(node) = self.nodes.get_mut(index as usize) else { continue };
            node.references -= 1;
            if node.references > 0 {
                continue;
            }
            let inputs = node.inputs;
            self.release_saved(index);
            for position in inputs.range() {
                if let Target::Node { node, .. } = self.inputs[position].target {
                    self.graveyard.push(node);
                }
            }
        }
    }

    /// Drop what a node has saved.
    pub(crate) fn release_saved(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let span = std::mem::take(&mut node.saved);
        let (frame, formula) = (node.frame, node.formula);
        for position in span.range() {
            match self.saved[position] {
                Saved::Storage(storage) => match storage.as_weight() {
                    Some(parameter) if formula.keeps_views() => {
                        self.tell(Event::LetGo(parameter));
                    }
                    _ => self.release(storage),
                },
                Saved::Counted(slot) => self.close_slot(frame, slot),
            }
        }
    }

    /// Bytes of what a node has saved, weights apart.
    pub(crate) fn saved_bytes(&self, index: u32) -> u64 {
        let node = self.nodes[index as usize];
        let storages = node.saved.range().filter_map(|position| match self.saved[position] {
            Saved::Storage(storage) => Some(storage),
            Saved::Counted(slot) => {
                self.frames[node.frame as usize].restored.get(slot as usize).copied()
            }
        });
        storages
            .filter(|storage| storage.is_counted())
            .map(|storage| self.trace.storages[storage.index()].bytes)
            .sum()
    }

    /// In a checkpointed layer a node holds what it saved only while its formula runs.
    pub(crate) fn release_restored(&mut self, index: u32) {
        let node = self.nodes[index as usize];
        if node.frame == NO_FRAME {
            return;
        }
        for position in node.saved.range() {
            let Saved::Counted(slot) = self.saved[position] else { continue };
            let restored = &mut self.frames[node.frame as usize].restored;
            if let Some(storage) = restored.get_mut(slot as usize) {
                let storage = std::mem::replace(storage, StorageId::OUTSIDE);
                self.drop_restored(storage);
            }
        }
    }

    fn drop_restored(&mut self, storage: StorageId) {
        if let Some(parameter) = storage.as_weight() {
            self.tell(Event::LetGo(parameter));
        }
        self.release(storage);
    }

    fn close_slot(&mut self, frame: u32, slot: u32) {
        let state = &mut self.frames[frame as usize];
        state.open -= 1;
        let restored = state.restored.get(slot as usize).copied();
        if !state.is_restored {
            state.abandoned.push(slot);
        }
        let is_last = state.open == 0;
        if let Some(storage) = restored {
            self.drop_restored(storage);
        }
        if is_last && self.packing != (Packing::Count { frame }) {
            self.release_arguments(frame);
        }
    }

    /// Drop the arguments a checkpointed layer holds.
    pub(crate) fn release_arguments(&mut self, frame: u32) {
        for argument in std::mem::take(&mut self.frames[frame as usize].arguments) {
            self.release(argument.storage);
            self.unrefer(argument.target);
        }
    }

    /// Whether running `node` needs a re-run first; the frame to re-run.
    pub(crate) fn frame_to_restore(&self, node: u32) -> Option<u32> {
        let node = &self.nodes[node as usize];
        (node.saved.len > 0 && node.frame != NO_FRAME)
            .then_some(node.frame)
            .filter(|frame| !self.frames[*frame as usize].is_restored)
    }

    /// A layer begins, or the last one has ended.
    pub(crate) fn border_layer(&mut self) {
        self.layer_borders.push(position(self.nodes.len()));
        self.tell(Event::LayerBorder);
    }

    /// Backward is about to run `next`, or has run everything: the borders of layers it has gone past.
    pub(crate) fn pass_layer_borders(&mut self, next: Option<u32>) {
        let is_passed = |&border: &u32| next.is_none_or(|node| node < border);
        while self.layer_borders.last().is_some_and(is_passed) {
            self.layer_borders.pop();
            self.tell(Event::LayerBorder);
        }
    }

    pub(crate) fn record_module(
        &mut self,
        module: ModuleId,
        pass: super::trace::Pass,
        edge: super::trace::Edge,
    ) {
        if self.muted == 0 && !self.is_stopped() {
            self.tell(Event::Module(module, pass, edge));
        }
    }
}

/// What [`Core::begin`] decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub(crate) needs_grad: bool,
    saved_from: u32,
}
