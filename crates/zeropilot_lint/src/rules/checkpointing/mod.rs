//! C: activation checkpointing.

pub(crate) mod contiguous_needs_partition;
pub(crate) mod not_read_by_models;
