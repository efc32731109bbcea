//! I: what the HF Trainer and accelerate ask.

pub(crate) mod accelerate_fields;
pub(crate) mod auto_find_batch_size;
pub(crate) mod conflicting_arguments;
pub(crate) mod dummy_objects;
pub(crate) mod no_zero_section;
pub(crate) mod save_only_model;
pub(crate) mod unusable_argument;
