//! Matrix products with parameters and between tensors.

use super::{Kept, kept, operation, product};
use crate::model::Parameter;
use crate::tape::{Arithmetic, Category, Formula, Input, StorageId, TapeOperation, Tensor};
use serde::Deserialize;

/// How a layer multiplies by its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearKind {
    /// `F.linear`: stage 3 replaces it.
    Linear,
    /// GPT-2's `Conv1D`: a fused bias-add product with the weight as it is, never replaced.
    Conv1d,
    /// `x @ W.T` written out: the weight through a transposed view, never replaced.
    Product,
    /// A frozen weight in a smaller format.
    Quantized(QuantizedProduct),
}

/// What a product with a frozen weight in a smaller format keeps for backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantizedProduct {
    /// The weight as it is, which is made wide for the moment of its use, in backward again (bitsandbytes from 0.43).
    #[default]
    Weight,
    /// That and its input (`MatMul4Bit` of bitsandbytes up to 0.42 has `ctx.tensors = (A, B)`).
    WeightAndInput,
    /// Its input alone (`MatMul8bitLt`).
    Input,
    /// The wide weight, unpacked through 32-bit numbers (`qlinear_cuda_old` of `AutoGPTQ` 0.5).
    WideWeight,
}

impl<'t> Tensor<'t> {
    /// Multiply rows of `self` by `weight` and add `bias`.
    #[must_use]
    pub fn linear(
        &self,
        weight: Parameter,
        bias: Option<Parameter>,
        kind: LinearKind,
        width_in: u64,
    ) -> Tensor<'t> {
        let rows = self.elements / width_in;
        let elements = rows * (weight.elements / width_in);
        let arithmetic = Arithmetic::Product(2 * rows * weight.elements);
        if kind == LinearKind::Linear && self.tape.options().zero3_linear {
            return self.zero3_linear(weight, bias, elements, arithmetic);
        }
        if let LinearKind::Quantized(product) = kind {
            return self.quantized_linear(weight, product, elements, arithmetic);
        }
        if self.tape.casts_products() && (self.element_bytes == 4 || weight.element_bytes == 4) {
            return self.autocast_linear(weight, bias, elements);
        }
        let weight_input = match kind {
            LinearKind::Conv1d => weight.input(),
            _ => self.transposed(weight),
        };
        let saved = Kept::new([
            kept(self.storage, weight.is_trainable),
            kept(weight.storage(), self.needs_grad()),
        ]);
        match bias {
            Some(bias) => {
                let inputs = [bias.input(), self.input(), weight_input];
                let formula = Formula::BiasMatrixProduct;
                let operation = product(formula, arithmetic, &inputs, saved.as_slice());
                self.tape.record(&operation, elements, self.element_bytes, false, &[])
            }
            None => {
                let inputs = [self.input(), weight_input];
                let formula = Formula::MatrixProduct;
                let operation = product(formula, arithmetic, &inputs, saved.as_slice());
                self.tape.record(&operation, elements, self.element_bytes, false, &[])
            }
        }
    }

    /// The weight as a transposed view: a node of its own, so its accumulator runs one step later.
    fn transposed(&self, weight: Parameter) -> Input {
        let inputs = [weight.input()];
        let target = self.tape.node_for(&operation(Formula::Reshape, &inputs, &[]));
        Input { target, ..weight.input() }
    }

    fn quantized_linear(
        &self,
        weight: Parameter,
        kept_as: QuantizedProduct,
        elements: u64,
        arithmetic: Arithmetic,
    ) -> Tensor<'t> {
        let needs = self.needs_grad();
        let inputs = [self.input(), weight.input()];
        if kept_as == QuantizedProduct::WideWeight {
            let unpacked = self.tape.fresh(weight.elements, 4, Category::Activation);
            let wide = self.tape.fresh(weight.elements, self.element_bytes, Category::Activation);
            drop(unpacked);
            let saved = Kept::new([kept(wide.storage, needs)]);
            let operation = product(Formula::MatrixProduct, arithmetic, &inputs, saved.as_slice());
            return self.tape.record(&operation, elements, self.element_bytes, false, &[]);
        }
        let _wide = self.tape.fresh(weight.elements, self.element_bytes, Category::Activation);
        let keeps_weight = kept_as != QuantizedProduct::Input;
        let keeps_input = kept_as != QuantizedProduct::Weight;
        let saved = Kept::new([
            kept(weight.storage(), needs && keeps_weight),
            kept(self.storage, needs && keeps_input),
        ]);
        let operation = product(Formula::QuantizedProduct, arithmetic, &inputs, saved.as_slice());
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// `F.linear` under autocast: operands of 32 bits are cast first, the weight too.
    fn autocast_linear(
        &self,
        weight: Parameter,
        bias: Option<Parameter>,
        elements: u64,
    ) -> Tensor<'t> {
        let x = self.cast(2);
        let weight = self.tape.parameter_as(weight, 2);
        let product = x.linear_with(&weight, elements);
        match bias {
            Some(bias) => {
                let bias = self.tape.parameter_as(bias, 2);
                product.add_in_place(&bias)
            }
            None => product,
        }
    }

    fn zero3_linear(
        &self,
        weight: Parameter,
        bias: Option<Parameter>,
        elements: u64,
        arithmetic: Arithmetic,
    ) -> Tensor<'t> {
        let with_bias;
        let without_bias;
        let (inputs, saved): (&[Input], &[StorageId]) = match bias {
            Some(bias) => {
                with_bias = [self.input(), weight.input(), bias.input()];
                (&with_bias, &[self.storage, weight.storage(), bias.storage()])
            }
            None => {
                without_bias = [self.input(), weight.input()];
                (&without_bias, &[self.storage, weight.storage()])
            }
        };
        let operation = product(Formula::ZeroLinear, arithmetic, inputs, saved);
        let operation = TapeOperation { saves_late: true, ..operation };
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// A convolution with `channels` outputs at every place; the result has `elements`.
    #[must_use]
    pub(crate) fn convolution(
        &self,
        weight: Parameter,
        bias: Option<Parameter>,
        elements: u64,
        channels: u64,
    ) -> Tensor<'t> {
        let saved = [self.storage, weight.storage()];
        let arithmetic = Arithmetic::Product(2 * elements * (weight.elements / channels.max(1)));
        let all = [self.input(), weight.input(), bias.unwrap_or(weight).input()];
        let inputs = if bias.is_some() { &all[..] } else { &all[..2] };
        let operation = product(Formula::Fresh, arithmetic, inputs, &saved);
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// Batched product with `other` along `length`; the result has `elements`.
    #[must_use]
    pub fn matmul(&self, other: &Tensor<'t>, elements: u64, length: u64) -> Tensor<'t> {
        let inputs = [self.input(), other.input()];
        let saved = Kept::new([
            kept(self.storage, other.needs_grad()),
            kept(other.storage, self.needs_grad()),
        ]);
        let arithmetic = Arithmetic::Product(2 * elements * length);
        let operation = product(Formula::MatrixProduct, arithmetic, &inputs, saved.as_slice());
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// `self + scale · x·y` along `length` in one batched operation; the result has `elements`.
    #[must_use]
    pub fn add_scaled_product(
        &self,
        x: &Tensor<'t>,
        y: &Tensor<'t>,
        elements: u64,
        length: u64,
    ) -> Tensor<'t> {
        let inputs = [self.input(), x.input(), y.input()];
        let saved = [x.storage, y.storage];
        let arithmetic = Arithmetic::Product(2 * elements * length);
        let operation = product(Formula::ScaledBatchProduct, arithmetic, &inputs, &saved);
        self.tape.record(&operation, elements, x.element_bytes, false, &[])
    }
}
