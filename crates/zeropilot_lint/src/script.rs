//! What a training script decides beside the config and never writes into it.

use crate::checkpoint::Checkpoint;

/// Arguments of the HF Trainer that no key of the config is filled from. The default knows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// `optim`, such as `adamw_torch` or `paged_adamw_8bit`.
    pub optim: Option<String>,
    /// `lr_scheduler_type`, such as `cosine`.
    pub lr_scheduler_type: Option<String>,
    /// The class of the optimizer that the script hands to `deepspeed.initialize`.
    pub client_optimizer: Option<String>,
    /// The checkpoint that is resumed.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the model's checkpoint has an output matrix of its own although the class ties it.
    pub output_stored_apart: Option<bool>,
    /// `save_only_model`.
    pub save_only_model: Option<bool>,
    /// `load_best_model_at_end`.
    pub load_best_model_at_end: Option<bool>,
    /// Whether `deepspeed --autotuning` starts it.
    pub is_autotuned: bool,
    /// Whether `engine.compile()` is called.
    pub is_compiled: bool,
    /// Whether it trains adapters of PEFT, which are saved by themselves.
    pub trains_adapters: bool,
    /// Whether it calls `deepspeed.initialize` itself.
    pub makes_engine: bool,
    /// Machines that the launch starts it on.
    pub nodes: Option<usize>,
    /// Whether ranks work on the same samples, as the script arranges it.
    pub sharing: Option<Sharing>,
    /// Whether the arguments of the HF Trainer have a warmup; `None` if the files of the job do not settle it.
    pub warms_up: Option<bool>,
    /// Whether the job evaluates without training.
    pub only_evaluates: bool,
    /// What the files of the job say, if there are any beside the config.
    pub job: Option<Job>,
}

/// Ranks that work on the same samples: a pipeline, or a unit for model or sequence parallelism that the engine is
/// handed. The batch is then divided among groups of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// This many form a group.
    Ranks(usize),
    /// Only the run knows how many.
    Unknown,
}

/// What is known about the job around a config, as far as its files were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The functions and classes that the training script calls, if it was read.
    pub calls: Option<Vec<String>>,
    /// Arguments with their values.
    pub arguments: Vec<(String, String)>,
    /// Arguments whose values only the run decides.
    pub open: Vec<String>,
}
