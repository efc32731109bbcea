//! What a job trains for, and which models run beside the trained one.

use crate::library_version::LibraryVersion;
use crate::name::{ReferenceName, RolloutName, TaskName, TrainerName};
use crate::origin::Sourced;

/// What a job says of vLLM on the GPUs that train.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobVllm {
    /// Its share of a GPU.
    pub share: Option<Sourced<f64>>,
    /// Whether it sleeps while the model is trained.
    pub sleeps: Option<Sourced<bool>>,
    /// GPUs that share one copy of its weights.
    pub tensor_parallel: Option<Sourced<u64>>,
}

/// How often a job generates completions, and how often it learns from them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobReuse {
    /// Micro-batches whose completions are generated at once.
    pub steps_per_generation: Option<Sourced<u64>>,
    /// The same as completions on all GPUs.
    pub generation_batch_size: Option<Sourced<u64>>,
    /// Times that a completion is learned from.
    pub num_iterations: Option<Sourced<u64>>,
}

/// What a job trains for, where that is not the next token.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTask {
    /// The task.
    pub task: Sourced<TaskName>,
    /// The teacher, as the job names it.
    pub teacher: Option<Sourced<String>>,
    /// The model that judges completions, as the job names it.
    pub reward_model: Option<Sourced<String>>,
    /// The value model of PPO, as the job names it.
    pub critic: Option<Sourced<String>>,
    /// Completions that PPO generates and judges at once on a GPU.
    pub rollout_batch: Option<Sourced<u64>>,
    /// How often completions are generated, and how often they are learned from.
    pub reuse: JobReuse,
    /// What the trained model is compared with.
    pub reference: Option<Sourced<ReferenceName>>,
    /// Tokens of a completion.
    pub completion_len: Option<Sourced<u64>>,
    /// What generates completions.
    pub rollout: Option<Sourced<RolloutName>>,
    /// What vLLM takes of the GPUs that train.
    pub vllm: JobVllm,
    /// Whose trainer computes the loss, where it is not TRL's.
    pub trainer: Option<Sourced<TrainerName>>,
    /// The release of TRL that the project asks for, or that the framework is built on.
    pub trl: Option<Sourced<LibraryVersion>>,
}
