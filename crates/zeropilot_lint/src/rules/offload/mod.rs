//! F: offload and NVMe.

pub(crate) mod gds_needs_cuda;
pub(crate) mod partial_needs_stage_3;
