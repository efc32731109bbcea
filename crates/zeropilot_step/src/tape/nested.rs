//! Parts that run without a graph and again with one in backward, which then goes through it before it goes on:
//! reentrant checkpoints and tiles.

use super::Tape;
use super::backward::Queue;
use super::checkpoint::Rerun;
use super::core::{Core, FIRST_ACTIVATION_LEAF, Operation, Part, Saved};
use super::graph::{Formula, Gradient, Target};
use super::tensor::Tensor;
use super::trace::{Category, Event, StorageId};
use super::work::Arithmetic;
use crate::model::ParameterId;
use crate::zero::{Direction, HostCopy};

impl Tape {
    /// Run `body` as the part `key` without a graph. Its arguments are saved, the first one perhaps on the host; only that
    /// one wants a gradient.
    pub fn reentrant<'t>(
        &'t self,
        key: u32,
        on_host: bool,
        arguments: &[Tensor<'t>],
        body: impl FnOnce(&[Tensor<'t>]) -> Tensor<'t>,
    ) -> Tensor<'t> {
        if let Some(first) = arguments.first().filter(|_| on_host) {
            let bytes = first.elements * u64::from(first.element_bytes);
            let copy = HostCopy { direction: Direction::ToHost, bytes };
            self.core.borrow_mut().tell(Event::Offload(copy));
        }
        let made = self.no_grad(|| body(arguments));
        let sizes = arguments.iter().map(|it| (it.elements, it.element_bytes)).collect();
        self.adopt_part(made, arguments, Part { key, sizes, tiles: Vec::new(), on_host })
    }

    /// Run `body` tile by tile as the part `key` without a graph, and join the results. Only `x` is saved; backward has
    /// tiles of its own, of so many elements each.
    pub(crate) fn tiled<'t>(
        &'t self,
        key: u32,
        x: &Tensor<'t>,
        forward: &[u64],
        backward: Vec<u64>,
        body: impl Fn(&Tensor<'t>) -> Tensor<'t>,
    ) -> Tensor<'t> {
        let made = self.no_grad(|| {
            let tiles: Vec<Tensor<'t>> =
                forward.iter().map(|&elements| body(&x.slice(elements))).collect();
            let elements = tiles.iter().map(Tensor::elements).sum();
            self.fresh(elements, x.element_bytes, Category::Activation)
        });
        let sizes = vec![(x.elements, x.element_bytes)];
        self.adopt_part(
            made,
            std::slice::from_ref(x),
            Part { key, sizes, tiles: backward, on_host: false },
        )
    }

    /// Run `body` on each shard of `x` as the part `key` without a graph: the sum of the numbers it returns. Backward runs
    /// every shard again. The function's own context holds `x` for as long as the result lives.
    pub(crate) fn sum_in_shards<'t>(
        &'t self,
        key: u32,
        x: &Tensor<'t>,
        shards: Vec<u64>,
        body: impl Fn(&Tensor<'t>) -> Tensor<'t>,
    ) -> Tensor<'t> {
        let made = self.no_grad(|| {
            let _numbers: Vec<Tensor<'t>> =
                shards.iter().map(|&elements| body(&x.slice(elements))).collect();
            self.fresh(1, 4, Category::Loss)
        });
        self.keep(x);
        let sizes = vec![(x.elements, x.element_bytes)];
        let part = Part { key, sizes, tiles: shards, on_host: false };
        self.adopt_part(made, std::slice::from_ref(x), part)
    }

    /// The same, but each shard runs with a graph and backward through it at once: the gradient of `x` waits for backward.
    pub(crate) fn sum_and_gradient_in_shards<'t>(
        &'t self,
        key: u32,
        x: &Tensor<'t>,
        shards: &[u64],
        program: &dyn Rerun,
    ) -> Tensor<'t> {
        let one = self.fresh(1, x.element_bytes, Category::Loss);
        let incoming =
            Gradient { storage: one.storage, elements: 1, element_bytes: 4, is_view: true };
        let size = (x.elements, x.element_bytes);
        let cut = Cut { key, storage: x.storage, size, tiles: shards, is_first: true };
        let gradient = self.through_tiles(&cut, incoming, program);
        let made = self.fresh(1, 4, Category::Loss);
        drop(one);
        let operation = Operation {
            formula: Formula::Made,
            inputs: &[x.input()],
            saved_inputs: &[gradient.storage],
            saves_late: true,
            category: Category::Loss,
            arithmetic: Arithmetic::None,
        };
        let made = self.adopt(made, &operation);
        self.core.borrow_mut().release(gradient.storage);
        made
    }

    fn adopt_part<'t>(
        &'t self,
        made: Tensor<'t>,
        arguments: &[Tensor<'t>],
        part: Part,
    ) -> Tensor<'t> {
        let inputs: Vec<_> = arguments.iter().take(1).map(Tensor::input).collect();
        let mut saved: Vec<StorageId> = arguments.iter().map(|argument| argument.storage).collect();
        if let Some(first) = saved.first_mut().filter(|_| part.on_host) {
            *first = StorageId::OUTSIDE;
        }
        let part = self.core.borrow_mut().keep_part(part);
        let operation = Operation {
            formula: Formula::Part(part),
            inputs: &inputs,
            saved_inputs: &saved,
            saves_late: true,
            category: Category::Activation,
            arithmetic: Arithmetic::None,
        };
        self.adopt(made, &operation)
    }

    /// Runs a part again, and backward through it: the gradient of its first argument.
    pub(super) fn part_again(
        &self,
        node: u32,
        part: u32,
        incoming: Gradient,
        program: &dyn Rerun,
    ) -> Option<Gradient> {
        let (Part { key, sizes, tiles, on_host }, mut storages) = {
            let core = self.core.borrow();
            (core.parts[part as usize].clone(), core.saved_storages(node))
        };
        let back = sizes.first().filter(|_| on_host).map(|&(elements, element_bytes)| {
            let bytes = elements * u64::from(element_bytes);
            let mut core = self.core.borrow_mut();
            let storage = core.allocate(bytes, Category::Activation);
            core.tell(Event::Offload(HostCopy { direction: Direction::ToDevice, bytes }));
            storage
        });
        if let Some(storage) = back {
            storages[0] = storage;
        }
        let arguments = || storages.iter().copied().zip(sizes.iter().copied());
        if tiles.is_empty() {
            let (_, gradient) = self.through(key, false, arguments(), incoming, program);
            back.into_iter().for_each(|storage| self.core.borrow_mut().release(storage));
            return gradient;
        }
        let (storage, size) = arguments().next()?;
        let cut = Cut { key, storage, size, tiles: &tiles, is_first: false };
        Some(self.through_tiles(&cut, incoming, program))
    }

    /// Runs a part tile by tile with a graph and backward through each: the gradient of its argument.
    fn through_tiles(&self, cut: &Cut<'_>, incoming: Gradient, program: &dyn Rerun) -> Gradient {
        let &Cut { key, storage, size: (elements, element_bytes), tiles, is_first } = cut;
        let bytes = elements * u64::from(element_bytes);
        let sum = self.core.borrow_mut().allocate(bytes, Category::ActivationGradient);
        let is_number = incoming.elements == 1;
        // The variable that holds an output is bound anew when the next one is made.
        let mut _output = None;
        for (index, &elements) in tiles.iter().enumerate() {
            let is_last = index + 1 == tiles.len();
            self.core.borrow_mut().tile = Some(if is_last { Tile::Last } else { Tile::Before });
            let tile = [(storage, (elements, element_bytes))];
            let incoming = match is_number {
                true => incoming,
                false => Gradient { elements, is_view: true, ..incoming },
            };
            let (output, gradient) =
                self.through(key, is_first, tile.into_iter(), incoming, program);
            if let Some(gradient) = gradient {
                self.core.borrow_mut().release(gradient.storage);
            }
            _output = output;
        }
        self.core.borrow_mut().tile = None;
        Gradient { storage: sum, elements, element_bytes, is_view: false }
    }

    /// Runs a part with a graph and backward through it: its output, and the gradient of its first argument.
    fn through<'t>(
        &'t self,
        key: u32,
        is_first: bool,
        arguments: impl Iterator<Item = (StorageId, (u64, u8))>,
        incoming: Gradient,
        program: &dyn Rerun,
    ) -> (Option<Tensor<'t>>, Option<Gradient>) {
        let (leaf, first) = {
            let mut core = self.core.borrow_mut();
            let leaf = FIRST_ACTIVATION_LEAF + core.activation_leaves;
            core.activation_leaves += 1;
            core.again += u32::from(!is_first);
            (leaf, core.node_count())
        };
        let arguments = arguments.enumerate().map(|(index, (storage, size))| {
            self.core.borrow_mut().retain(storage);
            let target = if index == 0 { Target::Leaf(leaf) } else { Target::None };
            Tensor { tape: self, storage, target, elements: size.0, element_bytes: size.1 }
        });
        let output = program.rerun(key, arguments.collect());
        self.core.borrow_mut().again -= u32::from(!is_first);
        let mut queue = Queue::default();
        if let Some(Target::Node { node: root, output: place }) =
            output.as_ref().map(|it| it.target)
        {
            let mut core = self.core.borrow_mut();
            core.count_users(first, root, &mut queue);
            core.retain(incoming.storage);
            core.receive(root, place, incoming);
            queue.push(root);
            drop(core);
            self.drain(&mut queue, program, false);
        }
        (output, queue.leaf(leaf).gradient.take())
    }
}

/// A tile that backward goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tile {
    /// One before the last: more gradients of the same parameters come.
    Before,
    /// The last.
    Last,
}

/// An argument that a part runs on tile by tile.
struct Cut<'a> {
    key: u32,
    storage: StorageId,
    /// Elements of the argument, and bytes of an element.
    size: (u64, u8),
    /// Elements of each tile.
    tiles: &'a [u64],
    /// Whether the part has not run without a graph before.
    is_first: bool,
}

impl Core {
    /// The gradient of a leaf is complete, or that of a tile.
    pub(super) fn hand_over_or_add(&mut self, leaf: u32, storage: StorageId) {
        let parameter = ParameterId::new(leaf as usize);
        match self.tile {
            Some(Tile::Before) => self.tell(Event::PartOfGradient(parameter, storage)),
            Some(Tile::Last) | None => self.hand_over(parameter, storage),
        }
    }

    fn keep_part(&mut self, part: Part) -> u32 {
        self.parts.push(part);
        super::core::position(self.parts.len() - 1)
    }

    /// What a node has saved, wherever it is.
    fn saved_storages(&self, index: u32) -> Vec<StorageId> {
        let node = self.nodes[index as usize];
        let storage = |position: usize| match self.saved[position] {
            Saved::Storage(storage) => storage,
            Saved::Counted(slot) => self.frames[node.frame as usize].restored[slot as usize],
        };
        node.saved.range().map(storage).collect()
    }
}
