//! From a way to the config that would be written and what the memory model says about it.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::rc::Rc;

use serde_json::Value;
use zeropilot_cluster::{Fabric, Format, Outlook, Pace};
use zeropilot_config::resolve::{Circumstances, ResolvedConfig, resolve};
use zeropilot_config::settings::Zero;
use zeropilot_config::syntax::parse_json;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{LowerError, Recipe as Training};
use zeropilot_step::memory::{Answer, Question, Workload};
use zeropilot_step::program::StepProgram;
use zeropilot_step::time::{Machine, estimate, simulate};
use zeropilot_step::zero::BaseOptimizer;
use zeropilot_units::{Bytes, Elements, Estimate};

use super::space::ENGINE;
use super::way::{Offloaded, Shape, Way, Work};
use super::{Fitting, PlanError, Task};
use crate::knob::{Knob, KnobValue, Knobs};
use crate::precision::Precision;
use crate::request::{BatchRequest, OffloadRequest, Request, Wish};
use crate::sizing::ModelSize;
use crate::target::Target;
use crate::zero::{Device, Stage};

/// What decides the workload of a way, the task being the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct WorkloadOf {
    micro_batch: u64,
    checkpointing: bool,
    fused_loss: bool,
    is_stage_3: bool,
    /// Micro batches whose completions are generated at once.
    generated: u64,
}

/// What is known of a way.
#[derive(Debug)]
struct Known {
    resolved: ResolvedConfig,
    zero: Zero,
    without_slack: OnceCell<Answer>,
    answer: OnceCell<Answer>,
    seconds: OnceCell<f64>,
}

/// A way as it is asked about.
struct Asked<'q> {
    question: Question<'q>,
    workload: &'q Workload,
    known: &'q Known,
}

impl Asked<'_> {
    /// What it needs at least, which is cheap to know.
    fn without_slack(&self) -> &Answer {
        let answer = || Answer::without_slack(&self.question, self.workload);
        self.known.without_slack.get_or_init(answer)
    }

    /// What it needs.
    fn answer(&self) -> &Answer {
        let answer = || self.without_slack().clone().with_slack(&self.question, self.workload);
        self.known.answer.get_or_init(answer)
    }

    /// Its step.
    fn step(&self) -> StepProgram {
        self.question.step_program(self.workload)
    }
}

/// Asks about the ways of one task; what they have in common is worked out once.
#[derive(Debug)]
pub(super) struct Asker<'a> {
    task: &'a Task<'a>,
    model: Option<ModelSize>,
    capacity: Estimate,
    /// The speed of a rank, if it is known.
    machine: Option<Machine>,
    workloads: HashMap<WorkloadOf, Rc<Workload>>,
    ways: HashMap<Way, Rc<Known>>,
    /// Questions put to the memory model.
    pub(super) asked: usize,
}

impl<'a> Asker<'a> {
    pub(super) fn new(task: &'a Task<'a>) -> Result<Self, PlanError> {
        let capacity = task.cluster.capacity().ok_or(PlanError::NoMemory)?.bytes;
        Ok(Self {
            task,
            model: ModelSize::of(task.model),
            capacity,
            machine: machine(task),
            workloads: HashMap::new(),
            ways: HashMap::new(),
            asked: 0,
        })
    }

    /// The same about another cluster of the same GPUs.
    pub(super) fn about<'b>(&self, task: &'b Task<'b>) -> Asker<'b> {
        Asker {
            task,
            model: self.model,
            capacity: self.capacity,
            machine: machine(task),
            workloads: self.workloads.clone(),
            ways: HashMap::new(),
            asked: 0,
        }
    }

    /// Takes over what another worked out about micro batches, which is the same on every cluster of these GPUs.
    pub(super) fn learn_workloads(&mut self, other: Asker<'_>) {
        self.workloads = other.workloads;
    }

    /// What is planned.
    pub(super) fn task(&self) -> &'a Task<'a> {
        self.task
    }

    /// Whether a way fits. The allocator's slack is worked out only if it decides.
    pub(super) fn has_room(&mut self, way: Way) -> Result<bool, PlanError> {
        match self.ask(way, Self::fits) {
            // More tokens than can be counted fit nowhere.
            Err(PlanError::Lower(LowerError::TooLarge { .. })) => Ok(false),
            other => other,
        }
    }

    /// Whether what a way is expected to need fits, whatever its upper bound is.
    pub(super) fn is_expected_to_fit(&mut self, way: Way) -> Result<bool, PlanError> {
        self.ask(way, |asker, asked| {
            let answer = asked.answer();
            let need = answer.device().expected();
            need <= asker.capacity() && asker.host_lacks(answer) == Bytes(0)
        })
    }

    /// Whether a way fits and leaves headroom.
    pub(super) fn leaves_headroom(&mut self, way: Way) -> Result<bool, PlanError> {
        self.ask(way, |asker, asked| {
            asker.fits(asked) && asked.answer().device().leaves_headroom(asker.capacity())
        })
    }

    /// What a GPU needs for a way, if it fits.
    pub(super) fn need_if_it_fits(&mut self, way: Way) -> Result<Option<Bytes>, PlanError> {
        self.ask(way, |asker, asked| asker.fits(asked).then(|| asked.answer().device().expected()))
    }

    /// What a GPU has.
    pub(super) fn capacity(&self) -> Bytes {
        self.capacity.expected()
    }

    /// Whether steps can be timed.
    pub(super) fn knows_speed(&self) -> bool {
        self.machine.is_some()
    }

    /// Seconds a GPU takes for a sequence; infinite if its speed is not known.
    pub(super) fn seconds_per_sequence(&mut self, way: Way) -> Result<f64, PlanError> {
        let share = way.work.gpus_per_sequence();
        self.ask(way, |asker, asked| {
            let seconds = |machine| simulate(&asked.step(), machine).total * share;
            let of_machine = || asker.machine.as_ref().map_or(f64::INFINITY, seconds);
            *asked.known.seconds.get_or_init(of_machine)
        })
    }

    /// What ways are ranked by: the time for a sequence, or the documented order where that is not known.
    pub(super) fn cost(&mut self, way: Way) -> Result<f64, PlanError> {
        if self.knows_speed() { self.seconds_per_sequence(way) } else { Ok(way.cost()) }
    }

    /// A way with its config and all it needs.
    pub(super) fn fitting(&mut self, way: Way) -> Result<Fitting, PlanError> {
        let recipe = request(self.task, self.model, way, self.task.target).recipe();
        let recipe = recipe.map_err(PlanError::Refused)?;
        let (answer, time) = self.ask(way, |_, asked| {
            let Question { cluster, resolved, .. } = asked.question;
            (asked.answer().clone(), estimate(&asked.step(), cluster, resolved.precision()))
        })?;
        Ok(Fitting { way, answer, recipe, time })
    }

    fn ask<T>(
        &mut self,
        way: Way,
        with: impl FnOnce(&Self, &Asked<'_>) -> T,
    ) -> Result<T, PlanError> {
        self.asked += 1;
        let task = self.task;
        let known = self.known(way)?;
        let training = training(task, way.work);
        let question = Question {
            model: task.model,
            recipe: &training,
            resolved: &known.resolved,
            zero: &known.zero,
            micro_batch: way.work.micro_batch,
            cluster: task.cluster,
            rank: None,
        };
        let workload = self.workload(way, &question)?;
        Ok(with(self, &Asked { question, workload: &workload, known: &known }))
    }

    fn known(&mut self, way: Way) -> Result<Rc<Known>, PlanError> {
        if let Some(known) = self.ways.get(&way) {
            return Ok(Rc::clone(known));
        }
        let resolved = resolved(self.task, self.model, way)?;
        let known = Rc::new(Known {
            zero: resolved.zero(),
            resolved,
            without_slack: OnceCell::new(),
            answer: OnceCell::new(),
            seconds: OnceCell::new(),
        });
        self.ways.insert(way, Rc::clone(&known));
        Ok(known)
    }

    fn workload(&mut self, way: Way, question: &Question<'_>) -> Result<Rc<Workload>, PlanError> {
        let Work { micro_batch, checkpointing, fused_loss, .. } = way.work;
        let is_stage_3 = way.shape.stage == Stage::Three;
        let generation = question.recipe.task.generation;
        let generated = generation.map_or(0, |generation| generation.micro_batches);
        let key = WorkloadOf { micro_batch, checkpointing, fused_loss, is_stage_3, generated };
        if let Some(known) = self.workloads.get(&key) {
            return Ok(Rc::clone(known));
        }
        let workload = question.workload()?;
        let other = self.workloads.get(&WorkloadOf { is_stage_3: !is_stage_3, ..key });
        let workload = Rc::new(match other {
            Some(other) => workload.beside(other),
            None => workload,
        });
        self.workloads.insert(key, Rc::clone(&workload));
        Ok(workload)
    }

    /// Whether the upper bound of a need stays below what there is.
    fn fits(&self, asked: &Asked<'_>) -> bool {
        let fits = |answer: &Answer| {
            answer.device().high() <= self.capacity() && self.host_lacks(answer) == Bytes(0)
        };
        fits(asked.without_slack()) && fits(asked.answer())
    }

    /// Bytes a GPU lacks for the upper bound of a need.
    pub(super) fn device_lacks(&self, answer: &Answer) -> Bytes {
        answer.device().high().saturating_sub(self.capacity.expected())
    }

    /// Bytes a host lacks for the upper bound of a need.
    pub(super) fn host_lacks(&self, answer: &Answer) -> Bytes {
        let ram = self.task.cluster.host.ram;
        ram.map_or(Bytes(0), |ram| answer.node().high().saturating_sub(ram))
    }
}

fn machine(task: &Task<'_>) -> Option<Machine> {
    let format = match task.precision {
        Precision::Bf16 => Format::Bf16,
        Precision::Fp16(_) => Format::Fp16,
        Precision::Fp32 => Format::Fp32,
    };
    let pace = Pace::of(task.cluster, format, Outlook::Expected);
    let fabric = Fabric::of(task.cluster, Outlook::Expected);
    pace.map(|pace| Machine { pace, fabric })
}

fn training(task: &Task<'_>, work: Work) -> Training {
    let loss = if work.fused_loss { LossHead::Fused } else { task.training.loss };
    let steps = task.training.task.clone().with_accumulation(work.accumulation);
    Training { checkpointing: work.checkpointing, loss, task: steps, ..task.training.clone() }
}

/// The config of a way as the engine resolves it.
fn resolved(
    task: &Task<'_>,
    model: Option<ModelSize>,
    way: Way,
) -> Result<ResolvedConfig, PlanError> {
    let mut wanted = request(task, model, way, Target::DeepSpeed);
    // A framework's config leaves the optimizer to the script; an offloaded one is DeepSpeed's.
    let is_adam =
        matches!(task.training.optimizer, BaseOptimizer::FusedAdam | BaseOptimizer::TorchAdam);
    let is_on_gpu = way.shape.offloaded == Offloaded::Nothing;
    if task.target != Target::DeepSpeed && is_on_gpu && !is_adam {
        wanted.optimizer = Wish::No;
    }
    let recipe = wanted.recipe().map_err(PlanError::Refused)?;
    let text = Value::Object(recipe.config()).to_string();
    let world = usize::try_from(task.sequence_groups()).unwrap_or(usize::MAX);
    let refused = || PlanError::Refused(Vec::new());
    let document = parse_json(&text).map_err(|_| refused())?;
    let circumstances = Circumstances::new(task.engine, world);
    resolve(document.root(), circumstances).resolved.ok_or_else(refused)
}

fn request(task: &Task<'_>, model: Option<ModelSize>, way: Way, target: Target) -> Request {
    let Shape { stage, offloaded } = way.shape;
    let device = if offloaded.is_on_disk() { Device::Nvme } else { Device::Cpu };
    let wish = |wanted: bool| if wanted { Wish::Yes(device) } else { Wish::No };
    // A front end sizes buckets for the trained model alone: with numbers the others have the same.
    let filled_for = model.filter(|_| task.training.task.frozen.is_empty());
    Request {
        target,
        stage: Some(stage),
        offload: OffloadRequest {
            optimizer: wish(offloaded != Offloaded::Nothing),
            parameters: wish(offloaded.has_weights()),
            nvme_path: task.nvme_path.filter(|_| offloaded.is_on_disk()).map(str::to_owned),
            ..OffloadRequest::default()
        },
        precisions: vec![task.precision],
        batch: BatchRequest {
            micro: NonZeroU64::new(way.work.micro_batch),
            accumulation: NonZeroU64::new(way.work.accumulation),
            // The engine counts groups where ranks share sequences, `zero.Init` counts ranks: a whole batch would be wrong
            // for one of them.
            world: NonZeroU64::new(task.cluster.world_size())
                .filter(|_| task.training.long_context.sequence_ranks <= 1),
            global: None,
        },
        model,
        knobs: knobs(way, filled_for),
        ..Request::default()
    }
}

/// The keys a way sets, apart from those that would have the same value anyway.
fn knobs(way: Way, model: Option<ModelSize>) -> Knobs {
    let Way { shape: Shape { stage, .. }, hpz, sizes, .. } = way;
    let mut knobs = Knobs::default();
    if stage == Stage::Zero {
        return knobs;
    }
    let mut set = |is_said: bool, knob: Knob, value: KnobValue| {
        if !is_said {
            // The kinds are those of the keys.
            let _ = knobs.set(knob, value);
        }
    };
    let sized = |factor: fn(&ModelSize) -> Elements| model.as_ref().map(factor);
    let elements = KnobValue::Elements;
    let square = sized(ModelSize::square);
    set(square == Some(sizes.reduce), Knob::ReduceBucketSize, elements(sizes.reduce));
    let overlaps = stage == Stage::Three;
    set(sizes.overlap == overlaps, Knob::OverlapComm, KnobValue::Flag(sizes.overlap));
    if stage != Stage::Three {
        let is_default = sizes.gather == ENGINE.allgather_bucket;
        set(is_default, Knob::AllgatherBucketSize, elements(sizes.gather));
        return knobs;
    }
    let ahead = square.is_some() && sizes.gather == crate::sizing::nine_tenths(sizes.reduce);
    set(ahead, Knob::PrefetchBucketSize, elements(sizes.gather));
    let small = sized(ModelSize::ten_rows) == Some(sizes.persistent);
    set(small, Knob::ParamPersistenceThreshold, elements(sizes.persistent));
    for (knob, default) in [
        (Knob::MaxLiveParameters, ENGINE.max_live_parameters),
        (Knob::MaxReuseDistance, ENGINE.max_reuse_distance),
    ] {
        set(sizes.live == default, knob, elements(sizes.live));
    }
    set(hpz == 1, Knob::HpzPartitionSize, KnobValue::Count(hpz));
    knobs
}
