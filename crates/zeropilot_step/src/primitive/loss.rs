//! What losses are made of.

use super::{Saves, operation};
use crate::tape::{Category, Formula, TapeOperation, Tensor};

impl<'t> Tensor<'t> {
    /// Log-probabilities.
    #[must_use]
    pub fn log_softmax(&self) -> Tensor<'t> {
        let (elements, bytes) = (self.elements, self.element_bytes);
        self.unary_of_loss(Formula::FreshLike, Saves::Output, elements, bytes)
    }

    /// A cast within the loss.
    #[must_use]
    pub fn cast_loss(&self, bytes: u8) -> Tensor<'t> {
        if self.element_bytes == bytes {
            return self.clone();
        }
        self.unary_of_loss(Formula::Fresh, Saves::Nothing, self.elements, bytes)
    }

    /// Negative log-likelihood of `labels`: the loss, and the total weight kept for backward.
    #[must_use]
    pub fn nll(&self, labels: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [self.storage, labels.storage];
        let operation = TapeOperation {
            category: Category::Loss,
            ..operation(Formula::FreshLike, &inputs, &saved)
        };
        let scalar = u64::from(self.element_bytes);
        self.tape.record(&operation, 1, self.element_bytes, false, &[scalar])
    }

    /// Divide by a count that is a tensor of its own and wants no gradient.
    #[must_use]
    pub fn divide_by_count(&self, count: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [count.storage];
        let operation = TapeOperation {
            category: Category::Loss,
            ..operation(Formula::FreshLike, &inputs, &saved)
        };
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }

    /// The sum of `elements` values, divided by `count`.
    #[must_use]
    pub fn mean_over(&self, count: &Tensor<'t>, elements: u64) -> Tensor<'t> {
        let total = self.sum(elements);
        total.divide_by_count(count)
    }

    /// Sum over groups of `width`, accumulated and returned in 32 bits.
    #[must_use]
    pub fn sum_in_fp32(&self, width: u64) -> Tensor<'t> {
        self.unary_of_loss(Formula::View, Saves::Nothing, self.elements / width, 4)
    }

    /// Overwrite the places of `mask` with a number, in place.
    #[must_use]
    pub fn fill_in_place(&self, mask: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [mask.storage];
        let operation = operation(Formula::FreshLike, &inputs, &saved);
        self.tape.view_of(self, self.elements, &operation)
    }
}
