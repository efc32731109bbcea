//! S: saving and resuming.

pub(crate) mod no_consolidated_weights;
