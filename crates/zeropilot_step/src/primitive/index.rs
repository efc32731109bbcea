//! Looking up rows by index.

use super::operation;
use crate::model::Parameter;
use crate::tape::{Formula, Tensor};

impl<'t> Tensor<'t> {
    /// Rows of an embedding table; the ids are saved, the gradient is dense.
    #[must_use]
    pub fn look_up(&self, table: Parameter, width: u64) -> Tensor<'t> {
        let inputs = [table.input()];
        let saved = [self.storage];
        let operation = operation(Formula::Fresh, &inputs, &saved);
        self.tape.record(&operation, self.elements * width, table.element_bytes, false, &[])
    }

    /// As [`Tensor::look_up`], of a table stored transposed.
    #[must_use]
    pub fn look_up_transposed(&self, table: Parameter, width: u64) -> Tensor<'t> {
        let weight = [table.input()];
        // The accumulator wants the gradient in the parameter's own layout: a copy.
        let target = self.tape.node_for(&operation(Formula::Copy, &weight, &[]));
        let inputs = [crate::tape::Input { target, ..table.input() }];
        let saved = [self.storage];
        let operation = operation(Formula::Fresh, &inputs, &saved);
        self.tape.record(&operation, self.elements * width, table.element_bytes, false, &[])
    }

    /// `self` with the places of `mask` taken from `source`.
    #[must_use]
    pub fn masked_scatter(&self, source: &Tensor<'t>, mask: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), source.input()];
        let saved = [mask.storage];
        let operation = operation(Formula::Fresh, &inputs, &saved);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }

    /// Write `values` into the rows of `self` that a mask picks, in place.
    #[must_use]
    pub fn put_rows(&self, values: &Tensor<'t>, mask: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), values.input()];
        let saved = [mask.storage];
        self.tape.view_of(self, self.elements, &operation(Formula::IndexPut, &inputs, &saved))
    }
}
