//! One way to train, and the order in which ways are preferred until steps are timed.

use zeropilot_step::shape::LongContext;
use zeropilot_units::Elements;

use crate::zero::Stage;

/// What is kept off the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Offloaded {
    /// Nothing.
    Nothing,
    /// Optimizer states, in host memory.
    Optimizer,
    /// Optimizer states and weights, in host memory.
    Everything,
    /// Optimizer states on a disk.
    OptimizerToDisk,
    /// Optimizer states and weights on a disk.
    EverythingToDisk,
}

impl Offloaded {
    /// Whether weights are kept off the GPUs.
    pub fn has_weights(self) -> bool {
        matches!(self, Self::Everything | Self::EverythingToDisk)
    }

    /// The same states in host memory.
    pub(super) fn in_host(self) -> Self {
        match self {
            Self::OptimizerToDisk => Self::Optimizer,
            Self::EverythingToDisk => Self::Everything,
            other => other,
        }
    }

    /// Whether a disk is used.
    pub fn is_on_disk(self) -> bool {
        matches!(self, Self::OptimizerToDisk | Self::EverythingToDisk)
    }
}

/// A stage with what is offloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// The stage.
    pub stage: Stage,
    /// What is kept off the GPUs.
    pub offloaded: Offloaded,
}

impl Shape {
    /// All of them, in the order people try them.
    pub const ALL: [Self; 9] = [
        Self::new(Stage::Zero, Offloaded::Nothing),
        Self::new(Stage::One, Offloaded::Nothing),
        Self::new(Stage::Two, Offloaded::Nothing),
        Self::new(Stage::Three, Offloaded::Nothing),
        Self::new(Stage::Two, Offloaded::Optimizer),
        Self::new(Stage::Three, Offloaded::Optimizer),
        Self::new(Stage::Three, Offloaded::Everything),
        Self::new(Stage::Three, Offloaded::OptimizerToDisk),
        Self::new(Stage::Three, Offloaded::EverythingToDisk),
    ];

    const fn new(stage: Stage, offloaded: Offloaded) -> Self {
        Self { stage, offloaded }
    }
}

/// The sizes of ZeRO's buffers and working set. The larger one of them is, the more memory it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// `reduce_bucket_size`.
    pub reduce: Elements,
    /// `allgather_bucket_size` in stages 1 and 2, `stage3_prefetch_bucket_size` in stage 3.
    pub gather: Elements,
    /// `stage3_param_persistence_threshold`.
    pub persistent: Elements,
    /// `stage3_max_live_parameters` and `stage3_max_reuse_distance`.
    pub live: Elements,
    /// `overlap_comm`.
    pub overlap: bool,
}

impl Sizes {
    /// Whether no size is above the other's.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.reduce <= other.reduce
            && self.gather <= other.gather
            && self.persistent <= other.persistent
            && self.live <= other.live
            && self.overlap <= other.overlap
    }
}

/// What of a way decides how much a micro batch takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Work {
    /// Sequences a GPU takes at once.
    pub micro_batch: u64,
    /// Micro batches per step.
    pub accumulation: u64,
    /// Whether layers are recomputed in backward.
    pub checkpointing: bool,
    /// Whether projection and cross entropy are one kernel.
    pub fused_loss: bool,
    /// What makes room for long sequences.
    pub long_context: LongContext,
}

impl Work {
    /// GPUs that a step takes for each of its sequences.
    pub(super) fn gpus_per_sequence(&self) -> f64 {
        let sequences = self.micro_batch * self.accumulation;
        self.long_context.sequence_ranks as f64 / sequences as f64
    }
}

/// One way to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    /// Stage and offload.
    pub shape: Shape,
    /// What a micro batch is.
    pub work: Work,
    /// Ranks that hold a second copy of the weights between them (hpZ); 1 for none.
    pub hpz: u64,
    /// The sizes of buffers.
    pub sizes: Sizes,
}

/// Elements a collective must carry before its fixed cost is no longer most of it: 40 µs at 100 GB/s.
const SMALL_MESSAGE: f64 = 2e6;

impl Way {
    /// A number by which ways are ordered: relative time of a token, by rule of thumb.
    ///
    /// Recomputing is a third more compute. Stage 3 gathers weights as it goes, with hpZ inside a node in backward;
    /// stage 2 reduces at every micro step. Overlap hides half of it, small buckets add their fixed cost. The optimizer
    /// on the host waits for its bandwidth, weights there for the bus, a disk for both. A larger micro batch keeps the GPU
    /// busier.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.least_cost() + self.communication()
    }

    /// The same if communication took no time.
    pub(super) fn least_cost(&self) -> f64 {
        let compute = if self.work.checkpointing { 4.0 / 3.0 } else { 1.0 };
        let host = match self.shape.offloaded {
            Offloaded::Nothing => 0.0,
            Offloaded::Optimizer => 0.5,
            Offloaded::Everything => 1.2,
            Offloaded::OptimizerToDisk => 2.0,
            Offloaded::EverythingToDisk => 3.0,
        };
        compute + host + 0.2 / self.work.micro_batch as f64
    }

    fn communication(&self) -> f64 {
        let Sizes { reduce, gather, persistent, live, overlap } = self.sizes;
        let fixed = |elements: Elements| SMALL_MESSAGE / (elements.0.max(1) as f64 + SMALL_MESSAGE);
        let hidden = if overlap { 0.5 } else { 1.0 };
        let accumulation = self.work.accumulation.min(16) as f64;
        match self.shape.stage {
            Stage::Zero => 0.02,
            Stage::One => (0.02 + 0.01 * fixed(reduce)) * hidden + 0.01 + 0.01 * fixed(gather),
            Stage::Two => {
                let reductions = 0.02 + 0.02 * (accumulation - 1.0) / 15.0;
                (reductions + 0.01 * fixed(reduce)) * hidden + 0.01 + 0.01 * fixed(gather)
            }
            Stage::Three => {
                let near = if self.hpz > 1 { 0.7 } else { 1.0 };
                let gathers = (0.06 + 0.02 * fixed(gather) + 0.01 * fixed(persistent)) * near;
                let again = 0.02 * 1e9 / (1e9 + live.0 as f64);
                gathers + again + (0.03 + 0.01 * fixed(reduce)) * hidden
            }
        }
    }
}
