//! G: buckets, gradients and GPU memory.

pub(crate) mod allgather_partitions;
pub(crate) mod no_stage;
pub(crate) mod norm_off;
pub(crate) mod norm_off_with_clipping;
pub(crate) mod odd_allgather_bucket;
pub(crate) mod one_rank;
pub(crate) mod sequence_communication;
pub(crate) mod stage_2_keys;
pub(crate) mod stage_3_keys;
pub(crate) mod unmanaged_accumulation;
