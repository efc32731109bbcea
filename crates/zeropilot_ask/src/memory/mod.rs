//! How much memory a job needs: one way to train, or all of them side by side.

mod config;

use serde::Deserialize;
use serde_json::Value;
use zeropilot_cluster::Cluster;
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::settings::{Precision, Stage, Zero};
use zeropilot_job::{Direction, Framework, NotModelled, Origin, TrainingJob};
use zeropilot_lint::Report;
use zeropilot_model::Model;
use zeropilot_step::lower::{LowerError, Recipe, follow};
use zeropilot_step::memory::{
    Answer, Counting, Prediction, Question, Relief, Stretch, Workload, WorkloadKey, host_reliefs,
    reliefs, timeline,
};
use zeropilot_step::tape::Autocast;
use zeropilot_step::task::Frozen;
use zeropilot_step::traffic::Traffic;
use zeropilot_step::zero::Engine;
use zeropilot_units::Estimate;

pub(crate) use self::config::Stated;
use self::config::{Flags, Solved, has_optimizer, made, solve, without_auto_sizes};
use crate::coverage;
use crate::machines::{Machines, MachinesProblem};
use crate::name::{FusedLoss, NumberFormat, Offload, ReferenceName, TaskName};
use crate::note::Note;
use crate::provenance::{Provenance, UnreadableConfig};
use crate::range::{OutOfRange, within};
use crate::task::{StepBatch, TaskProblem, TaskRequest};
use crate::training::Training;

/// A config that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenConfig {
    /// What it is called when something is wrong with it.
    pub name: String,
    /// Its content.
    #[serde(with = "text")]
    pub bytes: Vec<u8>,
}

/// Bytes that other languages hand over as text.
mod text {
    use serde::{Deserialize, Deserializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(from).map(String::into_bytes)
    }
}

/// What is asked about a model's memory.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct MemoryRequest {
    /// Where it is trained.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub machines: Machines,
    /// A DeepSpeed config; otherwise one is made from stage, offload and precision.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub config: Option<WrittenConfig>,
    /// Set the ZeRO stage; 0 on one GPU without offload [default: 3]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STAGE",
        value_parser = clap::value_parser!(u8).range(0..=3)))]
    pub stage: Option<u8>,
    /// Keep these states in host memory; `--offload` alone means all [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", num_args = 0..=1,
        default_missing_value = "all"))]
    pub offload: Option<Offload>,
    /// Predict plain PyTorch without DeepSpeed: one GPU, or DDP on several; 16-bit weights under autocast, as in HF Trainer
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["stage", "offload"]))]
    pub without_deepspeed: bool,
    /// Set the precision of the model; if omitted, the precision in the config, or bf16 (fp16 on GPUs without bf16)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT"))]
    pub precision: Option<NumberFormat>,
    /// Report this rank; if omitted, the rank that uses the most GPU memory
    #[cfg_attr(feature = "clap", arg(long, value_name = "RANK"))]
    pub rank: Option<u64>,
    /// How it is trained.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub training: Training,
    /// What it is trained for.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub task: TaskRequest,
    /// What the files of a job say; it counts where nothing else is said.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub job: TrainingJob,
}

/// An argument that contradicts the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key.
    pub key: &'static str,
    /// What it says.
    pub written: String,
    /// The argument, as programs name it.
    pub option: &'static str,
    /// What that says.
    pub given: String,
    /// Who says that.
    pub origin: Origin,
    /// Who names the config.
    pub config: Origin,
    /// Who reads both, where a job says it.
    pub framework: Option<Framework>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum MemoryProblem {
    /// The GPUs cannot be read.
    #[error(transparent)]
    Machines(#[from] MachinesProblem),
    /// A number makes no sense.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The model cannot be trained so.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskProblem),
    /// Whether the loss is fused is left open.
    #[error("`fused_loss` must be yes or no here")]
    OpenLoss,
    /// The config of the job cannot be read.
    #[error(transparent)]
    UnreadableConfig(#[from] UnreadableConfig),
    /// There is no such rank.
    #[error("there is no rank {rank} among {world} ranks")]
    NoSuchRank {
        /// The rank.
        rank: u64,
        /// How many there are.
        world: u64,
    },
    /// Ranks cannot be divided into groups of those that share a sequence.
    #[error("{world} ranks cannot be divided into groups of {ranks} that share a sequence")]
    SequenceRanks {
        /// Ranks that share a sequence.
        ranks: u64,
        /// All ranks.
        world: u64,
    },
    /// Ranks cannot be divided into groups of those that share layers.
    #[error("{world} ranks cannot be divided into groups of {ranks} that share layers")]
    LayerRanks {
        /// Ranks that share layers.
        ranks: u64,
        /// All ranks.
        world: u64,
    },
    /// A config leaves no stage to choose.
    #[error("`{option}` cannot be used with a config")]
    BesideConfig {
        /// The argument.
        option: &'static str,
    },
    /// An argument contradicts the config.
    #[error("`{}` contradicts {name}", conflict.option)]
    Conflict {
        /// The name of the config.
        name: String,
        /// What contradicts what.
        conflict: Box<Conflict>,
    },
    /// The engine or who reads the config for it refuses.
    #[error("{name} is rejected")]
    Refused {
        /// The name of the config.
        name: String,
        /// Its content.
        bytes: Vec<u8>,
        /// Why.
        report: Box<Report>,
    },
}

/// A training job, understood.
#[derive(Debug)]
pub struct Job {
    /// The model as the user named it.
    pub name: String,
    model: Model,
    recipe: Recipe,
    resolved: ResolvedConfig,
    zero: Zero,
    micro_batch: u64,
    cluster: Cluster,
    rank: Option<u64>,
    /// The number format that was taken because the config leaves it to the script.
    pub assumed: Option<NumberFormat>,
    /// What the question rests on.
    pub provenance: Provenance,
    /// The request with everything that its job says.
    request: MemoryRequest,
}

impl Job {
    /// The job of a request.
    ///
    /// # Errors
    ///
    /// If a part of the request makes no sense, or the config is refused.
    pub fn of(name: &str, model: Model, request: &MemoryRequest) -> Result<Self, MemoryProblem> {
        let mut request = request.clone();
        let mut provenance = Provenance::settle(&mut request)?;
        provenance.of_model(&model, &mut request.training);
        let model = request.task.model(&request.training.freeze(&model))?;
        let asking = Asking::of(&model, &request).map_err(|problem| provenance.explain(problem))?;
        let solved = match &request.config {
            Some(written) => {
                request.refuse_beside_config()?;
                let shares = request.training.sequence_parallel() > 1;
                let left_out = coverage::not_modelled(written).into_iter();
                provenance
                    .not_modelled
                    .extend(left_out.filter(|it| !(shares && it.is_of("sequence_parallel_size"))));
                let solved = asking.solve(&written.name, &written.bytes);
                solved.map_err(|problem| provenance.explain(problem))?
            }
            None => {
                asking.make("--stage", request.stage()?, request.offload.unwrap_or_default())?
            }
        };
        let Asking { mut recipe, cluster, .. } = asking;
        let Solved { resolved, micro_batch, assumed } = solved;
        match follow(&model, &recipe, &resolved) {
            Ok(tensor) => {
                let (ranks, world) = (tensor.ranks, cluster.world_size());
                if !world.is_multiple_of(ranks) {
                    return Err(MemoryProblem::LayerRanks { ranks, world });
                }
                recipe.tensor = tensor;
                coverage::drop_split(&mut provenance.not_modelled);
                provenance.notes.extend((ranks > 1).then_some(Note::RepeatedSequences { ranks }));
            }
            Err(problem) => coverage::explain_split(&mut provenance.not_modelled, problem),
        }
        let batch = StepBatch {
            micro_batch,
            accumulation: accumulation(&resolved),
            world: cluster.world_size(),
        };
        let task = request.task.in_steps(recipe.task, batch);
        let recipe = Recipe { task, ..recipe };
        let is_assumed =
            assumed.is_some() || request.config.is_none() && request.precision.is_none();
        let format = format(resolved.precision());
        provenance.notes.extend(Note::about(&cluster, format, is_assumed));
        provenance.notes.extend(Note::about_task(&request.task, &request.training));
        let has_optimizer = |frozen: &Frozen| frozen.has_optimizer;
        if recipe.task.frozen.iter().any(has_optimizer) {
            provenance.notes.push(Note::FrozenWithOptimizer);
        }
        let software = &request.training.software;
        provenance.not_modelled.extend(software.of_engine(&resolved));
        provenance.not_modelled.extend(software.of_transformers(&model));
        if request.without_deepspeed && recipe.method.base(&model).is_some() {
            provenance.not_modelled.push(kbit_preparation());
        }
        let times = recipe.long_context.sequence_ranks;
        if times > 1 && matches!(resolved.zero().stage, Stage::One | Stage::Two) {
            provenance.notes.push(Note::SharedGradients { times, avoided: false });
        }
        provenance.notes.extend(Note::about_length(&model, &recipe, micro_batch));
        if resolved.zero().stage == Stage::Three {
            provenance.notes.extend(Note::about_loading(&model, &recipe));
            if request.task.reference == Some(ReferenceName::Precomputed) {
                provenance.not_modelled.push(second_hooks());
            }
        }
        if resolved.zero().hpz_partition_size > 1 && Note::is_hpz_wrong(software.engine()) {
            provenance.notes.push(Note::HpzVersion);
        }
        Ok(Self {
            name: name.to_owned(),
            rank: request.rank,
            model,
            recipe,
            zero: resolved.zero(),
            resolved,
            micro_batch,
            cluster,
            assumed,
            provenance,
            request,
        })
    }

    /// What there is to ask about it.
    pub fn question(&self) -> Question<'_> {
        Question {
            model: &self.model,
            recipe: &self.recipe,
            resolved: &self.resolved,
            zero: &self.zero,
            micro_batch: self.micro_batch,
            cluster: &self.cluster,
            rank: self.rank,
        }
    }

    /// What the model is trained for.
    pub fn task(&self) -> TaskName {
        self.request.task.task()
    }

    /// Where it is trained.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its config on another cluster with another accumulation; a written one keeps its own batch.
    pub(crate) fn resolved_for(
        &self,
        cluster: &Cluster,
        accumulation: u64,
    ) -> Option<ResolvedConfig> {
        let request = &self.request;
        if request.config.is_some() {
            return Some(self.resolved.clone());
        }
        let training = Training { grad_accum: Some(accumulation), ..request.training.clone() };
        let request = MemoryRequest { training, ..request.clone() };
        let asking = Asking { cluster: cluster.clone(), ..Asking::of(&self.model, &request).ok()? };
        let offload = request.offload.unwrap_or_default();
        Some(asking.make("--stage", request.stage().ok()?, offload).ok()?.resolved)
    }
}

fn accumulation(resolved: &ResolvedConfig) -> u64 {
    resolved.batch().map_or(1, |batch| batch.accumulation)
}

fn format(precision: Precision) -> NumberFormat {
    match precision {
        Precision::Fp32 => NumberFormat::Fp32,
        Precision::Fp16 { .. } => NumberFormat::Fp16,
        Precision::Bf16 { .. } => NumberFormat::Bf16,
    }
}

/// What TRL leaves on a model whose reference was computed before training.
fn second_hooks() -> NotModelled {
    NotModelled {
        en: "hooks of a second ZeRO-3 engine, which stay on the model after the reference log-probabilities are computed".to_owned(),
        zh: "另一个 ZeRO-3 engine 的 hook：预先算完参考模型的 log 概率后，这些 hook 仍留在模型上".to_owned(),
        written: "reference precomputed".to_owned(),
        direction: Direction::Either,
        origin: Origin::Option,
    }
}

/// What trainers do to a base of four bits before PEFT gets it.
fn kbit_preparation() -> NotModelled {
    NotModelled {
        en: "norms and head that `prepare_model_for_kbit_training` casts to fp32".to_owned(),
        zh: "`prepare_model_for_kbit_training` 转成 fp32 的 norm 和输出层".to_owned(),
        written: "--without-deepspeed --method qlora".to_owned(),
        direction: Direction::Higher,
        origin: Origin::Option,
    }
}

/// A question about memory with its answer.
#[derive(Debug)]
pub struct Memory {
    /// What was asked about.
    pub job: Job,
    /// What was found.
    pub answer: Answer,
    /// What would lower it, the most effective first.
    pub reliefs: Vec<Relief>,
    /// What would lower that of a host, where it is short.
    pub host_reliefs: Vec<Relief>,
}

impl Memory {
    /// The tensors of its rank as CPU ranks were measured to hold them.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn tensors(&self) -> Result<Prediction, LowerError> {
        self.job.question().tensors(self.answer.rank)
    }

    /// The step of its rank in so many stretches.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn stretches(&self, count: usize) -> Result<Vec<Stretch>, LowerError> {
        let question = self.job.question();
        let workload = question.workload()?;
        let lowered = workload.lowered();
        let world = question.cluster.world_size();
        let rank = lowered.rank(question.resolved, question.zero, world, self.answer.rank);
        Ok(timeline(lowered, &rank, Counting::default(), count))
    }

    /// What goes over the links in a step.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn traffic(&self) -> Result<Traffic, LowerError> {
        let question = self.job.question();
        Ok(Traffic::of(&question.step_program(&question.workload()?)))
    }
}

/// Answers a question about memory.
///
/// # Errors
///
/// If a part of the question makes no sense, or the config is refused.
pub fn memory(name: &str, model: Model, request: &MemoryRequest) -> Result<Memory, MemoryProblem> {
    request.machines.with_gpus_measured()?;
    let job = Job::of(name, model, request)?;
    let question = job.question();
    let answer = Answer::to(&question)?;
    let reliefs = reliefs(&question, &answer)?;
    let is_short = question.cluster.host.ram.is_some_and(|ram| answer.node().high() > ram);
    let host_reliefs = if is_short { host_reliefs(&question, &answer)? } else { Vec::new() };
    Ok(Memory { job, answer, reliefs, host_reliefs })
}

/// A way to train, answered.
#[derive(Debug)]
pub struct Column {
    /// The stage.
    pub stage: u8,
    /// Optimizer states are on the host.
    pub offload_optimizer: bool,
    /// Parameters are on the host.
    pub offload_param: bool,
    /// The config that is answered for.
    pub config: Value,
    /// The answer.
    pub answer: Answer,
}

/// All stages and offloads side by side.
#[derive(Debug)]
pub struct Compared {
    /// One for each.
    pub columns: Vec<Column>,
    /// Where they are trained.
    pub cluster: Cluster,
    /// How.
    pub recipe: Recipe,
    /// Sequences each GPU takes at once.
    pub micro_batch: u64,
    /// The number format.
    pub precision: Precision,
    /// What the question rests on.
    pub provenance: Provenance,
    /// The model, with what is not trained marked.
    pub model: Model,
}

impl Compared {
    /// What each GPU has, if it is known.
    pub fn capacity(&self) -> Option<Estimate> {
        self.cluster.capacity().map(|capacity| capacity.bytes)
    }
}

/// What is compared.
const WAYS: [(u8, Offload); 7] = [
    (0, Offload::None),
    (1, Offload::None),
    (2, Offload::None),
    (2, Offload::Optimizer),
    (3, Offload::None),
    (3, Offload::Optimizer),
    (3, Offload::All),
];

/// Answers the question for every stage and offload, whichever the request names.
///
/// # Errors
///
/// As [`memory`].
pub fn compare(model: &Model, request: &MemoryRequest) -> Result<Compared, MemoryProblem> {
    request.machines.with_gpus_measured()?;
    // Every stage has a config of its own, whatever the job's is.
    let mut request = MemoryRequest { stage: Some(MemoryRequest::STAGE), ..request.clone() };
    let mut provenance = Provenance::settle(&mut request)?;
    provenance.of_model(model, &mut request.training);
    let model = &request.task.model(&request.training.freeze(model))?;
    let mut asking = Asking::of(model, &request)?;
    let mut columns = Vec::new();
    let common = asking.make("--compare", 0, Offload::None)?;
    let steps = accumulation(&common.resolved);
    let batch = StepBatch {
        micro_batch: common.micro_batch,
        accumulation: steps,
        world: asking.cluster.world_size(),
    };
    asking.recipe.task = request.task.in_steps(asking.recipe.task, batch);
    // Most ways run the same program; only what ZeRO does with it differs.
    let mut workloads: Vec<(WorkloadKey, Workload)> = Vec::new();
    for (stage, offload) in WAYS {
        let Solved { resolved, micro_batch, .. } = asking.make("--compare", stage, offload)?;
        let question = Question {
            model,
            recipe: &asking.recipe,
            zero: &resolved.zero(),
            resolved: &resolved,
            micro_batch,
            cluster: &asking.cluster,
            rank: request.rank,
        };
        let key = question.workload_key();
        let known = workloads.iter().position(|(other, _)| *other == key);
        let index = match known {
            Some(index) => index,
            None => {
                let workload = question.workload()?;
                let workload = match workloads.last() {
                    Some((_, other)) => workload.beside(other),
                    None => workload,
                };
                workloads.push((key, workload));
                workloads.len() - 1
            }
        };
        let workload = &workloads[index].1;
        columns.push(Column {
            stage,
            offload_optimizer: offload != Offload::None,
            offload_param: offload == Offload::All,
            config: asking.config(stage, offload),
            answer: Answer::without_slack(&question, workload).with_slack(&question, workload),
        });
    }
    let precision = common.resolved.precision();
    let is_assumed = request.precision.is_none();
    provenance.notes.extend(Note::about(&asking.cluster, format(precision), is_assumed));
    Ok(Compared {
        columns,
        provenance,
        model: model.clone(),
        cluster: asking.cluster,
        recipe: asking.recipe,
        micro_batch: common.micro_batch,
        precision,
    })
}

impl MemoryRequest {
    /// The ZeRO stage of several GPUs if nobody says which.
    pub const STAGE: u8 = 3;

    /// The ZeRO stage if nobody says which: one GPU that keeps everything has nothing to share.
    pub(crate) fn usual_stage(&self) -> u8 {
        let is_alone = self.machines.cluster().is_ok_and(|cluster| cluster.world_size() == 1);
        let keeps_all = is_alone && self.offload.unwrap_or_default() == Offload::None;
        if keeps_all || self.without_deepspeed { 0 } else { Self::STAGE }
    }

    fn stage(&self) -> Result<u8, OutOfRange> {
        let stage = self.stage.unwrap_or_else(|| self.usual_stage());
        within("stage", u64::from(stage), 0, 3)?;
        Ok(stage)
    }

    /// A recipe without DeepSpeed: the HF Trainer runs 16-bit formats under autocast.
    fn on_pytorch(&self, recipe: Recipe) -> Recipe {
        let format = self.precision.unwrap_or_else(|| self.machines.usual_format());
        let autocast = match format {
            NumberFormat::Fp32 => Autocast::Off,
            NumberFormat::Bf16 | NumberFormat::Fp16 => Autocast::OutputsInFp32,
        };
        Recipe { engine: Engine::PyTorch, autocast, ..recipe }
    }

    /// Whether frozen models get an optimizer too: before 1.10 TRL left the config's `optimizer` section to them.
    fn gives_optimizer_to_all(&self) -> bool {
        let software = &self.training.software;
        let has_section = |written: &WrittenConfig| has_optimizer(&written.bytes);
        software.leaves_optimizer_to_frozen() && self.config.as_ref().is_some_and(has_section)
    }

    fn refuse_beside_config(&self) -> Result<(), MemoryProblem> {
        let given = [
            ("stage", self.stage.is_some()),
            ("offload", self.offload.is_some()),
            ("without_deepspeed", self.without_deepspeed),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(MemoryProblem::BesideConfig { option }),
            None => Ok(()),
        }
    }
}

/// A request with everything read but the config.
struct Asking<'a> {
    request: &'a MemoryRequest,
    recipe: Recipe,
    cluster: Cluster,
    hidden: u64,
}

impl<'a> Asking<'a> {
    fn of(model: &Model, request: &'a MemoryRequest) -> Result<Self, MemoryProblem> {
        let cluster = request.machines.cluster()?;
        let world = cluster.world_size();
        if let Some(rank) = request.rank.filter(|rank| *rank >= world) {
            return Err(MemoryProblem::NoSuchRank { rank, world });
        }
        let ranks = request.training.sequence_parallel();
        if !world.is_multiple_of(ranks) {
            return Err(MemoryProblem::SequenceRanks { ranks, world });
        }
        if request.training.fused_loss == Some(FusedLoss::Either) {
            return Err(MemoryProblem::OpenLoss);
        }
        let recipe = request.training.recipe_with_software()?;
        let recipe = if request.without_deepspeed { request.on_pytorch(recipe) } else { recipe };
        let hidden = model.dimensions().map_or(1, |dimensions| dimensions.hidden_size);
        let mut asking = Self { request, recipe, cluster, hidden };
        let mut task = request.task.lower(model, &request.training, &asking.cluster)?;
        if !task.frozen.is_empty() {
            let zero = asking.frozen_zero()?;
            let has_optimizer = request.gives_optimizer_to_all();
            for frozen in &mut task.frozen {
                frozen.zero.clone_from(&zero);
                frozen.has_optimizer = has_optimizer;
            }
        }
        asking.recipe.task = task;
        Ok(asking)
    }

    /// The settings of a frozen model's engine where the config leaves sizes to the front end: they are filled in for the
    /// trained model alone, after the others are prepared, so that those get DeepSpeed's defaults.
    fn frozen_zero(&self) -> Result<Option<Zero>, MemoryProblem> {
        let Some(written) = &self.request.config else { return Ok(None) };
        let Some(bytes) = without_auto_sizes(&written.bytes) else { return Ok(None) };
        Ok(Some(self.solve(&written.name, &bytes)?.resolved.zero()))
    }

    /// The config of a stage with an offload.
    fn config(&self, stage: u8, offload: Offload) -> Value {
        let usual = || self.request.machines.usual_format();
        let precision = self.request.precision.unwrap_or_else(usual);
        made(stage, offload, precision, &self.request.training)
    }

    fn make(&self, name: &str, stage: u8, offload: Offload) -> Result<Solved, MemoryProblem> {
        self.solve(name, self.config(stage, offload).to_string().as_bytes())
    }

    fn solve(&self, name: &str, bytes: &[u8]) -> Result<Solved, MemoryProblem> {
        let training = &self.request.training;
        let flags = Flags {
            micro_batch: training.micro_batch,
            grad_accum: training.grad_accum,
            precision: self.request.precision,
            usual: self.request.machines.usual_format(),
            engine: training.software.engine(),
            shares_sequence: training.sequence_parallel() > 1,
        };
        let world = self.recipe.long_context.groups(self.cluster.world_size());
        solve(name, bytes, world, self.hidden, flags)
    }
}
