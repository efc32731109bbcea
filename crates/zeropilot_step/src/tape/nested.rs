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
            let (_, gradient) = self.through(key, arguments(), incoming, program);
            back.into_iter().for_each(|storage| self.core.borrow_mut().release(storage));
            return gradient;
        }
        let (storage, (elements, element_bytes)) = arguments().next()?;
        let bytes = elements * u64::from(element_bytes);
        let sum = self.core.borrow_mut().allocate(bytes, Category::ActivationGradient);
        // The variable that holds an output is bound anew when the next one is made.
        let mut _output = None;
        for (index, &elements) in tiles.iter().enumerate() {
            self.core.borrow_mut().tiles.begin(index + 1 == tiles.len());
            let tile = [(storage, (elements, element_bytes))];
            let incoming = Gradient { elements, is_view: true, ..incoming };
            let (output, gradient) = self.through(key, tile.into_iter(), incoming, program);
            if let Some(gradient) = gradient {
                self.core.borrow_mut().release(gradient.storage);
            }
            _output = output;
        }
        self.core.borrow_mut().tiles.end();
        Some(Gradient { storage: sum, elements, element_bytes, is_view: false })
    }

    /// Runs a part with a graph and backward through it: its output, and the gradient of its first argument.
    fn through<'t>(
        &'t self,
        key: u32,
        arguments: impl Iterator<Item = (StorageId, (u64, u8))>,
        incoming: Gradient,
        program: &dyn Rerun,
    ) -> (Option<Tensor<'t>>, Option<Gradient>) {
        let (leaf, first) = {
            let mut core = self.core.borrow_mut();
            let leaf = FIRST_ACTIVATION_LEAF + core.activation_leaves;
            core.activation_leaves += 1;
            core.again += 1;
            (leaf, core.node_count())
        };
        let arguments = arguments.enumerate().map(|(index, (storage, size))| {
            self.core.borrow_mut().retain(storage);
            let target = if index == 0 { Target::Leaf(leaf) } else { Target::None };
            Tensor { tape: self, storage, target, elements: size.0, element_bytes: size.1 }
        });
        let output = program.rerun(key, arguments.collect());
        self.core.borrow_mut().again -= 1;
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

/// Gradients of parameters that are added up tile by tile.
#[derive(Debug, Default)]
pub(crate) struct TileSums {
    is_last: Option<bool>,
    sums: Vec<(u32, StorageId)>,
}

impl TileSums {
    fn begin(&mut self, is_last: bool) {
        self.is_last = Some(is_last);
    }

    fn end(&mut self) {
        self.is_last = None;
    }
}

impl Core {
    /// The gradient of a leaf is complete, or its part of a tile: then it is added to those of the tiles before.
    pub(super) fn hand_over_or_add(&mut self, leaf: u32, storage: StorageId) {
        let parameter = ParameterId::new(leaf as usize);
        let Some(is_last) = self.tiles.is_last else { return self.hand_over(parameter, storage) };
        let known = self.tiles.sums.iter().position(|(other, _)| *other == leaf);
        let sum = match known {
            Some(place) => {
                self.release(storage);
                self.tiles.sums[place].1
            }
            None => {
                self.tiles.sums.push((leaf, storage));
                storage
            }
        };
        if is_last {
            self.tiles.sums.retain(|(other, _)| *other != leaf);
            self.hand_over(parameter, sum);
        } else {
            self.tell(Event::PartOfGradient(parameter));
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
