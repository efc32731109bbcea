//! The backward engine: the newest ready node first, leaf accumulators before everything else.

use std::collections::{BinaryHeap, VecDeque};

use super::core::{Core, FIRST_ACTIVATION_LEAF, Leaf};
use super::formula::Evaluation;
use super::graph::{Formula, Gradient, Node, Target};
use super::trace::{Category, Event, Mark, StorageId};
use super::work::{Arithmetic, Work};
use super::{Accounting, Rerun, Tape, Tensor};

/// What is ready to run.
#[derive(Debug, Default)]
pub(super) struct Queue {
    nodes: BinaryHeap<u32>,
    leaves: VecDeque<u32>,
    parameter_leaves: Vec<Leaf>,
    activation_leaves: Vec<Leaf>,
}

impl Queue {
    pub(super) fn push(&mut self, node: u32) {
        self.nodes.push(node);
    }

    pub(super) fn leaf(&mut self, index: u32) -> &mut Leaf {
        let (table, index) = if index >= FIRST_ACTIVATION_LEAF {
            (&mut self.activation_leaves, index - FIRST_ACTIVATION_LEAF)
        } else {
            (&mut self.parameter_leaves, index)
        };
        let index = index as usize;
        if table.len() <= index {
            table.resize(index + 1, Leaf::default());
        }
        &mut table[index]
    }
}

impl Tape {
    /// Run backward from `loss`, re-running checkpointed parts of `program` where needed.
    pub fn backward(&self, loss: &Tensor<'_>, program: &dyn Rerun) {
        let Target::Node { node: root, .. } = loss.target else {
            return self.core.borrow_mut().release_leaves();
        };
        let mut queue = Queue::default();
        let seed = {
            let mut core = self.core.borrow_mut();
            core.count_users(0, root, &mut queue);
            let bytes = loss.elements * u64::from(loss.element_bytes);
            let storage = core.allocate(bytes, Category::ActivationGradient);
            let position = core.nodes[root as usize].outputs.start as usize;
            core.outputs[position] = Some(Gradient {
                storage,
                elements: loss.elements,
                element_bytes: loss.element_bytes,
                is_view: false,
            });
            queue.nodes.push(root);
            // The caller of backward holds the first gradient until it returns.
            core.retain(storage);
            storage
        };
        self.drain(&mut queue, program, true);
        let mut core = self.core.borrow_mut();
        core.release(seed);
        core.tell(Event::Mark(Mark::BackwardDone));
        for leaf in queue.activation_leaves {
            if let Some(gradient) = leaf.gradient {
                core.release(gradient.storage);
            }
        }
        core.release_leaves();
        core.nodes.clear();
    }

    /// Runs what is ready until nothing is. Borders of layers are those of the whole program.
    pub(super) fn drain(&self, queue: &mut Queue, program: &dyn Rerun, is_whole: bool) {
        let mut results = Vec::new();
        loop {
            if let Some(leaf) = queue.leaves.pop_front() {
                self.core.borrow_mut().accumulate_leaf(leaf, queue);
                continue;
            }
            let next = queue.nodes.pop();
            if is_whole {
                self.core.borrow_mut().pass_layer_borders(next);
            }
            let Some(node) = next else { return };
            let frame = self.core.borrow().frame_to_restore(node);
            if let Some(frame) = frame {
                self.restore(frame, program);
            }
            let accounting = self.options.accounting;
            let part = self.core.borrow().part_of(node);
            if let Some((part, incoming)) = part {
                results.clear();
                results.push(self.part_again(node, part, incoming, program));
                let mut core = self.core.borrow_mut();
                core.release_restored(node);
                core.finish_node(node, accounting, queue, &mut results);
                continue;
            }
            self.core.borrow_mut().run_node(node, accounting, queue, &mut results);
        }
    }
}

impl Core {
    /// The accumulators of activations go with the graph.
    fn release_leaves(&mut self) {
        for storage in std::mem::take(&mut self.leaf_storages) {
            self.release(storage);
        }
    }

    pub(super) fn node_count(&self) -> u32 {
        super::core::position(self.nodes.len())
    }

    /// The part that a node runs again, and the gradient it has received.
    fn part_of(&self, node: u32) -> Option<(u32, Gradient)> {
        match self.nodes[node as usize].formula {
            Formula::Part(part) => Some((part, self.incoming(node)?)),
            _ => None,
        }
    }

    /// An output of a node receives its first gradient.
    pub(super) fn receive(&mut self, node: u32, output: u8, gradient: Gradient) {
        let place = self.nodes[node as usize].outputs.start as usize + usize::from(output);
        self.outputs[place] = Some(gradient);
    }

    /// Count, for every node and leaf reachable from `root`, the gradients it will receive; nodes before `first` have
    /// theirs counted.
    pub(super) fn count_users(&mut self, first: u32, root: u32, queue: &mut Queue) {
        for index in (first..=root).rev() {
            let node = self.nodes[index as usize];
            if index != root && node.pending == 0 {
                continue;
            }
            for position in node.inputs.range() {
                match self.inputs[position].target {
                    Target::Node { node, .. } => self.nodes[node as usize].pending += 1,
                    Target::Leaf(leaf) => queue.leaf(leaf).pending += 1,
                    Target::None | Target::Ghost => {}
                }
            }
        }
    }

    fn run_node(
        &mut self,
        index: u32,
        accounting: Accounting,
        queue: &mut Queue,
        results: &mut Vec<Option<Gradient>>,
    ) {
        let node = self.nodes[index as usize];
        let Some(incoming) = self.incoming(index) else {
            results.clear();
            results.resize(node.inputs.len as usize, None);
            return self.deliver(index, accounting, queue, results);
        };
        let saved = self.saved_bytes(index);
        let allocated = self.trace.storages.len();
        Evaluation { core: self, accounting, node, index, incoming, results }.run();
        self.work_of_gradients(node, incoming, saved, allocated);
        self.release_restored(index);
        self.finish_node(index, accounting, queue, results);
    }

    /// The gradients of a node's inputs are made: what it received and saved goes.
    fn finish_node(
        &mut self,
        index: u32,
        accounting: Accounting,
        queue: &mut Queue,
        results: &mut [Option<Gradient>],
    ) {
        let node = self.nodes[index as usize];
        self.fit(index, results);
        for position in node.outputs.range() {
            if let Some(gradient) = self.outputs[position].take() {
                self.release(gradient.storage);
            }
        }
        self.release_saved(index);
        if let Some(mark) = node.mark {
            self.tell(Event::Mark(mark));
        }
        self.deliver(index, accounting, queue, results);
    }

    /// What a node's formula has computed and moved: it read the gradient and what was saved, and wrote what it made.
    fn work_of_gradients(&mut self, node: Node, incoming: Gradient, saved: u64, allocated: usize) {
        let made: u64 = self.trace.storages[allocated..].iter().map(|storage| storage.bytes).sum();
        // The rate of a fused kernel includes what it moves for itself.
        let scratch: u64 = match node.formula {
            Formula::FreshAll(Some(place)) | Formula::Tiled(place) => {
                self.scratch[place as usize].iter().sum()
            }
            _ => 0,
        };
        let made = made - scratch;
        let is_product = node.arithmetic != Arithmetic::None;
        if made == 0 && !is_product {
            return;
        }
        let factors = node.formula.factors();
        let wanted = self.inputs[node.inputs.range()]
            .iter()
            .enumerate()
            .filter(|(index, input)| factors.contains(index) && input.target.wants())
            .map(|(_, input)| input.elements);
        let bytes = incoming.elements * u64::from(incoming.element_bytes) + saved + made;
        let mut work = Work::of_gradients(node.arithmetic, wanted, bytes);
        if let (Formula::Tiled(_), Arithmetic::Pieces(again)) = (node.formula, node.arithmetic) {
            work.products = work.products.saturating_add(again);
            work.repeated = work.repeated.saturating_add(again);
        }
        self.work(work);
    }

    /// The gradient of the first output that received one.
    fn incoming(&self, index: u32) -> Option<Gradient> {
        let outputs = self.nodes[index as usize].outputs;
        outputs.range().find_map(|position| self.outputs[position])
    }

    /// The general rule for results: sum what was broadcast, cast what has another element type.
    fn fit(&mut self, index: u32, results: &mut [Option<Gradient>]) {
        let span = self.nodes[index as usize].inputs;
        for (position, result) in span.range().zip(results) {
            let input = self.inputs[position];
            let Some(gradient) = result else { continue };
            let category = if input.is_parameter {
                Category::ParameterGradient
            } else {
                Category::ActivationGradient
            };
            if gradient.elements > input.elements {
                let bytes = input.elements * u64::from(gradient.element_bytes);
                self.work(Work::moving(gradient.elements * u64::from(gradient.element_bytes)));
                let storage = self.allocate(bytes, category);
                self.release(gradient.storage);
                *gradient =
                    Gradient { storage, elements: input.elements, is_view: false, ..*gradient };
            }
            if gradient.element_bytes != input.element_bytes {
                let bytes = gradient.elements * u64::from(input.element_bytes);
                self.work(Work::moving(2 * bytes));
                let storage = self.allocate(bytes, category);
                self.release(gradient.storage);
                let element_bytes = input.element_bytes;
                *gradient = Gradient { storage, element_bytes, is_view: false, ..*gradient };
            }
        }
    }

    /// Hand the results to the inputs' producers.
    fn deliver(
        &mut self,
        index: u32,
        accounting: Accounting,
        queue: &mut Queue,
        results: &mut [Option<Gradient>],
    ) {
        let span = self.nodes[index as usize].inputs;
        for (position, result) in span.range().zip(results) {
            let gradient = result.take();
            match self.inputs[position].target {
                Target::Node { node, output } => {
                    let place = self.nodes[node as usize].outputs.start as usize + output as usize;
                    self.outputs[place] = self.sum(self.outputs[place], gradient, accounting);
                    let receiver = &mut self.nodes[node as usize];
                    receiver.pending -= 1;
                    if receiver.pending == 0 {
                        queue.nodes.push(node);
                    }
                }
                Target::Leaf(leaf) => {
                    let held = queue.leaf(leaf).gradient;
                    let sum = self.sum(held, gradient, accounting);
                    let receiver = queue.leaf(leaf);
                    receiver.gradient = sum;
                    receiver.pending -= 1;
                    if receiver.pending == 0 {
                        queue.leaves.push_back(leaf);
                    }
                }
                Target::None | Target::Ghost => {}
            }
        }
    }

    fn sum(
        &mut self,
        held: Option<Gradient>,
        more: Option<Gradient>,
        accounting: Accounting,
    ) -> Option<Gradient> {
        let (Some(held), Some(more)) = (held, more) else { return held.or(more) };
        let bytes = held.elements * u64::from(held.element_bytes);
        self.work(Work::moving(3 * bytes));
        let is_in_place =
            accounting == Accounting::Real && self.is_whole(held) && !self.is_shared(held.storage);
        // The newest contribution is added to what is held, never the other way round.
        if is_in_place {
            self.release(more.storage);
            return Some(held);
        }
        let storage = self.allocate(bytes, Category::ActivationGradient);
        self.release(held.storage);
        self.release(more.storage);
        Some(Gradient { storage, is_view: false, ..held })
    }

    /// Whether a gradient is a tensor of its own that fills its storage, so that it can be added to
    /// in place.
    fn is_whole(&self, gradient: Gradient) -> bool {
        gradient.storage.is_counted()
            && !gradient.is_view
            && self.trace.storages[gradient.storage.index()].bytes
                == gradient.elements * u64::from(gradient.element_bytes)
    }

    fn accumulate_leaf(&mut self, leaf: u32, queue: &mut Queue) {
        if leaf >= FIRST_ACTIVATION_LEAF {
            return;
        }
        let Some(gradient) = queue.leaf(leaf).gradient.take() else { return };
        let storage = self.own(gradient);
        self.hand_over_or_add(leaf, storage);
    }

    /// A storage nobody else refers to: the accumulator clones a gradient that is also used elsewhere.
    fn own(&mut self, gradient: Gradient) -> StorageId {
        if !self.is_shared(gradient.storage) {
            return gradient.storage;
        }
        let bytes = gradient.elements * u64::from(gradient.element_bytes);
        let storage = self.allocate(bytes, Category::ParameterGradient);
        self.release(gradient.storage);
        storage
    }
}
