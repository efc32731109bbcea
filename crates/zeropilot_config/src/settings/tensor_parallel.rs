//! `tensor_parallel`, typed.

use super::reading::{count, flag};
use crate::python::PyValue;

/// Layers whose weights are split over ranks (DeepSpeed's AutoTP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorParallel {
    /// Ranks that share every layer.
    pub ranks: u64,
    /// Whether reductions of gradients run beside the products of weights.
    pub overlaps: bool,
    /// Whether the output projection keeps its part of the logits; `None` leaves it to the model.
    pub splits_vocabulary: Option<bool>,
    /// Whether the config says itself which layers are split.
    pub has_own_plan: bool,
}

impl TensorParallel {
    /// `None` if nothing is split.
    pub(super) fn read(section: &PyValue) -> Option<Self> {
        let ranks = count(section, "autotp_size", 0);
        let is_given = |key| section.get(key).is_some_and(PyValue::is_true);
        (ranks > 1).then(|| Self {
            ranks,
            overlaps: flag(section, "tp_overlap_comm"),
            splits_vocabulary: match section.get("vocab_parallel_lm_head") {
                Some(PyValue::Bool(splits)) => Some(*splits),
                _ => None,
            },
            has_own_plan: is_given("preset_model") || is_given("partition_config"),
        })
    }
}
