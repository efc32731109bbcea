//! The arguments of `zeropilot memory`.

use std::path::PathBuf;

use clap::Args;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    Attention, Load, MOST_RANK, MOST_SEQUENCES, MOST_TOKENS, Machines, MemoryRequest, MethodName,
    NumberFormat, Offload, Optimizer, Training,
};
use zeropilot_units::Bytes;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot memory --model Qwen/Qwen3-8B --gpus 5x44GB --stage 3 --seq-len 4096
  zeropilot memory --model llama-3.1-8b --gpus 8xA100-80G --config ds_config.json
  zeropilot memory --model Qwen3-30B-A3B --gpus 5x44GB --method lora --compare
  zeropilot memory --model t5-3b --gpus 1x24GB --stage 3 --offload --timeline

Exit codes: 0 it fits or no memory was given, 1 it does not fit, 2 the question could not be answered";

/// The arguments, as typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MemoryCommand {
    /// The model: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// The GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs), `8`; otherwise those of this machine
    #[arg(long, value_name = "GPUS")]
    pub(crate) gpus: Option<String>,
    #[command(flatten)]
    pub(crate) job: JobOptions,
    /// The rank asked about; otherwise the fullest
    #[arg(long, value_name = "RANK")]
    pub(crate) rank: Option<u64>,
    /// Show all stages and offloads side by side
    #[arg(long, conflicts_with_all = ["config", "timeline", "svg"])]
    pub(crate) compare: bool,
    /// Draw the step in the terminal
    #[arg(long)]
    pub(crate) timeline: bool,
    /// Draw the step as a picture into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The config and how it is trained with: what every question about one run is about.
#[derive(Debug, Args)]
pub(crate) struct JobOptions {
    /// A DeepSpeed config; otherwise one is made from --stage, --offload and --precision
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stage", "offload"])]
    pub(crate) config: Option<PathBuf>,
    /// The ZeRO stage [default: 3]
    #[arg(long, value_name = "STAGE", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) stage: Option<u8>,
    /// What is kept on the host; alone it means all
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "all")]
    pub(crate) offload: Option<Offload>,
    /// The number format of the model; otherwise what the config says, or bf16
    #[arg(long, value_name = "FORMAT")]
    pub(crate) precision: Option<NumberFormat>,
    #[command(flatten)]
    pub(crate) training: TrainingOptions,
    /// Memory of each host, such as `512GiB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) host_ram: Option<Bytes>,
}

impl JobOptions {
    /// The question about a rank on these machines, with the content of the config.
    pub(crate) fn request(
        &self,
        machines: Machines,
        config: Option<WrittenConfig>,
        rank: Option<u64>,
    ) -> MemoryRequest {
        MemoryRequest {
            machines: Machines { host_ram: self.host_ram, ..machines },
            config,
            stage: self.stage,
            offload: self.offload,
            precision: self.precision,
            training: self.training.plain(),
            rank,
        }
    }
}

/// How the model is trained.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingOptions {
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    pub(crate) seq_len: u64,
    /// Tokens of a target sequence of a model with encoder and decoder
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    pub(crate) target_len: Option<u64>,
    /// Sequences each GPU takes at once; otherwise what the config says, or 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_SEQUENCES))]
    pub(crate) micro_batch: Option<u64>,
    /// Micro batches per optimizer step; otherwise what the config says, or 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_SEQUENCES))]
    pub(crate) grad_accum: Option<u64>,
    /// What is trained
    #[arg(long, value_name = "METHOD", default_value = "full")]
    pub(crate) method: MethodName,
    /// Rank of the adapters
    #[arg(long, value_name = "R", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=MOST_RANK))]
    pub(crate) lora_rank: u64,
    /// Modules with an adapter, separated by commas; otherwise every linear layer
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) lora_targets: Vec<String>,
    /// Recompute every layer in backward (gradient checkpointing)
    #[arg(long)]
    pub(crate) grad_checkpointing: bool,
    /// The form of attention
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(crate) attention: Attention,
    /// Projection and cross entropy in one kernel (Liger)
    #[arg(long)]
    pub(crate) fused_loss: bool,
    /// The optimizer, where the config names none
    #[arg(long, value_name = "NAME", default_value = "adamw")]
    pub(crate) optimizer: Optimizer,
    /// How the model is loaded; otherwise partitioned under stage 3 (zero.Init), whole by every rank elsewhere
    #[arg(long, value_name = "HOW")]
    pub(crate) load: Option<Load>,
}

impl MemoryCommand {
    /// What is asked about these GPUs, with the content of the config.
    pub(crate) fn request(&self, gpus: String, config: Option<WrittenConfig>) -> MemoryRequest {
        self.job.request(Machines { gpus, ..Machines::default() }, config, self.rank)
    }
}

/// Options that do nothing as they are combined, each with what they would need.
pub(crate) fn without_effect(request: &MemoryRequest) -> Vec<(&'static str, &'static str)> {
    let (training, usual) = (&request.training, Training::default());
    let adapts = training.method != MethodName::Full;
    let offloads = request.offload.is_some_and(|offload| offload != Offload::None);
    [
        (!adapts && training.lora_rank != usual.lora_rank, "--lora-rank", "`--method lora`"),
        (!adapts && !training.lora_targets.is_empty(), "--lora-targets", "`--method lora`"),
        (offloads && request.stage == Some(0), "--offload", "`--stage` 1, 2, 3"),
    ]
    .into_iter()
    .filter_map(|(is_so, option, needs)| is_so.then_some((option, needs)))
    .collect()
}

impl TrainingOptions {
    /// As every front hands them over.
    pub(crate) fn plain(&self) -> Training {
        Training {
            seq_len: self.seq_len,
            target_len: self.target_len,
            micro_batch: self.micro_batch,
            grad_accum: self.grad_accum,
            method: self.method,
            lora_rank: self.lora_rank,
            lora_targets: self.lora_targets.clone(),
            grad_checkpointing: self.grad_checkpointing,
            attention: self.attention,
            fused_loss: self.fused_loss,
            optimizer: self.optimizer,
            load: self.load,
        }
    }
}
