//! Which way to train fits a cluster, which of those costs least, and what to fall back to.
//!
//! A [`Way`] is a stage, what it offloads, what a micro batch is, and the sizes of ZeRO's buffers. Every way that has to
//! be looked at is made a config, resolved as the engine does and put to the memory model, so that what is planned is
//! what `zeropilot memory` says about the file. Ways are ranked by the time a step is predicted to take; where the GPUs are
//! known by their memory alone, by [`Way::cost`], a documented order and no prediction.

mod asking;
mod by_order;
mod by_time;
#[cfg(test)]
mod exhaustive;
mod fallbacks;
mod fewer;
mod held;
mod longer;
mod longest;
mod shortage;
mod space;
mod way;

use std::collections::HashSet;
use std::num::NonZeroU64;

use zeropilot_cluster::Cluster;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::Model;
use zeropilot_step::lower::{LowerError, Recipe as Training};
use zeropilot_step::memory::{Answer, Phase};
use zeropilot_step::time::Estimated;
use zeropilot_units::{Bytes, Estimate};

use self::asking::Asker;
pub use self::fewer::{NEGLIGIBLE, Offer, Offers, offers};
pub use self::held::Held;
pub use self::longest::{Bound, Longest, Reach, longest};
pub use self::shortage::{Limit, MoreGpus, MoreRam, Shortage, Unsplit};
use self::space::Space;
pub use self::way::{Offloaded, Shape, Sizes, Way, Work};
use crate::arguments::{self, Argument};
use crate::precision::Precision;
use crate::recipe::Recipe;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::zero::Stage;

/// What the best way is best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// It takes the least time for a sequence.
    #[default]
    Time,
    /// It leaves the most memory free.
    Memory,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The model.
    pub model: &'a Model,
    /// How it is trained; whether layers are recomputed is the search's choice.
    pub training: &'a Training,
    /// Where.
    pub cluster: &'a Cluster,
    /// The number format.
    pub precision: Precision,
    /// What is given of the way.
    pub held: Held,
    /// Samples per step over all ranks, kept whatever is chosen; `None` for one sequence per GPU or more.
    pub global_batch: Option<NonZeroU64>,
    /// Whether projection and cross entropy may be made one kernel.
    pub may_fuse_loss: bool,
    /// Whether the script may be changed to make room for long sequences, where nothing fits without.
    pub may_stretch: bool,
    /// A directory on a disk that states may be kept in.
    pub nvme_path: Option<&'a str>,
    /// What the best way is best at.
    pub objective: Objective,
    /// Who reads the config.
    pub target: Target,
    /// The engine that runs it.
    pub engine: EngineVersion,
}

impl Task<'_> {
    /// Groups of GPUs that have sequences of their own.
    fn sequence_groups(&self) -> u64 {
        self.training.long_context.groups(self.cluster.world_size())
    }
}

/// A way with what it needs.
#[derive(Debug, Clone)]
pub struct Fitting {
    /// The way.
    pub way: Way,
    /// What it needs.
    pub answer: Answer,
    /// The config, for whoever reads it.
    pub recipe: Recipe,
    /// How long a step takes; `None` if the speed of the GPUs is unknown.
    pub time: Option<Estimated>,
}

impl Fitting {
    /// Seconds of GPUs for a sequence.
    pub fn seconds_per_sequence(&self) -> Option<f64> {
        self.time.map(|time| time.expected.total * self.way.work.gpus_per_sequence())
    }

    /// What speaks against it beside strategies that are as fast, the weightiest first: states that are kept off the
    /// GPUs, a second copy of the weights, little free memory, a higher stage.
    fn burden(&self, capacity: Bytes) -> (Offloaded, bool, bool, Stage) {
        let Way { shape: Shape { stage, offloaded }, hpz, .. } = self.way;
        (offloaded, hpz > 1, !self.answer.device().leaves_headroom(capacity), stage)
    }

    /// What a program must be told beside the config: the one it was written for, or another that reads the same file.
    pub fn arguments(&self, reader: Target) -> Vec<Argument> {
        let mut arguments = Recipe { target: reader, ..self.recipe.clone() }.arguments();
        arguments.extend(arguments::of_work(reader, self.way.work));
        arguments
    }
}

/// A way that does not fit.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The way, at its smallest.
    pub way: Way,
    /// What it needs.
    pub device: Estimate,
    /// What a GPU has.
    pub capacity: Bytes,
    /// Bytes a host lacks.
    pub host_over_by: Bytes,
    /// When a GPU is fullest.
    pub fullest: Phase,
    /// What models that are not trained take of a GPU.
    pub other_models: Bytes,
    /// What vLLM takes of it at its fullest moment.
    pub rollout: Bytes,
}

impl Rejected {
    /// Bytes a GPU lacks for the upper bound; zero if it is the host that is too small.
    pub fn over_by(&self) -> Bytes {
        self.device.high().saturating_sub(self.capacity)
    }
}

/// The plan.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What fits, the best of each stage, offload and hpZ; the first is recommended, the others are sorted.
    pub fitting: Vec<Fitting>,
    /// Stages and offloads of which nothing fits.
    pub rejected: Vec<Rejected>,
    /// What to fall back to if the choice still runs out of device memory, in order: each needs clearly less of it, and
    /// none is beaten by another in both memory and time. The global batch is that of the choice.
    pub fallbacks: Vec<Fitting>,
    /// What was given of the way.
    pub held: Held,
    /// What is short and what would help, where nothing fits.
    pub shortage: Option<Shortage>,
    /// Ways among which the choice is the best.
    pub ways: usize,
    /// Questions put to the memory model to know that.
    pub asked: usize,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The model cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The batch cannot be spread over the ranks.
    #[error("a global batch size of {global} cannot be divided among {world} GPUs")]
    Batch {
        /// Samples per step.
        global: u64,
        /// Ranks.
        world: u64,
    },
    /// The batch of a GPU is no multiple of the micro batch that is given.
    #[error(
        "a global batch size of {global} on {world} GPUs is not a multiple of the micro-batch size {micro}"
    )]
    MicroBatch {
        /// Samples per step.
        global: u64,
        /// Ranks.
        world: u64,
        /// Sequences a GPU takes at once.
        micro: u64,
    },
    /// The engine has no way like the one that is given.
    #[error("the given settings cannot be combined")]
    NoSuchWay(Held),
    /// The memory of the GPUs is not known.
    #[error("the GPU memory size is unknown")]
    NoMemory,
    /// The speed of the GPUs is not known, and what a run costs depends on it.
    #[error("the speed of the GPUs is unknown")]
    NoSpeed,
    /// The pieces of a config contradict each other.
    #[error("the config cannot be written")]
    Refused(Vec<Refusal>),
}

impl PlanError {
    /// Whether another number of GPUs, or a script that is changed, may have a plan.
    fn is_of_this_size(&self) -> bool {
        matches!(self, Self::Batch { .. } | Self::MicroBatch { .. } | Self::NoSuchWay(_))
    }
}

/// Searches.
///
/// # Errors
///
/// If there is nothing to search.
pub fn plan(task: &Task<'_>) -> Result<Plan, PlanError> {
    plan_with(&mut Asker::new(task)?)
}

fn plan_with(asker: &mut Asker<'_>) -> Result<Plan, PlanError> {
    let task = asker.task();
    let space = Space::of(task)?;
    let plan = search(task, &space, asker)?;
    if !plan.fitting.is_empty() {
        return Ok(plan);
    }
    if let Some(stretched) = longer::plan(task, &space)? {
        return Ok(stretched);
    }
    let shortage = shortage::of(task, &space, asker, &plan.rejected)?;
    Ok(Plan { shortage: Some(shortage), ..plan })
}

fn search(task: &Task<'_>, space: &Space, asker: &mut Asker<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan { ways: space.len(), held: task.held, ..Plan::default() };
    for (shape, hpz) in space.kinds() {
        let groups = groups(shape, hpz, space, asker)?;
        let least = Way { hpz, ..least(shape, space) };
        let best = match (task.objective, asker.knows_speed()) {
            (_, _) if groups.is_empty() => Vec::new(),
            (Objective::Memory, _) => vec![least],
            (Objective::Time, true) => by_time::best_of(groups, space, asker)?,
            (Objective::Time, false) => by_order::best_of(groups, space, asker)?,
        };
        if best.is_empty() && hpz == 1 {
            plan.rejected.push(rejected(asker, least)?);
        }
        for way in best {
            plan.fitting.push(asker.fitting(way)?);
        }
    }
    let rank = |fitting: &Fitting| match task.objective {
        Objective::Memory => fitting.answer.device().expected().0 as f64,
        Objective::Time => fitting.seconds_per_sequence().unwrap_or_else(|| fitting.way.cost()),
    };
    plan.fitting.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    if task.objective == Objective::Time {
        recommend(&mut plan.fitting, asker.capacity());
    }
    plan.fallbacks = fallbacks::below(space, asker, &plan.fitting)?;
    plan.asked = asker.asked;
    Ok(plan)
}

/// Puts what is recommended first: of all that take hardly longer than the fastest, the one with the least burden.
/// Of every other kind the fastest is kept. `fitting` is sorted by time.
fn recommend(fitting: &mut Vec<Fitting>, capacity: Bytes) {
    let Some(least) = fitting.first().and_then(Fitting::seconds_per_sequence) else { return };
    let is_near = |fitting: &Fitting| {
        fitting.seconds_per_sequence().is_some_and(|own| own <= least * (1.0 + NEGLIGIBLE))
    };
    let near = (0..fitting.len()).filter(|&index| is_near(&fitting[index]));
    if let Some(index) = near.min_by_key(|&index| fitting[index].burden(capacity)) {
        fitting[..=index].rotate_right(1);
    }
    let mut kinds = HashSet::new();
    fitting.retain(|fitting| kinds.insert((fitting.way.shape, fitting.way.hpz)));
}

/// What a micro batch can be in a kind: every one that fits with the smallest buffers.
///
/// More sequences need more memory, so that of each list only the largest that fits is looked for, by halving.
fn groups(
    shape: Shape,
    hpz: u64,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Vec<Way>, PlanError> {
    let at_smallest = |work: Work| Way { shape, work, hpz, sizes: space.smallest(shape) };
    let mut groups: Vec<Way> = Vec::new();
    for list in space.work() {
        let fitting = partition_point(&list, |work| asker.has_room(at_smallest(*work)))?;
        groups.extend(list[..fitting].iter().map(|work| at_smallest(*work)));
    }
    Ok(groups)
}

/// The way of a shape that needs least.
fn least(shape: Shape, space: &Space) -> Way {
    let (micro_batch, accumulation) = space.batches[0];
    let last = |list: &[bool]| list.last().copied().unwrap_or_default();
    let work = Work {
        micro_batch,
        accumulation,
        checkpointing: last(&space.checkpointing),
        fused_loss: last(&space.fused_loss),
        long_context: space.long_context,
    };
    Way { shape, work, hpz: 1, sizes: space.smallest(shape) }
}

/// As [`slice::partition_point`], where the question can fail.
fn partition_point<T>(
    list: &[T],
    mut holds: impl FnMut(&T) -> Result<bool, PlanError>,
) -> Result<usize, PlanError> {
    let (mut low, mut high) = (0, list.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(&list[middle])? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn rejected(asker: &mut Asker<'_>, way: Way) -> Result<Rejected, PlanError> {
    let answer = asker.fitting(way)?.answer;
    Ok(Rejected {
        way,
        device: answer.device(),
        capacity: asker.capacity(),
        host_over_by: asker.host_lacks(&answer),
        fullest: answer.fullest,
        other_models: answer.other_models(),
        rollout: answer.rollout_at_peak(),
    })
}
