//! The norms, as the programs write them.

use super::operation;
use crate::model::Parameter;
use crate::tape::{Formula, LayerKernels, Tensor};

impl<'t> Tensor<'t> {
    /// The kernel `layer_norm` over rows of `width`.
    #[must_use]
    pub fn layer_norm(&self, weight: Parameter, bias: Parameter, width: u64) -> Tensor<'t> {
        if self.tape().casts_products() && self.element_bytes != 4 {
            return self.cast(4).layer_norm(weight, bias, width);
        }
        let inputs = [self.input(), weight.input(), bias.input()];
        let statistics = self.elements / width * u64::from(self.element_bytes);
        // In this order: input, weight, bias; then mean and reciprocal deviation.
        let saved = [self.storage, weight.storage(), bias.storage()];
        let operation = operation(Formula::Fresh, &inputs, &saved);
        let extra = [statistics, statistics];
        self.tape.record(&operation, self.elements, self.element_bytes, false, &extra)
    }

    /// RMS norm as Llama writes it: normalise in 32 bits, cast back, multiply by the weight. Of `ranks` each may have
    /// only some of the rows.
    #[must_use]
    pub fn rms_norm(&self, weight: Parameter, width: u64, ranks: u64) -> Tensor<'t> {
        if self.tape().options().layer_kernels == LayerKernels::Liger {
            return self.liger_norm(weight, width, ranks);
        }
        let mut x = self.cast(4);
        let variance = {
            let square = x.pow();
            square.mean(width)
        };
        x = x.over_deviation(&variance);
        let y = x.cast(self.element_bytes);
        y.mul_parameter_seen_as(weight, weight.input_among(self.tape, ranks))
    }

    /// Liger's kernel: the gradient takes the place of the incoming one.
    fn liger_norm(&self, weight: Parameter, width: u64, ranks: u64) -> Tensor<'t> {
        let inputs = [self.input(), weight.input_among(self.tape, ranks)];
        let saved = [self.storage, weight.storage()];
        let factors = self.elements / width * 4;
        let operation = operation(Formula::PassFirst, &inputs, &saved);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[factors])
    }

    /// `self * rsqrt(variance + eps)`.
    fn over_deviation(&self, variance: &Tensor<'t>) -> Tensor<'t> {
        let inverse = {
            let shifted = variance.add_scalar();
            shifted.rsqrt()
        };
        self.mul(&inverse)
    }

    /// RMS norm as Gemma writes it: the weight is one plus a parameter, in 32 bits.
    #[must_use]
    pub fn gemma_norm(&self, weight: Parameter, width: u64) -> Tensor<'t> {
        let mut y = self.gemma_normalised(width);
        y = {
            let weight = self.tape().one_plus(weight);
            y.mul(&weight)
        };
        y.cast(self.element_bytes)
    }

    fn gemma_normalised(&self, width: u64) -> Tensor<'t> {
        let x = self.cast(4);
        let inverse = {
            let shifted = {
                let mean = {
                    let square = x.pow();
                    square.mean(width)
                };
                mean.add_scalar()
            };
            shifted.rsqrt()
        };
        x.mul(&inverse)
    }

    /// RMS norm as T5 writes it: the 16-bit input itself is multiplied by the 32-bit factor.
    #[must_use]
    pub fn t5_norm(&self, weight: Parameter, width: u64) -> Tensor<'t> {
        let variance = {
            let square = {
                let wide = self.cast(4);
                wide.pow()
            };
            square.mean(width)
        };
        let mut y = self.over_deviation(&variance);
        if weight.element_bytes < 4 {
            y = y.cast(weight.element_bytes);
        }
        y.mul_parameter(weight)
    }
}

impl crate::tape::Tape {
    /// `1 + weight` in 32 bits, as Gemma's norm computes it.
    fn one_plus(&self, weight: Parameter) -> Tensor<'_> {
        let inputs = [weight.input()];
        if weight.element_bytes == 4 {
            let operation = operation(Formula::Pass, &inputs, &[]);
            return self.record(&operation, weight.elements, 4, false, &[]);
        }
        let wide = {
            let operation = operation(Formula::Fresh, &inputs, &[]);
            self.record(&operation, weight.elements, 4, false, &[])
        };
        wide.add_scalar()
    }
}
