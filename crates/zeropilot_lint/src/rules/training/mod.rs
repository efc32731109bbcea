//! What training scripts do that the config they run under does not bear.
//!
//! Letters are those of what goes wrong: hangs, clipping, saving, launching, and `T` for code that trains on without a word. A script is only read; what depends on
//! the way through it is left alone.

pub(crate) mod auto_for_frozen_model;
pub(crate) mod clip_by_value;
pub(crate) mod clipping_call;
pub(crate) mod collective_on_one_rank;
pub(crate) mod evaluation_before_training;
pub(crate) mod evaluation_mode_kept;
pub(crate) mod experts_on_some_ranks;
pub(crate) mod forward_on_one_rank;
pub(crate) mod frozen_model_optimizer;
pub(crate) mod frozen_model_whole;
mod frozen_models;
pub(crate) mod gathered_on_one_rank;
pub(crate) mod generation_gathers_model;
pub(crate) mod gradients_cleared;
pub(crate) mod graph_kept;
pub(crate) mod images_on_some_ranks;
pub(crate) mod init_before_group;
pub(crate) mod loader_batch;
pub(crate) mod local_rank_default;
pub(crate) mod local_rank_not_taken;
mod local_values;
pub(crate) mod lora_reference_pass;
pub(crate) mod loss_backward_fp16;
pub(crate) mod loss_scaled_twice;
pub(crate) mod module_on_some_ranks;
pub(crate) mod moe_stage_3;
pub(crate) mod no_sync;
pub(crate) mod optimizer_beside_engine;
pub(crate) mod optimizer_stepped_by_script;
pub(crate) mod pipeline_stage;
pub(crate) mod ranks_skip_steps;
pub(crate) mod same_samples;
pub(crate) mod sampler_epoch;
pub(crate) mod saved_empty;
pub(crate) mod scheduler_stepped_twice;
pub(crate) mod scheduler_without_engine;
pub(crate) mod sequence_parallel_gradients;
pub(crate) mod softmax_twice;
pub(crate) mod state_dict_into_shards;
pub(crate) mod state_dict_not_gathered;
pub(crate) mod step_at_boundary;
pub(crate) mod steps_filled_by_evaluation;
mod tasks;
pub(crate) mod tiled_loss_sum;
pub(crate) mod tiled_loss_tied;
pub(crate) mod two_configs;
pub(crate) mod uneven_shards;
pub(crate) mod unsynced_generation;
mod unused_optimizer;
pub(crate) mod vllm_stays_awake;
pub(crate) mod vllm_sync_gathers_model;
pub(crate) mod writer_needs_launcher;

use zeropilot_job::Call;

/// Whether a script looks at the stage before it makes a call.
fn asks_for_the_stage(call: &Call) -> bool {
    let words = ["stage", "zero", "no_sync", "deepspeed"];
    call.questions.iter().any(|asked| words.iter().any(|word| asked.to_lowercase().contains(word)))
}

/// A config for the bare engine in stage 3.
const STAGE_3: &str = r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

/// A config for the bare engine in stage 1.
const STAGE_1: &str =
    r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}"#;

/// A config for the bare engine in stage 2.
const STAGE_2: &str =
    r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;
