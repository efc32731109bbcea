//! V: what changed between engine versions.

pub(crate) mod advisory;
pub(crate) mod legacy_stage_1;
#[cfg(feature = "job")]
pub(crate) mod removed_argument;
pub(crate) mod removed_key;
pub(crate) mod removed_optimizer;
pub(crate) mod shared_parameters_too_high;
pub(crate) mod warmup_steps;
