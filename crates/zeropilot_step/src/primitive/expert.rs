//! Routing tokens to experts, and computing all experts with grouped products.

use super::{Kept, kept, operation, product};
use crate::model::{Module, Parameter};
use crate::tape::{
    Accounting, Arithmetic, Category, Formula, Input, StorageId, Tape, TapeOperation, Tensor,
};

/// The stacked weights of a layer's experts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertWeights {
    pub(crate) gate_up: Parameter,
    pub(crate) down: Parameter,
    pub(crate) act: Module,
    pub(crate) experts: u64,
    pub(crate) hidden: u64,
    pub(crate) intermediate: u64,
}

/// What a router returns for each token: the weights of its experts and which they are.
#[derive(Debug)]
pub(crate) struct Routing<'t> {
    pub(crate) logits: Tensor<'t>,
    pub(crate) weights: Tensor<'t>,
    pub(crate) indices: Tensor<'t>,
    pub(crate) per_token: u64,
}

/// Adapters of a layer's experts as the factors that are multiplied and added to their weights.
#[derive(Debug, Default)]
pub(crate) struct ExpertFolds<'t> {
    pub(crate) gate_up: Option<FactorPair<'t>>,
    pub(crate) down: Option<FactorPair<'t>>,
}

/// Two factors in the format of the weights.
#[derive(Debug)]
pub(crate) struct FactorPair<'t> {
    outputs: Tensor<'t>,
    inputs: Tensor<'t>,
    /// What both are multiplied over.
    length: u64,
}

/// A stack of weights as a product takes it.
struct Stack<'t> {
    storage: StorageId,
    input: Input,
    is_trained: bool,
    /// What it was folded into.
    own: Option<Tensor<'t>>,
}

impl<'t> Stack<'t> {
    fn new(weight: Parameter, fold: Option<&FactorPair<'t>>) -> Self {
        match fold.map(|pair| pair.fold_into(weight)) {
            Some(folded) => Self {
                storage: folded.storage,
                input: folded.input(),
                is_trained: folded.needs_grad(),
                own: Some(folded),
            },
            None => Self {
                storage: weight.storage(),
                input: weight.input(),
                is_trained: weight.is_trainable,
                own: None,
            },
        }
    }
}

impl<'t> FactorPair<'t> {
    /// `baddbmm`: a tensor as large as the weights themselves.
    fn fold_into(&self, weight: Parameter) -> Tensor<'t> {
        let base = self.outputs.tape.outside(weight.elements, weight.element_bytes);
        base.add_scaled_product(&self.outputs, &self.inputs, weight.elements, self.length)
    }
}

impl<'t> Tensor<'t> {
    /// The largest `count` of every group of `width`: values and their places.
    #[must_use]
    pub fn top_k(&self, width: u64, count: u64) -> (Tensor<'t>, Tensor<'t>) {
        let tape = self.tape;
        let elements = self.elements / width * count;
        let inputs = [self.input()];
        let values = tape.fresh(elements, self.element_bytes, Category::Activation);
        let indices = tape.fresh(elements, 8, Category::Index);
        let saved = [indices.storage];
        let operation = operation(Formula::Scatter, &inputs, &saved);
        (tape.adopt(values, &operation), indices)
    }

    /// `torch.gather`: elements picked by `index`, which also saves what it picks from.
    #[must_use]
    pub fn gather_elements(&self, index: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [self.storage, index.storage];
        let operation = operation(Formula::Scatter, &inputs, &saved);
        self.tape.record(&operation, index.elements, self.element_bytes, false, &[])
    }

    /// Rows picked by `index`.
    #[must_use]
    pub fn gather_rows(&self, index: &Tensor<'t>, width: u64) -> Tensor<'t> {
        self.pick(index, index.elements * width)
    }

    /// `elements` elements picked by `index`, which is saved.
    pub(crate) fn pick(&self, index: &Tensor<'t>, elements: u64) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [index.storage];
        let operation = operation(Formula::Scatter, &inputs, &saved);
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// A product along `length` with one stacked weight per group of rows.
    fn grouped(
        &self,
        weight: &Stack<'t>,
        offsets: &Tensor<'t>,
        elements: u64,
        length: u64,
    ) -> Tensor<'t> {
        let transposed = [weight.input];
        let target = self.tape.node_for(&operation(Formula::Reshape, &transposed, &[]));
        let inputs = [self.input(), Input { target, ..weight.input }];
        let saved = Kept::new([
            kept(self.storage, weight.is_trained),
            kept(weight.storage, self.needs_grad()),
            kept(offsets.storage, true),
        ]);
        let arithmetic = Arithmetic::Product(2 * elements * length);
        let operation = product(Formula::Grouped, arithmetic, &inputs, saved.as_slice());
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// All experts of a layer on the tokens `self`, and the weights that adapters were folded into.
    #[must_use]
    pub(crate) fn experts(
        &self,
        routing: &Routing<'t>,
        layer: ExpertWeights,
        folds: &ExpertFolds<'t>,
    ) -> (Tensor<'t>, [Option<Tensor<'t>>; 2]) {
        let tape = self.tape;
        let rows = routing.weights.elements;
        let weights = routing.weights.view();
        let _sorted = tape.index_tensor(rows);
        let order = tape.index_tensor(rows);
        let selected = {
            let token = tape.index_tensor(rows);
            self.gather_rows(&token, layer.hidden)
        };
        let weights = weights.gather_rows(&order, 1);
        let _ids = tape.fresh(rows, 4, Category::Index);
        let _counts = tape.fresh(layer.experts, 4, Category::Index);
        let offsets = tape.fresh(layer.experts, 4, Category::Index);
        let wide = rows * 2 * layer.intermediate;
        let gate_up = Stack::new(layer.gate_up, folds.gate_up.as_ref());
        let mut out = selected.grouped(&gate_up, &offsets, wide, layer.hidden);
        out = out.gated(layer.act);
        let down = Stack::new(layer.down, folds.down.as_ref());
        out = out.grouped(&down, &offsets, rows * layer.hidden, layer.intermediate);
        let mut weighted = out.mul(&weights);
        let inverse = tape.index_tensor(rows);
        drop(tape.index_tensor(rows));
        weighted = weighted.gather_rows(&inverse, layer.hidden);
        let sum = {
            let by_token = match routing.per_token {
                1 => weighted.view(),
                _ => weighted.view_with_copied_gradient(),
            };
            by_token.sum(routing.per_token)
        };
        (sum.cast(self.element_bytes), [gate_up.own, down.own])
    }

    /// `act(first half) * second half`.
    fn gated(&self, act: Module) -> Tensor<'t> {
        let [gate, up] = self.chunk2();
        let active = self.tape.call(act, &gate, |gate| gate.activate());
        active.mul(&up)
    }
}

/// The rank of an adapter with one matrix for each of `stacks`: out·r·stacks and r·stacks·in over stacks·out·in.
fn rank(down: Parameter, up: Parameter, weight: Parameter, stacks: u64) -> u64 {
    let factors = u128::from(down.elements) * u128::from(up.elements);
    let square = factors / u128::from((weight.elements * stacks).max(1));
    u64::try_from(square.isqrt()).unwrap_or(u64::MAX)
}

impl Tape {
    /// The factors of an adapter of stacked weights, where adapters are on. The library folds them once to see that
    /// the shape is right, and again where the weights are used.
    pub(crate) fn fold_of_experts(
        &self,
        weight: Parameter,
        down: Parameter,
        up: Parameter,
        experts: u64,
    ) -> Option<FactorPair<'_>> {
        if self.has_adapters_off() {
            return None;
        }
        // What makes outputs has the experts last: its gradient is copied to be in their order.
        let inputs = self.ordered(down, Formula::Reshape);
        let outputs = self.ordered(up, Formula::Copy);
        let pair = FactorPair {
            outputs: outputs.cast(weight.element_bytes),
            inputs: inputs.cast(weight.element_bytes),
            length: rank(down, up, weight, experts),
        };
        drop(pair.fold_into(weight));
        Some(pair)
    }

    /// A factor seen as one matrix for each expert.
    fn ordered(&self, factor: Parameter, gradient: Formula) -> Tensor<'_> {
        let target = self.node_for(&operation(gradient, &[factor.input()], &[]));
        Tensor { target, ..self.seen(factor) }
    }

    /// A matrix with its adapter added, where adapters are on, and what was added.
    pub(crate) fn fold_of_matrix(
        &self,
        weight: Parameter,
        down: Parameter,
        up: Parameter,
    ) -> Option<[Tensor<'_>; 2]> {
        if self.has_adapters_off() {
            return None;
        }
        let added = {
            let scaled = {
                let product = {
                    // Processors have no product of such factors in 16 bits: the library widens them.
                    let is_widened = self.options().accounting == Accounting::Recorded;
                    let [up_factor, down_factor] = [up, down].map(|factor| {
                        let bytes = if is_widened { 4 } else { factor.element_bytes };
                        self.seen(factor).cast(bytes)
                    });
                    let length = rank(down, up, weight, 1);
                    up_factor.matmul(&down_factor, weight.elements, length)
                };
                product.scale()
            };
            scaled.cast(weight.element_bytes)
        };
        let base = self.outside(weight.elements, weight.element_bytes);
        drop(base.add(&added));
        Some([base.add(&added), added])
    }

    /// A parameter as a tensor of the program.
    fn seen(&self, parameter: Parameter) -> Tensor<'_> {
        let mut own = self.outside(parameter.elements, parameter.element_bytes);
        (own.target, own.storage) = (parameter.input().target, parameter.storage());
        own
    }

    /// A parameter with elements of `bytes`, as an input of a product.
    pub(crate) fn parameter_as(&self, parameter: Parameter, bytes: u8) -> Tensor<'_> {
        let inputs = [parameter.input()];
        if parameter.element_bytes == bytes {
            let mut outside = self.outside(parameter.elements, bytes);
            outside.target = inputs[0].target;
            return outside;
        }
        let operation = operation(Formula::Fresh, &inputs, &[]);
        self.record(&operation, parameter.elements, bytes, false, &[])
    }
}

impl<'t> Tensor<'t> {
    /// `F.linear` with a weight that is itself a tensor of the program.
    #[must_use]
    pub(crate) fn linear_with(&self, weight: &Tensor<'t>, elements: u64) -> Tensor<'t> {
        if self.tape.options().zero3_linear {
            let inputs = [self.input(), weight.input()];
            let saved = [self.storage, weight.storage];
            let arithmetic = Arithmetic::of_sizes(self.elements, weight.elements, elements);
            let operation = TapeOperation {
                saves_late: true,
                ..product(Formula::ZeroLinear, arithmetic, &inputs, &saved)
            };
            return self.tape.record(&operation, elements, self.element_bytes, false, &[]);
        }
        let transposed = weight.view();
        // Rows of x times columns of w, over the columns of x.
        let length = (u128::from(self.elements) * u128::from(weight.elements)
            / u128::from(elements.max(1)))
        .isqrt();
        self.matmul(&transposed, elements, u64::try_from(length).unwrap_or(u64::MAX))
    }
}
