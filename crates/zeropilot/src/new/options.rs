//! The arguments of `zeropilot new`, as typed.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use zeropilot_ask::Offload;
use zeropilot_plan::{
    Device, OptimizerKind, Preset, SchedulerKind, Stage, Target, WarmupShape, Wish,
};
use zeropilot_units::Bytes;

use super::knobs::KnobOptions;

/// The arguments of `zeropilot new`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NewCommand {
    /// A stage with what it offloads, by the name people use
    #[arg(value_name = "PRESET", value_parser = presets())]
    pub(crate) preset: Option<Preset>,
    /// What is partitioned: 1 optimizer states, 2 gradients too, 3 weights too
    #[arg(long, value_name = "0-3", value_parser = stages())]
    pub(crate) stage: Option<Stage>,
    /// The program that will read the config; decides between "auto" and numbers
    #[arg(long = "for", value_name = "PROGRAM", default_value = "deepspeed", value_parser = targets())]
    pub(crate) target: Target,
    /// The file to write, `-` for standard output; otherwise named after the stage
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    pub(crate) force: bool,
    /// Write three configs, small, medium and large, to compare them
    #[arg(long)]
    pub(crate) tiers: bool,
    /// Say what was written as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Size buckets for this model: a name such as qwen3-8b, or a directory with its config.json
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Size buckets for a link that carries so much per second, such as 25GB
    #[arg(long, value_name = "BYTES", requires = "model")]
    pub(crate) link_bandwidth: Option<Bytes>,
    /// The engine the config is checked for; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    #[command(flatten)]
    pub(crate) batch: BatchOptions,
    #[command(flatten)]
    pub(crate) offload: OffloadOptions,
    #[command(flatten)]
    pub(crate) precision: PrecisionOptions,
    #[command(flatten)]
    pub(crate) training: LearningOptions,
    #[command(flatten)]
    pub(crate) sections: SectionOptions,
    #[command(flatten)]
    pub(crate) knobs: KnobOptions,
}

/// Samples per step.
#[derive(Debug, Args)]
#[command(next_help_heading = "Batch: micro batch × accumulation × ranks")]
pub(crate) struct BatchOptions {
    /// Samples one GPU takes at once
    #[arg(long, value_name = "N")]
    pub(crate) micro_batch: Option<NonZeroU64>,
    /// Micro batches per optimizer step
    #[arg(long, value_name = "N")]
    pub(crate) grad_accum: Option<NonZeroU64>,
    /// How many ranks (GPUs) the run has
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroU64>,
    /// Samples per optimizer step over all ranks, from which the accumulation follows
    #[arg(long, value_name = "N")]
    pub(crate) global_batch: Option<NonZeroU64>,
}

/// What is kept off the device.
#[derive(Debug, Args)]
#[command(next_help_heading = "Offload")]
pub(crate) struct OffloadOptions {
    /// Keep in host memory what the stage can: optimizer states, with stage 3 weights too
    #[arg(long)]
    pub(crate) offload: bool,
    /// Where optimizer states are kept
    #[arg(long, value_name = "WHERE")]
    pub(crate) offload_optimizer: Option<DeviceName>,
    /// Where weights are kept; stage 3 only
    #[arg(long, value_name = "WHERE")]
    pub(crate) offload_param: Option<DeviceName>,
    /// A directory on a fast disk, which the engine empties at the start
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) nvme_path: Option<String>,
    /// Page-lock host buffers, which makes copies faster and takes memory from everybody else [default: true]
    #[arg(long, value_name = "BOOL")]
    pub(crate) pin_memory: Option<bool>,
    /// Bytes of one disk request
    #[arg(long, value_name = "BYTES")]
    pub(crate) aio_block_size: Option<Bytes>,
    /// Disk requests in flight
    #[arg(long, value_name = "N")]
    pub(crate) aio_queue_depth: Option<NonZeroU64>,
    /// Threads of one disk transfer
    #[arg(long, value_name = "N")]
    pub(crate) aio_intra_op_parallelism: Option<NonZeroU64>,
    /// Hand disk requests over one by one
    #[arg(long, value_name = "BOOL")]
    pub(crate) aio_single_submit: Option<bool>,
    /// Overlap handing over disk requests with waiting for them
    #[arg(long, value_name = "BOOL")]
    pub(crate) aio_overlap_events: Option<bool>,
}

/// The number format.
#[derive(Debug, Args)]
#[command(next_help_heading = "Precision")]
pub(crate) struct PrecisionOptions {
    /// Train in bf16, which is also what happens if nothing is said
    #[arg(long)]
    pub(crate) bf16: bool,
    /// Train in fp16
    #[arg(long)]
    pub(crate) fp16: bool,
    /// Train in fp32
    #[arg(long)]
    pub(crate) fp32: bool,
    /// fp16: scale the loss always by this, instead of searching
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) loss_scale: Option<f64>,
    /// fp16: begin the search at two to the power of this
    #[arg(long, value_name = "N")]
    pub(crate) initial_scale_power: Option<u64>,
    /// fp16: double the scale after so many steps without overflow
    #[arg(long, value_name = "N")]
    pub(crate) loss_scale_window: Option<u64>,
    /// fp16: overflows in a row that are forgiven before the scale is halved
    #[arg(long, value_name = "N")]
    pub(crate) hysteresis: Option<u64>,
    /// fp16: the scale never falls below this
    #[arg(long, value_name = "N")]
    pub(crate) min_loss_scale: Option<u64>,
}

/// How it learns.
#[derive(Debug, Args)]
#[command(next_help_heading = "Optimizer and schedule")]
pub(crate) struct LearningOptions {
    /// The optimizer the engine builds; `none` leaves it to your script
    #[arg(long, value_name = "NAME", value_parser = optimizers())]
    pub(crate) optimizer: Option<OptimizerName>,
    /// Learning rate
    #[arg(long, visible_alias = "lr", value_name = "X", allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f64>,
    /// Betas of Adam and Lion, such as 0.9,0.95
    #[arg(long, value_name = "X,X", value_parser = pair)]
    pub(crate) betas: Option<(f64, f64)>,
    /// Epsilon of Adam and Adagrad
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) eps: Option<f64>,
    /// Weight decay
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) weight_decay: Option<f64>,
    /// The schedule the engine builds; `none` leaves it to your script
    #[arg(long, value_name = "NAME", value_parser = schedulers())]
    pub(crate) scheduler: Option<SchedulerName>,
    /// Steps until the learning rate is at its height
    #[arg(long, value_name = "N")]
    pub(crate) warmup_steps: Option<NonZeroU64>,
    /// Steps of the whole training
    #[arg(long, value_name = "N")]
    pub(crate) total_steps: Option<NonZeroU64>,
    /// How the learning rate rises [engine's default: log]
    #[arg(long, value_name = "SHAPE")]
    pub(crate) warmup_type: Option<WarmupName>,
    /// Gradient norm to clip at, 0 for no clipping [default: 1.0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) clip: Option<f64>,
}

/// Sections beside ZeRO.
#[derive(Debug, Args)]
#[command(next_help_heading = "DeepSpeed's own gradient checkpointing, and its log")]
pub(crate) struct SectionOptions {
    /// Write the section `activation_checkpointing`, for models that call deepspeed.checkpointing
    #[arg(long)]
    pub(crate) activation_checkpointing: bool,
    /// Split kept activations over the model-parallel ranks
    #[arg(long)]
    pub(crate) partition_activations: bool,
    /// Keep activations in host memory
    #[arg(long)]
    pub(crate) cpu_checkpointing: bool,
    /// Copy activations into one buffer for so many checkpoints
    #[arg(long, value_name = "N")]
    pub(crate) number_checkpoints: Option<NonZeroU64>,
    /// Wait for the device at each checkpoint
    #[arg(long)]
    pub(crate) synchronize_checkpoint_boundary: bool,
    /// Measure the time of each checkpoint
    #[arg(long)]
    pub(crate) profile_checkpoints: bool,
    /// Steps between two lines of the engine's log
    #[arg(long, value_name = "N")]
    pub(crate) steps_per_print: Option<NonZeroU64>,
}

/// Where something is kept.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DeviceName {
    /// On the GPU
    None,
    /// In host memory
    Cpu,
    /// On a disk
    Nvme,
}

impl DeviceName {
    /// As a wish.
    pub(crate) fn wish(self) -> Wish<Device> {
        match self {
            Self::None => Wish::No,
            Self::Cpu => Wish::Yes(Device::Cpu),
            Self::Nvme => Wish::Yes(Device::Nvme),
        }
    }
}

/// How a learning rate rises.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WarmupName {
    /// By the same amount each step
    Linear,
    /// Fast, then slowly
    Log,
}

impl From<WarmupName> for WarmupShape {
    fn from(name: WarmupName) -> Self {
        match name {
            WarmupName::Linear => Self::Linear,
            WarmupName::Log => Self::Log,
        }
    }
}

/// An optimizer, or none.
pub(crate) type OptimizerName = Wish<OptimizerKind>;
/// A schedule, or none.
pub(crate) type SchedulerName = Wish<SchedulerKind>;

const NONE: &str = "none";

/// Presets. What `--offload` takes elsewhere would be read as one, as it takes no value here.
fn presets() -> impl TypedValueParser<Value = Preset> {
    let offloads = Offload::value_variants().iter().filter_map(Offload::to_possible_value);
    let names = Preset::ALL.map(|preset| PossibleValue::new(preset.name())).into_iter();
    PossibleValuesParser::new(names.chain(offloads.map(|value| value.hide(true)))).try_map(|name| {
        name.parse::<Preset>().map_err(|_| {
            "`--offload` takes no value here and means all; `--offload-optimizer cpu` keeps optimizer states alone on the host"
        })
    })
}

fn targets() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(|name| name.parse::<Target>())
}

fn stages() -> impl TypedValueParser<Value = Stage> {
    clap::value_parser!(u8)
        .range(0..=3)
        .try_map(|number| Stage::from_number(number).ok_or("stages are 0 to 3"))
}

fn optimizers() -> impl TypedValueParser<Value = OptimizerName> {
    let names = OptimizerKind::ALL.map(OptimizerKind::name).into_iter().chain([NONE]);
    PossibleValuesParser::new(names).map(|name| {
        let kind = OptimizerKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.map_or(Wish::No, Wish::Yes)
    })
}

fn schedulers() -> impl TypedValueParser<Value = SchedulerName> {
    let names = SchedulerKind::ALL.map(SchedulerKind::type_name).into_iter().chain([NONE]);
    PossibleValuesParser::new(names).map(|name| {
        let kind = SchedulerKind::ALL.into_iter().find(|kind| kind.type_name() == name);
        kind.map_or(Wish::No, Wish::Yes)
    })
}

fn pair(text: &str) -> Result<(f64, f64), String> {
    let numbers: Vec<Result<f64, _>> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_slice() {
        [Ok(first), Ok(second)] => Ok((*first, *second)),
        _ => Err("not two numbers with a comma between them".to_owned()),
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot new --stage 3 --micro-batch 2 --grad-accum 32 --offload --world-size 4 -o ds_zero3.json
  zeropilot new zero2 --for hf-trainer
  zeropilot new zero3 --for deepspeed --model qwen3-8b --world-size 8 --global-batch 256 --micro-batch 2
  zeropilot new zero3_nvme --nvme-path /local_nvme/job1 --fp16 --initial-scale-power 12
  zeropilot new zero3 --tiers -o ds.json
  zeropilot new zero2 -o - | zeropilot check -

Exit codes: 0 written, 2 refused or not writable";
