//! V: what changed between engine versions.

pub(crate) mod eigenvalue_disabled;
pub(crate) mod removed_key;
