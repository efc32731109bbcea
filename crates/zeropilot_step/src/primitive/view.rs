//! Views, parts and concatenations.

use super::{Saves, operation};
use crate::tape::{Formula, Tensor};

impl<'t> Tensor<'t> {
    fn view_with(&self, formula: Formula, elements: u64) -> Tensor<'t> {
        let inputs = [self.input()];
        self.tape.view_of(self, elements, &operation(formula, &inputs, &[]))
    }

    /// The same elements in another shape; a node, because it has its place in backward's order.
    #[must_use]
    pub fn view(&self) -> Tensor<'t> {
        self.view_with(Formula::Reshape, self.elements)
    }

    /// A view whose incoming gradient is laid out differently and must be copied first.
    #[must_use]
    pub fn view_with_copied_gradient(&self) -> Tensor<'t> {
        self.view_with(Formula::Copy, self.elements)
    }

    /// A proper part of the tensor: its gradient is a whole tensor of zeros with the part filled in.
    #[must_use]
    pub fn slice(&self, elements: u64) -> Tensor<'t> {
        self.view_with(Formula::FreshLike, elements)
    }

    /// Multiply a part of so many elements by a number, in place. The gradient of the whole is copied, and that of the part
    /// twice: before it is multiplied, and multiplied (`CopySlices` of PyTorch).
    #[must_use]
    pub(crate) fn scale_part_in_place(&self, elements: u64) -> Tensor<'t> {
        let part = elements * u64::from(self.element_bytes);
        let scratch = self.tape.keep_scratch(vec![part; 2]);
        self.view_with(Formula::FreshAll(Some(scratch)), self.elements)
    }

    /// Repeat along a dimension without copying; the gradient is summed.
    #[must_use]
    pub fn expand(&self, elements: u64) -> Tensor<'t> {
        self.view_with(Formula::Reshape, elements)
    }

    /// Cut into parts; their gradients are concatenated when all have arrived.
    #[must_use]
    pub fn split<const N: usize>(&self, elements: [u64; N]) -> [Tensor<'t>; N] {
        let inputs = [self.input()];
        self.tape.views_of(self, elements, &operation(Formula::Gather, &inputs, &[]))
    }

    /// Two halves.
    #[must_use]
    pub fn chunk2(&self) -> [Tensor<'t>; 2] {
        self.split([self.elements / 2; 2])
    }

    /// Concatenate with `other`.
    #[must_use]
    pub fn cat(&self, other: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), other.input()];
        let elements = self.elements + other.elements;
        self.tape.record(
            &operation(Formula::View, &inputs, &[]),
            elements,
            self.element_bytes.max(other.element_bytes),
            false,
            &[],
        )
    }

    /// Expand and copy: repeat every part so that the result has `elements`.
    #[must_use]
    pub fn repeat(&self, elements: u64) -> Tensor<'t> {
        self.unary(Formula::Pass, Saves::Nothing, elements, self.element_bytes)
    }
}

impl<'t> Tensor<'t> {
    /// Copy `source` into a part of `self`, in place.
    #[must_use]
    pub fn fill_slice(&self, source: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input(), source.input()];
        self.tape.view_of(self, self.elements, &operation(Formula::SliceCopy, &inputs, &[]))
    }
}

impl<'t> Tensor<'t> {
    /// `self` where `mask` holds, a number elsewhere.
    #[must_use]
    pub fn where_mask(&self, mask: &Tensor<'t>) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = [mask.storage];
        let operation = operation(Formula::FreshLike, &inputs, &saved);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }
}
