//! Element by element, and reductions over the last dimension.

use super::{Kept, Saves, kept, operation};
use crate::model::Parameter;
use crate::tape::{Formula, Input, Kernels, Tensor};

impl<'t> Tensor<'t> {
    fn same_size(&self, formula: Formula, saves: Saves) -> Tensor<'t> {
        self.unary(formula, saves, self.elements, self.element_bytes)
    }

    /// The same values with elements of `bytes`; the same tensor if it has them already.
    #[must_use]
    pub fn cast(&self, bytes: u8) -> Tensor<'t> {
        if self.element_bytes == bytes {
            return self.clone();
        }
        self.unary(Formula::Fresh, Saves::Nothing, self.elements, bytes)
    }

    /// Change sign.
    #[must_use]
    pub fn neg(&self) -> Tensor<'t> {
        self.same_size(Formula::FreshLike, Saves::Nothing)
    }

    /// Multiply or divide by a number.
    #[must_use]
    pub fn scale(&self) -> Tensor<'t> {
        self.same_size(Formula::FreshLike, Saves::Nothing)
    }

    /// Add a number.
    #[must_use]
    pub fn add_scalar(&self) -> Tensor<'t> {
        self.same_size(Formula::Pass, Saves::Nothing)
    }

    /// A small integer power.
    #[must_use]
    pub fn pow(&self) -> Tensor<'t> {
        self.same_size(Formula::TwoTemporaries, Saves::Input)
    }

    /// Reciprocal square root.
    #[must_use]
    pub fn rsqrt(&self) -> Tensor<'t> {
        self.same_size(Formula::TwoTemporaries, Saves::Output)
    }

    /// An activation computed from, and saving, its input: silu, gelu.
    #[must_use]
    pub fn activate(&self) -> Tensor<'t> {
        self.same_size(Formula::FreshLike, Saves::Input)
    }

    /// An activation whose gradient needs only its output: relu, tanh, sigmoid, softmax.
    #[must_use]
    pub fn squash(&self) -> Tensor<'t> {
        self.same_size(Formula::FreshLike, Saves::Output)
    }

    /// Softmax computed in 32 bits.
    #[must_use]
    pub fn softmax_in_fp32(&self) -> Tensor<'t> {
        if self.tape.options().kernels == Kernels::Cuda {
            return self.unary(Formula::Fresh, Saves::Output, self.elements, 4);
        }
        self.cast(4).squash()
    }

    /// `x · sigmoid(1.702 x)`.
    #[must_use]
    pub fn quick_gelu(&self) -> Tensor<'t> {
        let gate = {
            let scaled = self.scale();
            scaled.squash()
        };
        self.mul(&gate)
    }

    /// The gelu that BLOOM writes as a custom function, made of plain operations without a graph.
    #[must_use]
    pub fn bloom_gelu(&self) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [self.storage];
        let operation = crate::tape::TapeOperation {
            saves_late: true,
            ..operation(Formula::BloomGelu, &inputs, &saved)
        };
        let tape = self.tape;
        let made = tape.no_grad(|| {
            // x * 0.5 * (1 + tanh(0.79788456 * x * (1 + 0.044715 * x * x)))
            let half = self.scale();
            let inner = {
                let scaled = self.scale();
                let one_plus = {
                    let square = {
                        let cubic = self.scale();
                        cubic.mul(self)
                    };
                    square.add_scalar()
                };
                scaled.mul(&one_plus)
            };
            let tanh = inner.squash();
            drop(inner);
            let plus = tanh.add_scalar();
            drop(tanh);
            half.mul(&plus)
        });
        tape.adopt(made, &operation)
    }

    /// Mean over groups of `width` elements.
    #[must_use]
    pub fn mean(&self, width: u64) -> Tensor<'t> {
        self.unary(Formula::FreshLike, Saves::Nothing, self.elements / width, self.element_bytes)
    }

    /// Mean over patches of an image: the input is saved, the result has `elements`.
    #[must_use]
    pub fn average_pool(&self, elements: u64) -> Tensor<'t> {
        self.unary(Formula::FreshLike, Saves::Input, elements, self.element_bytes)
    }

    /// Sum over groups of `width` elements; the gradient is an expanded view.
    #[must_use]
    pub fn sum(&self, width: u64) -> Tensor<'t> {
        self.unary(Formula::View, Saves::Nothing, self.elements / width, self.element_bytes)
    }

    /// `silu(self) * up` in one kernel of Liger's, which writes the gradients over what it saved.
    #[must_use]
    pub fn liger_gate(&self, up: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), up.input()];
        let saved = [self.storage, up.storage];
        let operation = operation(Formula::Made, &inputs, &saved);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }

    /// A tensor that is kept as it is but allocated anew (`contiguous`, `clone`).
    #[must_use]
    pub fn copy(&self) -> Tensor<'t> {
        self.same_size(Formula::Pass, Saves::Nothing)
    }

    /// `self + other`, broadcasting.
    #[must_use]
    pub fn add(&self, other: &Tensor<'t>) -> Tensor<'t> {
        self.combine(other, Formula::Pass, false)
    }

    /// `self - other`, broadcasting.
    #[must_use]
    pub fn sub(&self, other: &Tensor<'t>) -> Tensor<'t> {
        self.combine(other, Formula::Difference, false)
    }

    /// `self * other`, broadcasting. Each factor is saved if the other wants a gradient.
    #[must_use]
    pub fn mul(&self, other: &Tensor<'t>) -> Tensor<'t> {
        self.combine(other, Formula::Product, true)
    }

    fn combine(&self, other: &Tensor<'t>, formula: Formula, saves: bool) -> Tensor<'t> {
        let inputs = [self.input(), other.input()];
        let saved = Kept::new([
            kept(self.storage, saves && other.needs_grad()),
            kept(other.storage, saves && self.needs_grad()),
        ]);
        let operation = operation(formula, &inputs, saved.as_slice());
        let elements = self.elements.max(other.elements);
        let element_bytes = self.element_bytes.max(other.element_bytes);
        self.tape.record(&operation, elements, element_bytes, false, &[])
    }

    /// `weight * self` for a parameter that is broadcast over the rows.
    #[must_use]
    pub fn mul_parameter(&self, weight: Parameter) -> Tensor<'t> {
        self.mul_parameter_seen_as(weight, weight.input())
    }

    /// The same where the gradient of the parameter takes another way.
    pub(crate) fn mul_parameter_seen_as(&self, weight: Parameter, input: Input) -> Tensor<'t> {
        let inputs = [input, self.input()];
        let saved = Kept::new([
            kept(weight.storage(), self.needs_grad()),
            kept(self.storage, weight.is_trainable),
        ]);
        let operation = operation(Formula::Product, &inputs, saved.as_slice());
        let element_bytes = self.element_bytes.max(weight.element_bytes);
        self.tape.record(&operation, self.elements, element_bytes, false, &[])
    }

    /// Dropout: the noise is a tensor of its own, in the element type of the input or as a byte mask. Nothing happens
    /// when `is_active` is false.
    #[must_use]
    pub fn dropout(&self, is_active: bool) -> Tensor<'t> {
        if !is_active {
            return self.clone();
        }
        let noise_bytes = match self.tape.options().kernels {
            Kernels::Cpu => self.element_bytes,
            Kernels::Cuda => 1,
        };
        let mut noise =
            self.tape.fresh(self.elements, noise_bytes, crate::tape::Category::Activation);
        noise.element_bytes = self.element_bytes;
        self.mul(&noise)
    }
}

impl<'t> Tensor<'t> {
    /// `self + weight` for a parameter that is broadcast over the images.
    #[must_use]
    pub fn add_parameter(&self, weight: Parameter) -> Tensor<'t> {
        let inputs = [self.input(), weight.input()];
        let operation = operation(Formula::Pass, &inputs, &[]);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }

    /// `self += other`: no new tensor, and the same gradient to both.
    #[must_use]
    pub fn add_in_place(&self, other: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), other.input()];
        self.tape.view_of(self, self.elements, &operation(Formula::Pass, &inputs, &[]))
    }

    /// `self /= other`: the old values are copied, because the gradient needs them.
    #[must_use]
    pub fn divide_in_place(&self, other: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), other.input()];
        if !self.needs_grad() && !other.needs_grad() {
            return self.clone();
        }
        let old =
            self.tape.fresh(self.elements, self.element_bytes, crate::tape::Category::Activation);
        let saved = [old.storage, other.storage];
        self.tape.view_of(self, self.elements, &operation(Formula::Quotient, &inputs, &saved))
    }
}

impl<'t> Tensor<'t> {
    /// The tanh form of gelu written out in plain operations:
    /// `0.5 x (1 + tanh(c (x + c' x³)))`.
    #[must_use]
    pub fn gelu_new(&self) -> Tensor<'t> {
        let half = self.scale();
        let bent = {
            let inner = {
                let sum = {
                    let cubic = {
                        let power = self.pow();
                        power.scale()
                    };
                    self.add(&cubic)
                };
                sum.scale()
            };
            let tanh = inner.squash();
            drop(inner);
            tanh.add_scalar()
        };
        half.mul(&bent)
    }
}
