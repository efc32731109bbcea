//! L: launching, found in the script that starts the run.

pub(crate) mod accelerate_without_deepspeed;
pub(crate) mod config_not_found;
pub(crate) mod device_map;
pub(crate) mod divided_loss;
pub(crate) mod environment;
pub(crate) mod fewer_devices;
pub(crate) mod fsdp;
pub(crate) mod gemma_3_from_config;
pub(crate) mod hostfile;
pub(crate) mod model_first;
pub(crate) mod no_engine_state;
pub(crate) mod no_launcher;
pub(crate) mod nvme_path_dropped;
pub(crate) mod one_rank_saves;
pub(crate) mod renamed_variable;
pub(crate) mod two_filters;
pub(crate) mod variables_left_behind;
pub(crate) mod visible_devices;
pub(crate) mod whisper_stage_3;
