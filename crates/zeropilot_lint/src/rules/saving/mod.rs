//! S: saving and resuming.

pub(crate) mod no_consolidated_weights;
pub(crate) mod not_universal;
pub(crate) mod other_precision;
pub(crate) mod other_ranks;
pub(crate) mod other_stage;
