//! The batch equation, solved.

use num_traits::ToPrimitive;

use crate::python::{Number, PyValue};
use crate::resolve::ResolvedConfig;

/// `train = micro × accumulation × ranks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Samples per optimizer step over all ranks.
    pub train: u64,
    /// Samples one rank takes at once.
    pub micro: u64,
    /// Micro batches per optimizer step.
    pub accumulation: u64,
}

impl Batch {
    pub(super) fn read(resolved: &ResolvedConfig) -> Option<Self> {
        Some(Self {
            train: whole(&resolved.train_batch_size())?,
            micro: whole(&resolved.micro_batch_size())?,
            accumulation: whole(&resolved.gradient_accumulation_steps())?,
        })
    }
}

fn whole(value: &PyValue) -> Option<u64> {
    match value.number()? {
        Number::Int(value) => value.to_u64(),
        Number::Float(value) => value.to_u64(),
    }
}
