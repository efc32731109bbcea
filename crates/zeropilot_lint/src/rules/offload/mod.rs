//! F: offload and NVMe.

pub(crate) mod aio_without_nvme;
pub(crate) mod gds_needs_cuda;
pub(crate) mod nvme_keys;
pub(crate) mod nvme_needs_stage_3;
pub(crate) mod nvme_without_path;
pub(crate) mod optimizer_needs_zero;
pub(crate) mod param_needs_stage_3;
pub(crate) mod partial_needs_stage_3;
pub(crate) mod super_offload;
pub(crate) mod super_offload_clips;
pub(crate) mod super_offload_device;
pub(crate) mod zenflow;
