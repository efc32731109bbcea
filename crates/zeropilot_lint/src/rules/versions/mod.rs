//! V: what changed between engine versions.

pub(crate) mod removed_key;
pub(crate) mod shared_parameters_too_high;
