//! The vocabulary of programs: what each operation allocates, saves, and allocates in backward.
//!
//! Operations are methods of [`Tensor`] that borrow their operands, so that the
//! caller decides how long each of its variables lives. A nested expression of the eager program is
//! written as a block: the inner value dies when the block ends.

mod attention;
mod elementwise;
mod exchange;
mod expert;
mod index;

mod linear;
mod loss;
mod norm;
#[cfg(test)]
mod published;
mod rotary;
mod view;

pub use attention::{Heads, HeadsFirst, Mask};
pub(crate) use expert::{ExpertFolds, ExpertWeights, Routing};
pub use linear::{LinearKind, QuantizedProduct};
pub use rotary::Rotary;

use crate::model::Parameter;
use crate::tape::{
    Arithmetic, Category, Formula, Input, StorageId, Tape, TapeOperation, Target, Tensor,
};

impl Parameter {
    /// Its weight as something an operation saves.
    pub(crate) fn storage(self) -> StorageId {
        StorageId::weight(self.id)
    }

    /// This parameter as an input of an operation.
    pub(crate) fn input(self) -> Input {
        // The leaf index is the parameter index; both are small.
        #[allow(clippy::cast_possible_truncation)]
        let leaf = self.id.index() as u32;
        Input {
            target: if self.is_trainable { Target::Leaf(leaf) } else { Target::None },
            elements: self.elements,
            element_bytes: self.element_bytes,
            is_parameter: true,
        }
    }
}

/// An operand an operation may keep for backward, and whether it does.
pub(crate) fn kept(storage: StorageId, keep: bool) -> Option<StorageId> {
    keep.then_some(storage)
}

/// The storages of `slots` that are kept, in order.
pub(crate) struct Kept<const N: usize> {
    storages: [StorageId; N],
    len: usize,
}

impl<const N: usize> Kept<N> {
    pub(crate) fn new(slots: [Option<StorageId>; N]) -> Self {
        let mut storages = [StorageId::OUTSIDE; N];
        let mut len = 0;
        for storage in slots.into_iter().flatten() {
            storages[len] = storage;
            len += 1;
        }
        Self { storages, len }
    }

    pub(crate) fn as_slice(&self) -> &[StorageId] {
        &self.storages[..self.len]
    }
}

/// An operation with the usual settings.
pub(crate) fn operation<'a>(
    formula: Formula,
    inputs: &'a [Input],
    saved_inputs: &'a [StorageId],
) -> TapeOperation<'a> {
    TapeOperation {
        formula,
        inputs,
        saved_inputs,
        saves_late: false,
        category: Category::Activation,
        arithmetic: Arithmetic::None,
    }
}

/// A product of matrices with the usual settings.
pub(crate) fn product<'a>(
    formula: Formula,
    arithmetic: Arithmetic,
    inputs: &'a [Input],
    saved_inputs: &'a [StorageId],
) -> TapeOperation<'a> {
    TapeOperation { arithmetic, ..operation(formula, inputs, saved_inputs) }
}

/// What a one-operand operation saves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saves {
    Nothing,
    Input,
    Output,
}

impl<'t> Tensor<'t> {
    /// An operation on one tensor that makes one tensor.
    pub(crate) fn unary(
        &self,
        formula: Formula,
        saves: Saves,
        elements: u64,
        element_bytes: u8,
    ) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = Kept::new([kept(self.storage, saves == Saves::Input)]);
        let operation = operation(formula, &inputs, saved.as_slice());
        self.tape.record(&operation, elements, element_bytes, saves == Saves::Output, &[])
    }

    /// As [`Tensor::unary`], for a loss tensor.
    pub(crate) fn unary_of_loss(
        &self,
        formula: Formula,
        saves: Saves,
        elements: u64,
        element_bytes: u8,
    ) -> Tensor<'t> {
        let inputs = [self.input()];
        let saved = Kept::new([kept(self.storage, saves == Saves::Input)]);
        let operation = TapeOperation {
            category: Category::Loss,
            ..operation(formula, &inputs, saved.as_slice())
        };
        self.tape.record(&operation, elements, element_bytes, saves == Saves::Output, &[])
    }
}

impl Tape {
    /// An integer helper of `elements` 64-bit numbers.
    #[must_use]
    pub fn index_tensor(&self, elements: u64) -> Tensor<'_> {
        self.fresh(elements, 8, Category::Index)
    }
}
