//! Which way to train fits a cluster, which of those costs least, and what to fall back to.
//!
//! A [`Way`] is a stage, what it offloads, a micro batch and whether layers are recomputed. Every way is made a config,
//! resolved as the engine does and put to the memory model, so that what is planned is what `zeropilot memory` says about
//! the file. Until steps are timed, ways are ranked by [`Way::cost`], a documented order and no prediction.

use std::num::NonZeroU64;

use serde_json::{Map, Value};
use zeropilot_cluster::Cluster;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::Model;
use zeropilot_step::lower::{LowerError, Recipe as Training};
use zeropilot_step::memory::{Answer, Question};
use zeropilot_units::{Bytes, Estimate};

use crate::precision::Precision;
use crate::recipe::Recipe;
use crate::refusal::Refusal;
use crate::request::{BatchRequest, OffloadRequest, Request, Wish};
use crate::sizing::ModelSize;
use crate::target::Target;
use crate::zero::{Device, Stage};

/// What is kept on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Offloaded {
    /// Nothing.
    Nothing,
    /// Optimizer states.
    Optimizer,
    /// Optimizer states and weights.
    Everything,
}

/// One way to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    /// The stage.
    pub stage: Stage,
    /// What is kept on the host.
    pub offloaded: Offloaded,
    /// Sequences a GPU takes at once.
    pub micro_batch: u64,
    /// Micro batches per step.
    pub accumulation: u64,
    /// Whether layers are recomputed in backward.
    pub checkpointing: bool,
}

/// Stages and offloads, in the order people try them.
const SHAPES: [(Stage, Offloaded); 7] = [
    (Stage::Zero, Offloaded::Nothing),
    (Stage::One, Offloaded::Nothing),
    (Stage::Two, Offloaded::Nothing),
    (Stage::Three, Offloaded::Nothing),
    (Stage::Two, Offloaded::Optimizer),
    (Stage::Three, Offloaded::Optimizer),
    (Stage::Three, Offloaded::Everything),
];

/// Micro batches that are tried.
const MICRO_BATCHES: [u64; 7] = [64, 32, 16, 8, 4, 2, 1];

impl Way {
    /// A number by which ways are ordered: relative time of a token, by rule of thumb.
    ///
    /// Recomputing is a third more compute. Stage 3 gathers weights as it goes; stage 2 reduces at every micro step.
    /// The optimizer on the host waits for its bandwidth, weights there for the bus. A larger micro batch keeps
    /// the GPU busier.
    #[must_use]
    pub fn cost(&self) -> f64 {
        let compute = if self.checkpointing { 4.0 / 3.0 } else { 1.0 };
        let communication = match self.stage {
            Stage::Zero => 0.02,
            Stage::One => 0.03,
            Stage::Two => 0.03 + 0.02 * (self.accumulation.min(16) as f64 - 1.0) / 15.0,
            Stage::Three => 0.10,
        };
        let host = match self.offloaded {
            Offloaded::Nothing => 0.0,
            Offloaded::Optimizer => 0.5,
            Offloaded::Everything => 1.2,
        };
        let idle = 0.2 / self.micro_batch as f64;
        compute + communication + host + idle
    }
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
    /// Samples per step over all ranks, kept whatever is chosen; `None` for one sequence per GPU or more.
    pub global_batch: Option<NonZeroU64>,
    /// Who reads the config.
    pub target: Target,
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
}

/// A way that does not fit.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The way, at its smallest.
    pub way: Way,
    /// What it needs.
    pub device: Estimate,
    /// Bytes a GPU lacks for its upper bound; zero if it is the host that is too small.
    pub over_by: Bytes,
    /// Bytes a host lacks.
    pub host_over_by: Bytes,
}

/// The plan.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What fits, the best of each stage and offload, best first; the first is the choice.
    pub fitting: Vec<Fitting>,
    /// Stages and offloads of which nothing fits.
    pub rejected: Vec<Rejected>,
    /// What to fall back to if the choice still runs out of memory, in order, each needing less.
    pub ladder: Vec<Fitting>,
    /// GPUs of the same kind that would do, where nothing fits.
    pub gpus_needed: Option<u64>,
    /// Ways that were asked about.
    pub asked: usize,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The model cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The batch cannot be spread over the ranks.
    #[error("a global batch of {global} cannot be spread over {world} GPUs")]
    Batch {
        /// Samples per step.
        global: u64,
        /// Ranks.
        world: u64,
    },
    /// The memory of the GPUs is not known.
    #[error("the memory of the GPUs is not known")]
    NoMemory,
    /// The pieces of a config contradict each other.
    #[error("the config cannot be written")]
    Refused(Vec<Refusal>),
}

/// Searches.
///
/// # Errors
///
/// If there is nothing to search.
pub fn plan(task: &Task<'_>) -> Result<Plan, PlanError> {
    let capacity = task.cluster.capacity().ok_or(PlanError::NoMemory)?.bytes;
    let mut plan = Plan::default();
    for (stage, offloaded) in SHAPES {
        // One rank shares nothing: stages 1 and 2 would only add copies.
        if task.cluster.world_size() == 1
            && matches!(stage, Stage::One | Stage::Two)
            && offloaded == Offloaded::Nothing
        {
            continue;
        }
        search_shape(task, stage, offloaded, capacity, &mut plan)?;
    }
    plan.fitting.sort_by(|a, b| a.way.cost().total_cmp(&b.way.cost()));
    plan.ladder = ladder(task, &plan)?;
    if plan.fitting.is_empty() {
        plan.gpus_needed = gpus_needed(task, capacity)?;
    }
    Ok(plan)
}

/// The best way of a stage and offload, or why there is none.
fn search_shape(
    task: &Task<'_>,
    stage: Stage,
    offloaded: Offloaded,
    capacity: Estimate,
    plan: &mut Plan,
) -> Result<(), PlanError> {
    let mut best: Option<Fitting> = None;
    let mut smallest: Option<Fitting> = None;
    for checkpointing in [false, true] {
        for (micro_batch, accumulation) in batches(task)? {
            let way = Way { stage, offloaded, micro_batch, accumulation, checkpointing };
            if best.as_ref().is_some_and(|best| best.way.cost() <= way.cost()) {
                continue;
            }
            plan.asked += 1;
            let option = ask(task, way)?;
            if fits(task, &option.answer, capacity) {
                best = Some(option);
                break;
            }
            smallest = Some(option);
        }
    }
    match (best, smallest) {
        (Some(best), _) => plan.fitting.push(best),
        (None, Some(smallest)) => plan.rejected.push(rejected(task, &smallest, capacity)),
        (None, None) => {}
    }
    Ok(())
}

/// Micro batches with their accumulation, the largest first.
fn batches(task: &Task<'_>) -> Result<Vec<(u64, u64)>, PlanError> {
    let world = task.cluster.world_size();
    let Some(global) = task.global_batch.map(NonZeroU64::get) else {
        return Ok(MICRO_BATCHES.map(|micro| (micro, 1)).to_vec());
    };
    if !global.is_multiple_of(world) {
        return Err(PlanError::Batch { global, world });
    }
    let each = global / world;
    let divides = MICRO_BATCHES.into_iter().filter(|micro| each.is_multiple_of(*micro));
    Ok(divides.map(|micro| (micro, each / micro)).collect())
}

/// Whether the upper bound of a need stays below what there is.
fn fits(task: &Task<'_>, answer: &Answer, capacity: Estimate) -> bool {
    let host = task.cluster.host.ram.is_none_or(|ram| answer.node().expected() <= ram);
    answer.device().high() <= capacity.expected() && host
}

fn rejected(task: &Task<'_>, option: &Fitting, capacity: Estimate) -> Rejected {
    let device = option.answer.device();
    let ram = task.cluster.host.ram;
    Rejected {
        way: option.way,
        device,
        over_by: device.high().saturating_sub(capacity.expected()),
        host_over_by: ram
            .map_or(Bytes(0), |ram| option.answer.node().expected().saturating_sub(ram)),
    }
}

/// What follows the choice: other shapes that fit, then the choice's own with less, each needing less than the one
/// before.
fn ladder(task: &Task<'_>, plan: &Plan) -> Result<Vec<Fitting>, PlanError> {
    let Some(choice) = plan.fitting.first() else { return Ok(Vec::new()) };
    let mut rungs: Vec<Fitting> = plan.fitting[1..].to_vec();
    let smaller = Way {
        micro_batch: 1,
        accumulation: choice.way.accumulation * choice.way.micro_batch,
        checkpointing: true,
        ..choice.way
    };
    if smaller != choice.way {
        rungs.push(ask(task, smaller)?);
    }
    let least = Way { stage: Stage::Three, offloaded: Offloaded::Everything, ..smaller };
    rungs.push(ask(task, least)?);
    rungs.sort_by_key(|rung| std::cmp::Reverse(rung.answer.device().expected()));
    let mut below = choice.answer.device().expected();
    rungs.retain(|rung| {
        let need = rung.answer.device().expected();
        let is_lower = need < below;
        if is_lower {
            below = need;
        }
        is_lower
    });
    Ok(rungs)
}

/// The least number of GPUs of this kind for which stage 3, everything recomputed, fits; powers of two.
fn gpus_needed(task: &Task<'_>, capacity: Estimate) -> Result<Option<u64>, PlanError> {
    const MOST: u64 = 1 << 17;
    let mut cluster = task.cluster.clone();
    let mut world = task.cluster.world_size().next_power_of_two();
    while world < MOST {
        world *= 2;
        let each = cluster.gpus.layout.gpus_per_node.max(1);
        let each = if world.is_multiple_of(each) { each } else { world.min(8) };
        cluster.gpus.layout.gpus_per_node = each;
        cluster.gpus.layout.nodes = world / each;
        let wider = Task { cluster: &cluster, global_batch: None, ..*task };
        let way = Way {
            stage: Stage::Three,
            offloaded: Offloaded::Nothing,
            micro_batch: 1,
            accumulation: 1,
            checkpointing: true,
        };
        let option = ask(&wider, way)?;
        if fits(&wider, &option.answer, capacity) {
            return Ok(Some(world));
        }
    }
    Ok(None)
}

/// Asks the memory model about a way.
fn ask(task: &Task<'_>, way: Way) -> Result<Fitting, PlanError> {
    let request = request(task, way);
    let bare = Request { target: Target::DeepSpeed, ..request.clone() };
    let plain = bare.recipe().map_err(PlanError::Refused)?.config();
    let recipe = request.recipe().map_err(PlanError::Refused)?;
    let answer = answer(task, way, &plain)?;
    Ok(Fitting { way, answer, recipe })
}

fn answer(task: &Task<'_>, way: Way, config: &Map<String, Value>) -> Result<Answer, PlanError> {
    let text = Value::Object(config.clone()).to_string();
    let world = usize::try_from(task.cluster.world_size()).unwrap_or(usize::MAX);
    let refused = || PlanError::Refused(Vec::new());
    let document = parse_json(&text).map_err(|_| refused())?;
    let circumstances = Circumstances::new(EngineVersion::NEWEST, world);
    let resolved = resolve(document.root(), circumstances).resolved.ok_or_else(refused)?;
    let zero = resolved.zero();
    let training = Training { checkpointing: way.checkpointing, ..task.training.clone() };
    let question = Question {
        model: task.model,
        recipe: &training,
        resolved: &resolved,
        zero: &zero,
        micro_batch: way.micro_batch,
        cluster: task.cluster,
        rank: None,
    };
    Ok(Answer::to(&question)?)
}

fn request(task: &Task<'_>, way: Way) -> Request {
    let host = |wanted: bool| if wanted { Wish::Yes(Device::Cpu) } else { Wish::No };
    Request {
        target: task.target,
        stage: Some(way.stage),
        offload: OffloadRequest {
            optimizer: host(way.offloaded != Offloaded::Nothing),
            parameters: host(way.offloaded == Offloaded::Everything),
            ..OffloadRequest::default()
        },
        precisions: vec![task.precision],
        batch: BatchRequest {
            micro: NonZeroU64::new(way.micro_batch),
            accumulation: NonZeroU64::new(way.accumulation),
            world: NonZeroU64::new(task.cluster.world_size()),
            global: None,
        },
        model: ModelSize::of(task.model),
        ..Request::default()
    }
}
