//! Why a wish gives no config: contradictions, and keys that nobody would read. Data without words.

use crate::knob::Knob;
use crate::optimizer::OptimizerKind;
use crate::preset::Preset;
use crate::scheduler::SchedulerKind;
use crate::target::Target;
use crate::zero::Stage;

/// What stands against a [`Request`](crate::Request).
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Neither a preset nor a stage.
    NothingChosen,
    /// A preset, and another stage than it has.
    PresetAndStage {
        /// The preset.
        preset: Preset,
        /// The stage.
        stage: Stage,
    },
    /// More than one number format.
    SeveralPrecisions(Vec<&'static str>),
    /// A loss scale without fp16.
    LossScaleWithoutFp16,
    /// A fixed loss scale, and how to search for one.
    StaticAndDynamicLossScale,
    /// A fixed loss scale that is not above zero.
    LossScaleNotPositive(f64),
    /// Something to offload, but stage 0 partitions nothing.
    OffloadAtStage0,
    /// Weights off the device, which only stage 3 can do.
    ParameterOffloadBelowStage3(Stage),
    /// A disk, which only stage 3 uses.
    NvmeBelowStage3(Stage),
    /// A disk, but not where it is.
    NvmeWithoutPath,
    /// Where a disk is, but nothing to put there.
    PathWithoutNvme,
    /// How the disk is read, but there is none.
    AsyncIoWithoutNvme,
    /// A key that this stage does not read.
    KnobNotRead {
        /// The key.
        knob: Knob,
        /// The stage.
        stage: Stage,
    },
    /// A key of an offload section that is not there, or that needs a disk.
    KnobWithoutOffload(Knob),
    /// A share that is not between 0 and 1.
    NotAShare {
        /// The key.
        knob: Knob,
        /// What it was to be.
        share: f64,
    },
    /// `allgather_bucket_size` must be even.
    OddAllgatherBucket(u64),
    /// A size or count of zero where the engine needs more.
    Zero(Knob),
    /// A second partition of the weights that does not divide the ranks.
    HpzDoesNotDivide {
        /// Its size.
        size: u64,
        /// The ranks.
        world: u64,
    },
    /// Quantized gradients replace a reduce-scatter that is switched off.
    QuantizedGradientsWithoutReduceScatter,
    /// A global batch together with the accumulation that follows from it.
    GlobalBatchAndAccumulation,
    /// A global batch without the number of ranks.
    GlobalBatchWithoutWorld,
    /// A global batch that micro batch and ranks do not divide.
    GlobalBatchDoesNotDivide {
        /// The global batch.
        global: u64,
        /// The micro batch.
        micro: u64,
        /// The ranks.
        world: u64,
    },
    /// A batch that no number holds.
    BatchTooLarge,
    /// DeepSpeed's activation checkpointing for models that never call it.
    CheckpointingNotRead(Target),
    /// Checkpoints in one buffer without splitting them.
    ContiguousWithoutPartition,
    /// A hyper-parameter of an optimizer that is not in the config.
    HyperParameterWithoutOptimizer(&'static str),
    /// A hyper-parameter the optimizer does not have.
    NotAHyperParameter {
        /// The optimizer.
        optimizer: OptimizerKind,
        /// The hyper-parameter.
        name: &'static str,
    },
    /// A number that cannot be what it is meant for.
    OutOfRange {
        /// The option.
        option: &'static str,
        /// The number.
        value: f64,
    },
    /// A warm-up without a schedule.
    WarmupWithoutScheduler,
    /// A schedule that must know how long training takes.
    SchedulerWithoutTotal(SchedulerKind),
    /// A warm-up that does not end before training does.
    WarmupTooLong {
        /// Its steps.
        warmup: u64,
        /// All steps.
        total: u64,
    },
    /// A key the front end overwrites.
    Overwritten {
        /// The key.
        key: &'static str,
        /// Who does.
        target: Target,
    },
}
