//! K: keys, types and file format.

pub(crate) mod autotuning_left_on;
pub(crate) mod breakdown_needs_booleans;
pub(crate) mod comment_key;
pub(crate) mod deepcompile_alone;
pub(crate) mod deprecated_key;
pub(crate) mod deprecated_together;
pub(crate) mod duplicate_key;
pub(crate) mod fractional_number;
pub(crate) mod layer_drop;
pub(crate) mod legacy_precision_key;
pub(crate) mod min_loss_scale;
pub(crate) mod missing_key;
pub(crate) mod not_a_section;
pub(crate) mod not_strict_json;
pub(crate) mod not_utf8;
pub(crate) mod offload_device;
pub(crate) mod out_of_bounds;
pub(crate) mod quoted_clipping;
pub(crate) mod quoted_false;
pub(crate) mod random_ltd_keys;
pub(crate) mod root_not_an_object;
pub(crate) mod schedule_ends_early;
pub(crate) mod spelt_twice;
pub(crate) mod steps_per_print;
pub(crate) mod steps_per_print_overwritten;
pub(crate) mod tensor_parallel_sizes;
pub(crate) mod timers_left_on;
pub(crate) mod unknown_in_strict_section;
pub(crate) mod unknown_key;
pub(crate) mod unreadable;
pub(crate) mod wrong_level;
pub(crate) mod wrong_value;

/// Sections that the engine reads with plain dictionary code and whose names are all its own: an
/// unknown name in them is read by nobody. Sections with names of the user's choosing are not here.
pub(crate) const HAND_READ_SECTIONS: [&str; 9] = [
    "activation_checkpointing",
    "aio",
    "autotuning",
    "checkpoint",
    "data_types",
    "flops_profiler",
    "optimizer",
    "scheduler",
    "torch_autocast",
];
