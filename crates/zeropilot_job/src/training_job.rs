//! A training run as its files describe it: the model, what is trained and how, the config, the ranks. Every value knows
//! who said it; what the files do not settle is absent, and nothing is guessed.

use serde::Deserialize;

use crate::framework::Framework;
use crate::name::{Attention, MethodName, NumberFormat, Optimizer, Quantization};
use crate::origin::{Origin, Sourced};
use crate::task::JobTask;

/// A training run as its files describe it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrainingJob {
    /// Who runs the training loop.
    pub framework: Option<Framework>,
    /// The model, as the job names it.
    pub model: Option<Sourced<String>>,
    /// The DeepSpeed config.
    pub config: Option<JobConfig>,
    /// How many ranks there are.
    pub world_size: Option<Sourced<u64>>,
    /// Tokens of a sequence.
    pub seq_len: Option<Sourced<u64>>,
    /// Sequences each GPU takes at once.
    pub micro_batch: Option<Sourced<u64>>,
    /// Micro-batches per optimizer step.
    pub grad_accum: Option<Sourced<u64>>,
    /// What is trained.
    pub method: Option<Sourced<MethodName>>,
    /// Rank of the adapters.
    pub lora_rank: Option<Sourced<u64>>,
    /// How the base below adapters is stored.
    pub quantization: Option<Sourced<Quantization>>,
    /// Modules with an adapter; none means every linear layer.
    pub lora_targets: Option<Sourced<Vec<String>>>,
    /// Whether backward recomputes the layers.
    pub grad_checkpointing: Option<Sourced<bool>>,
    /// The form of attention.
    pub attention: Option<Sourced<Attention>>,
    /// Whether projection and cross entropy are one kernel.
    pub fused_loss: Option<Sourced<bool>>,
    /// Parts of the model that are frozen.
    pub frozen: FrozenParts,
    /// The most pixels of an image; larger ones are reduced.
    pub max_pixels: Option<Sourced<u64>>,
    /// Which function of DeepSpeed computes the loss in shards.
    pub tiled_loss: Option<Sourced<TiledLoss>>,
    /// In how many.
    pub loss_shards: Option<Sourced<u64>>,
    /// Who says that TRL's trainers compute the loss by a head of their own.
    pub trl_head: Option<Origin>,
    /// Whether all kernels of Liger are used.
    pub liger: Option<Sourced<bool>>,
    /// GPUs that share a sequence.
    pub sequence_parallel: Option<Sourced<u64>>,
    /// Whether feed-forward layers are computed in tiles.
    pub tiled_mlp: Option<Sourced<bool>>,
    /// Whether PyTorch's allocator grows its segments.
    pub expandable_segments: Option<Sourced<bool>>,
    /// The optimizer.
    pub optimizer: Option<Sourced<Optimizer>>,
    /// The number format.
    pub precision: Option<Sourced<NumberFormat>>,
    /// Optimizer steps of the run.
    pub max_steps: Option<Sourced<u64>>,
    /// What it trains for, where that is not the next token.
    pub task: Option<JobTask>,
    /// What the job says that changes memory or time and that no prediction follows.
    pub not_modelled: Vec<NotModelled>,
    /// Values that only the run knows, by the names of this type's fields.
    pub unknown: Vec<&'static str>,
}

/// Which parts of a model that sees or hears are frozen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrozenParts {
    /// The towers for images and audio.
    pub towers: Option<Sourced<bool>>,
    /// What joins them to the language model.
    pub projector: Option<Sourced<bool>>,
    /// The language model.
    pub language: Option<Sourced<bool>>,
}

/// A function of DeepSpeed that computes projection and loss in shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TiledLoss {
    /// `sequence_tiled_compute`.
    SequenceTiled,
    /// `TiledFusedLogitsLoss`.
    TiledFused,
}

/// The DeepSpeed config of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobConfig {
    /// What to call it.
    pub name: String,
    /// Its content.
    pub content: ConfigContent,
    /// Where the job names it.
    pub origin: Origin,
}

/// What is known of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigContent {
    /// This text.
    Text(String),
    /// The file cannot be read.
    Missing,
    /// The script builds it when it runs.
    Computed,
}

/// Something the job says that no prediction follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotModelled {
    /// What it is, in English.
    pub en: String,
    /// What it is, in Chinese.
    pub zh: String,
    /// As the job writes it: `sequence_parallel_size=8`.
    pub written: String,
    /// Which way the prediction errs.
    pub direction: Direction,
    /// Where the job says it.
    pub origin: Origin,
}

impl NotModelled {
    /// Whether it is what the job writes under this name.
    pub fn is_of(&self, name: &str) -> bool {
        let rest = self.written.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([':', '=']))
    }
}

/// Which way an answer errs that leaves something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The run needs less than predicted.
    Lower,
    /// The run needs more than predicted.
    Higher,
    /// It may need less or more.
    Either,
}
