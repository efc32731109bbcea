//! Backward formulas: what each one allocates, in order.

use super::Accounting;
use super::core::Core;
use super::graph::{Formula, Gradient, Input, Node};
use super::trace::{Category, Edge, Event, Pass, StorageId};
use crate::model::ModuleId;
use crate::zero::{Collective, CollectiveKind};

/// The inputs of one node and the gradients being made for them.
pub(crate) struct Evaluation<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) accounting: Accounting,
    pub(crate) node: Node,
    pub(crate) index: u32,
    /// The gradient of the node's first output.
    pub(crate) incoming: Gradient,
    /// One place per input, filled by [`Evaluation::run`].
    pub(crate) results: &'a mut Vec<Option<Gradient>>,
}

impl Evaluation<'_> {
    /// Evaluate the node's formula.
    pub(crate) fn run(&mut self) {
        let count = self.node.inputs.len as usize;
        self.results.clear();
        self.results.resize(count, None);
        match self.node.formula {
            Formula::Pass => self.pass_to(0..count),
            Formula::PassFirst => {
                self.pass_to(0..1);
                self.fresh(1..count);
            }
            Formula::Reshape => {
                self.pass_to(0..1);
                self.mark_view(0);
            }
            Formula::Copy => {
                let copy = self.scratch(self.incoming.elements);
                self.results[0] = Some(Gradient {
                    storage: copy,
                    elements: self.input(0).elements,
                    is_view: false,
                    ..self.incoming
                });
            }
            Formula::View => self.view_to(count),
            Formula::Fresh => self.fresh(0..count),
            Formula::FreshLike => self.fresh_like(count),
            Formula::FreshAll(scratch) => self.fresh_all(count, scratch),
            Formula::Product => self.product(),
            Formula::Grouped => self.fresh([1, 0]),
            // The rows were flattened for the product; their gradient is seen in the old shape.
            Formula::MatrixProduct => {
                self.fresh([1, 0]);
                self.mark_view(0);
            }
            Formula::QuantizedProduct => {
                let wide = self.scratch(self.input(1).elements);
                self.fresh([0]);
                self.core.release(wide);
            }
            Formula::BiasMatrixProduct => {
                self.fresh([1, 2]);
                self.mark_view(1);
                self.pass_to(0..1);
            }
            Formula::ZeroLinear => self.fresh(0..count),
            Formula::TwoTemporaries => self.two_temporaries(),
            Formula::Difference => {
                self.pass_to(0..1);
                if self.input(1).target.wants() {
                    self.results[1] = Some(self.like_incoming());
                }
            }
            Formula::Quotient => self.quotient(),
            Formula::Scatter => self.scatter(),
            Formula::ScaledBatchProduct => self.scaled_batch_product(),
            Formula::Gather => self.gather(),
            Formula::BloomGelu => self.bloom_gelu(),
            Formula::SliceCopy => self.slice_copy(),
            Formula::IndexPut => self.index_put(),
            Formula::Made => {
                self.core.release_saved(self.index);
                self.fresh(0..count);
            }
            Formula::Tiled(place) => self.tiled(count, place),
            Formula::LogSumExp => self.log_sum_exp(),
            Formula::AllToAll { ranks, copies } => self.all_to_all(ranks, copies),
            Formula::AllReduce { ranks } => {
                self.exchange(CollectiveKind::AllReduce, self.incoming.elements, ranks);
                self.pass_to(0..1);
            }
            Formula::GatherNumbers { ranks } => {
                self.exchange(CollectiveKind::ReduceScatter, u64::from(ranks), ranks);
                self.fresh(0..1);
            }
            // Run by the tape, which has the program.
            Formula::Part(_) => {}
            Formula::ModuleStart(module) => {
                self.core.record_module(module, Pass::Backward, Edge::Before);
                self.pass_to(0..1);
            }
            Formula::ModuleEnd(module) => {
                self.close_argument(module);
                self.pass_to(0..1);
            }
        }
    }

    fn input(&self, index: usize) -> Input {
        self.core.inputs[self.node.inputs.start as usize + index]
    }

    fn make(&mut self, elements: u64, element_bytes: u8, is_parameter: bool) -> Gradient {
        let category =
            if is_parameter { Category::ParameterGradient } else { Category::ActivationGradient };
        let storage = self.core.allocate(elements * u64::from(element_bytes), category);
        Gradient { storage, elements, element_bytes, is_view: false }
    }

    /// A temporary with the element type of the incoming gradient.
    fn scratch(&mut self, elements: u64) -> StorageId {
        self.make(elements, self.incoming.element_bytes, false).storage
    }

    fn like_incoming(&mut self) -> Gradient {
        self.make(self.incoming.elements, self.incoming.element_bytes, false)
    }

    fn mark_view(&mut self, index: usize) {
        if let Some(gradient) = &mut self.results[index] {
            gradient.is_view = true;
        }
    }

    fn pass_to(&mut self, inputs: impl IntoIterator<Item = usize>) {
        for index in inputs {
            if self.input(index).target.wants() {
                self.core.retain(self.incoming.storage);
                self.results[index] = Some(self.incoming);
            }
        }
    }

    fn view_to(&mut self, count: usize) {
        for index in 0..count {
            let input = self.input(index);
            if input.target.wants() {
                self.core.retain(self.incoming.storage);
                self.results[index] =
                    Some(Gradient { elements: input.elements, is_view: true, ..self.incoming });
            }
        }
    }

    fn fresh(&mut self, inputs: impl IntoIterator<Item = usize>) {
        for index in inputs {
            let input = self.input(index);
            if input.target.wants() {
                self.results[index] =
                    Some(self.make(input.elements, input.element_bytes, input.is_parameter));
            }
        }
    }

    fn fresh_like(&mut self, count: usize) {
        for index in 0..count {
            let input = self.input(index);
            if input.target.wants() {
                let element_bytes = self.incoming.element_bytes;
                self.results[index] = Some(self.make(input.elements, element_bytes, false));
            }
        }
    }

    fn fresh_all(&mut self, count: usize, scratch: Option<u32>) {
        for index in 0..count {
            let input = self.input(index);
            self.results[index] = Some(self.make(input.elements, input.element_bytes, false));
        }
        let scratch = scratch.map(|place| self.core.scratch[place as usize].clone());
        let scratch: Vec<StorageId> = (scratch.into_iter().flatten())
            .map(|bytes| self.core.allocate(bytes, Category::ActivationGradient))
            .collect();
        scratch.into_iter().for_each(|storage| self.core.release(storage));
        for index in 0..count {
            if !self.input(index).target.wants()
                && let Some(unwanted) = self.results[index].take()
            {
                self.core.release(unwanted.storage);
            }
        }
    }

    fn tiled(&mut self, count: usize, place: u32) {
        for index in 0..count {
            let input = self.input(index);
            if input.target.wants() {
                let is_parameter = input.is_parameter && input.element_bytes == 4;
                self.results[index] = Some(self.make(input.elements, 4, is_parameter));
            }
        }
        let scratch: Vec<StorageId> = self.core.scratch[place as usize]
            .clone()
            .into_iter()
            .map(|bytes| self.core.allocate(bytes, Category::Loss))
            .collect();
        scratch.iter().skip(1).for_each(|storage| self.core.release(*storage));
        let mut wide = Vec::new();
        for index in 0..count {
            let input = self.input(index);
            if input.target.wants() && input.element_bytes != 4 {
                let narrow = self.make(input.elements, input.element_bytes, input.is_parameter);
                wide.extend(self.results[index].replace(narrow));
            }
        }
        wide.into_iter().for_each(|gradient| self.core.release(gradient.storage));
        scratch.iter().take(1).for_each(|storage| self.core.release(*storage));
    }

    fn all_to_all(&mut self, ranks: u32, copies: bool) {
        let elements = self.incoming.elements;
        let copy = copies.then(|| self.scratch(elements));
        self.results[0] = Some(self.like_incoming());
        self.exchange(CollectiveKind::AllToAll, elements, ranks);
        copy.into_iter().for_each(|copy| self.core.release(copy));
    }

    fn exchange(&mut self, kind: CollectiveKind, elements: u64, ranks: u32) {
        let (element, ranks) = (u64::from(self.incoming.element_bytes), u64::from(ranks));
        self.core.tell(Event::Exchange(Collective { kind, elements, element, ranks }));
    }

    fn product(&mut self) {
        for index in [1, 0] {
            if self.input(index).target.wants() {
                self.results[index] = Some(self.like_incoming());
            }
        }
    }

    fn two_temporaries(&mut self) {
        let first = self.scratch(self.incoming.elements);
        let second = self.scratch(self.incoming.elements);
        self.results[0] = Some(self.like_incoming());
        self.core.release(second);
        self.core.release(first);
    }

    fn log_sum_exp(&mut self) {
        let elements = self.input(0).elements;
        let temporaries = [(); 2].map(|()| self.scratch(elements));
        self.results[0] = Some(self.make(elements, self.incoming.element_bytes, false));
        temporaries.into_iter().for_each(|storage| self.core.release(storage));
    }

    /// For `a / b`: `-(g · ((a / b) / b))` for b, then `g / b` for a.
    fn quotient(&mut self) {
        if self.input(1).target.wants() {
            let temporaries = [(); 3].map(|()| self.scratch(self.incoming.elements));
            self.results[1] = Some(self.like_incoming());
            for storage in temporaries.into_iter().rev() {
                self.core.release(storage);
            }
        }
        if self.input(0).target.wants() {
            self.results[0] = Some(self.like_incoming());
        }
    }

    fn scatter(&mut self) {
        let input = self.input(0);
        let zeros = self.scratch(input.elements);
        let storage = match self.accounting {
            Accounting::Real => zeros,
            Accounting::Recorded => {
                let result = self.scratch(input.elements);
                self.core.release(zeros);
                result
            }
        };
        self.results[0] =
            Some(Gradient { storage, elements: input.elements, is_view: false, ..self.incoming });
    }

    fn scaled_batch_product(&mut self) {
        for index in [1, 2] {
            let input = self.input(index);
            if input.target.wants() {
                let product = self.scratch(input.elements);
                self.results[index] = Some(self.make(input.elements, input.element_bytes, false));
                self.core.release(product);
            }
        }
        self.pass_to(0..1);
    }

    fn gather(&mut self) {
        let input = self.input(0);
        self.results[0] = Some(self.make(input.elements, input.element_bytes, false));
    }

    /// The hand-written formula in evaluation order; the names are those of its expression.
    fn bloom_gelu(&mut self) {
        let n = self.incoming.elements;
        let mut live: Vec<StorageId> = Vec::new();
        // tanh_out = tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        let scaled = self.scratch(n);
        let cubic = self.scratch(n);
        let square = self.scratch(n);
        self.core.release(cubic);
        let one_plus = self.scratch(n);
        self.core.release(square);
        let product = self.scratch(n);
        self.core.release(scaled);
        self.core.release(one_plus);
        let tanh_out = self.scratch(n);
        self.core.release(product);
        live.push(tanh_out);
        self.bloom_gelu_slope(n, &mut live);
        self.results[0] = Some(self.like_incoming());
        for storage in live {
            self.core.release(storage);
        }
    }

    /// `0.5 x ((1 - tanh²)(0.79788456 + 0.1070322243 x²)) + 0.5 (1 + tanh)`
    fn bloom_gelu_slope(&mut self, n: u64, live: &mut Vec<StorageId>) {
        let half = self.scratch(n);
        let square = self.scratch(n);
        let rest = self.scratch(n);
        self.core.release(square);
        let cubic = self.scratch(n);
        let cubic_square = self.scratch(n);
        self.core.release(cubic);
        let slope = self.scratch(n);
        self.core.release(cubic_square);
        let inner = self.scratch(n);
        self.core.release(rest);
        self.core.release(slope);
        let left = self.scratch(n);
        self.core.release(half);
        self.core.release(inner);
        let plus = self.scratch(n);
        let right = self.scratch(n);
        self.core.release(plus);
        live.push(self.scratch(n));
        self.core.release(left);
        self.core.release(right);
    }

    fn slice_copy(&mut self) {
        let (base, source) = (self.input(0), self.input(1));
        let whole = self.scratch(base.elements);
        let part = self.scratch(source.elements);
        if base.target.wants() {
            let zeros = self.scratch(source.elements);
            self.core.release(zeros);
        }
        self.set_or_drop(0, whole);
        self.set_or_drop(1, part);
    }

    fn index_put(&mut self) {
        let (base, rows) = (self.input(0), self.input(1));
        let zeros = self.scratch(rows.elements);
        let whole = self.scratch(base.elements);
        self.core.release(zeros);
        let part = self.scratch(rows.elements);
        self.set_or_drop(0, whole);
        self.set_or_drop(1, part);
    }

    fn set_or_drop(&mut self, index: usize, storage: StorageId) {
        let input = self.input(index);
        if input.target.wants() {
            self.results[index] = Some(Gradient {
                storage,
                elements: input.elements,
                is_view: false,
                ..self.incoming
            });
        } else {
            self.core.release(storage);
        }
    }

    fn close_argument(&mut self, module: ModuleId) {
        let open = &mut self.core.arguments_open[module.index()];
        *open = open.saturating_sub(1);
        if *open == 0 {
            self.core.record_module(module, Pass::Backward, Edge::After);
        }
    }
}
