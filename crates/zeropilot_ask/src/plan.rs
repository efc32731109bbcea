//! What to run on these GPUs.

use std::num::NonZeroU64;

use serde::Deserialize;
use zeropilot_cluster::Cluster;
use zeropilot_job::TrainingJob;
use zeropilot_model::Model;
use zeropilot_plan::{
    DynamicLossScale, Fitting, Held, Job, Launcher, Longest, LossScale, Machines as Hosts, Offer,
    Offers, Offloaded, Plan, PlanError, Precision, Stage, Target, Task, Way,
};

use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe;
use zeropilot_step::memory::Answer;
use zeropilot_step::shape::LongContext;
use zeropilot_step::task::Task as Steps;
use zeropilot_step::time::Estimated;

use crate::bill::{BadBill, Bill, BillRequest};
use crate::machines::{Machines, MachinesProblem};
use crate::memory::{Job as MemoryJob, MemoryRequest};
use crate::name::{self, FusedLoss, MethodName, NumberFormat, Objective, Offload, TaskName};
use crate::note::Note;
#[cfg(feature = "clap")]
use crate::parsers;
use crate::provenance::Provenance;
use crate::range::{OutOfRange, within};
use crate::simulate::{SimulateRequest, Simulated, simulate};
use crate::size;
use crate::task::{TaskProblem, TaskRequest};
use crate::training::{MOST_TOKENS, Training};

/// What a plan is wanted for.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct PlanRequest {
    /// Where it is trained.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub machines: Machines,
    /// Set the ZeRO stage [default: chosen by zeropilot]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STAGE",
        value_parser = clap::value_parser!(u8).range(0..=3)))]
    pub stage: Option<u8>,
    /// Keep these states in host memory, or in --nvme-path; `--offload` alone means all [default: chosen by zeropilot]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", num_args = 0..=1,
        default_missing_value = "all"))]
    pub offload: Option<Offload>,
    /// Set the global batch size: samples per optimizer step on all GPUs, the same for every strategy
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub global_batch: Option<NonZeroU64>,
    /// Set the precision of the model; fp16 on GPUs without bf16 [default: bf16]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT"))]
    pub precision: Option<NumberFormat>,
    /// Find the longest sequence that fits, and the script changes that it needs
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "seq_len"))]
    pub max_seq_len: bool,
    /// Use this directory on a local disk for NVMe offload
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub nvme_path: Option<String>,
    /// Rank strategies by step time, by the cost of the run (on fewer GPUs if that is cheaper), or by free GPU memory [default: time]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    pub objective: Option<Objective>,
    /// What is to be finished, to know what it costs.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub bill: Option<BillRequest>,
    /// Set the framework that reads the config [default: deepspeed]
    #[serde(rename = "for", deserialize_with = "size::word")]
    #[cfg_attr(feature = "clap", arg(long = "for", value_name = "PROGRAM", value_parser = parsers::target()))]
    pub target: Option<Target>,
    /// How it is trained; the plan chooses micro-batch and checkpointing where they are not said.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub training: Training,
    /// What it is trained for.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub task: TaskRequest,
    /// Whether projection and cross entropy are one kernel, or may be; the same as `training.fused_loss`.
    #[serde(deserialize_with = "name::fused_loss")]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub fused_loss: Option<FusedLoss>,
    /// What the files of a job say; it counts where nothing else is said.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub job: TrainingJob,
}

/// Completions of a step on a GPU, where no global batch says how many: a usual group of GRPO, twice.
const SEQUENCES_OF_A_STEP: u64 = 16;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanProblem {
    /// The GPUs cannot be read.
    #[error(transparent)]
    Machines(#[from] MachinesProblem),
    /// A number makes no sense.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// What is to be finished is not understood.
    #[error(transparent)]
    Bill(#[from] BadBill),
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskProblem),
    /// The longest sequence of a task that has several lengths.
    #[error("zeropilot finds the longest sequence only for supervised fine-tuning")]
    LongestOfTask(TaskName),
    /// The search cannot begin.
    #[error("no plan was found")]
    Plan(PlanError),
}

/// A plan with what it was made for.
#[derive(Debug)]
pub struct Planned {
    /// The model as the user named it.
    pub model: String,
    /// The GPUs as the user named them.
    pub gpus: String,
    /// Where it is trained.
    pub cluster: Cluster,
    /// Tokens of a sequence.
    pub length: u64,
    /// How long sequences get, where that was asked.
    pub longest: Option<Longest>,
    /// What is trained.
    pub method: MethodName,
    /// What it is trained for.
    pub task: TaskName,
    /// The same as the step model knows it, with the accumulation of the choice.
    pub steps: Steps,
    /// The plan.
    pub plan: Plan,
    /// Where cost decides: plans on ever more of the GPUs, of which this is the cheapest.
    pub offers: Option<Offers>,
    /// What is to be finished.
    pub bill: Option<Bill>,
    /// What the question rests on.
    pub provenance: Provenance,
    /// The job as it is written, where it has a config and its step can be timed.
    pub current: Option<AsWritten>,
}

/// A job as it is written.
#[derive(Debug)]
pub struct AsWritten {
    /// The job.
    pub job: MemoryJob,
    /// What it needs.
    pub answer: Answer,
    /// How long its step takes.
    pub time: Estimated,
    /// Micro-batches per optimizer step.
    pub accumulation: u64,
}

/// Searches for what fits.
///
/// # Errors
///
/// If a part of the request makes no sense. That nothing fits is a plan too.
pub fn plan(name: &str, asked_about: &Model, asked: &PlanRequest) -> Result<Planned, PlanProblem> {
    let mut request = asked.clone();
    let job = request.job.clone();
    let mut provenance = Provenance::settle_plan(&mut request);
    request.machines.with_gpus_measured()?;
    let cluster = request.machines.cluster()?;
    let bill = request.bill.as_ref().map(BillRequest::read).transpose()?;
    let fused_loss = request.fused_loss.or(request.training.fused_loss);
    let mut training = Training { fused_loss, ..request.training.clone() };
    provenance.of_model(asked_about, &mut training);
    let model = &request.task.model(&training.freeze(asked_about))?;
    let per_rank = request
        .global_batch
        .map_or(SEQUENCES_OF_A_STEP, |batch| batch.get().div_ceil(cluster.world_size().max(1)));
    let said = request.task.clone();
    request.task.choose_rollout(model, &cluster, per_rank, training.seq_len());
    provenance.chose_rollout(&request.task);
    let task = request.task.lower(model, &training, &cluster)?;
    let recipe = Recipe { task, ..training.recipe_with_software()? };
    let objective = request.objective.unwrap_or_default();
    let format = request.precision.unwrap_or_else(|| request.machines.usual_format());
    provenance.notes.extend(Note::about(&cluster, format, request.precision.is_none()));
    provenance.not_modelled.extend(training.software.of_transformers(model));
    provenance.notes.extend(Note::about_loading(model, &recipe));
    provenance.notes.extend(Note::about_task(&request.task, &training));
    if recipe.task.generation.is_some() {
        provenance.leave_out_generation();
        if request.task.reuses() {
            provenance.leave_out_reuse(true);
        }
    }
    if request.global_batch.is_none() {
        provenance.notes.push(Note::OpenBatch);
    }
    let target = request.target.unwrap_or_default();
    provenance.notes.extend(Note::about_optimizer(target, &training));
    let task_name = request.task.task();
    let task = Task {
        model,
        training: &recipe,
        cluster: &cluster,
        precision: precision(format),
        held: request.held()?,
        global_batch: request.global_batch,
        may_fuse_loss: fused_loss == Some(FusedLoss::Either) && task_name == TaskName::Sft,
        // Where the user says how long sequences are made to fit, nothing else is tried.
        may_stretch: task_name == TaskName::Sft
            && recipe.long_context == LongContext::NONE
            && !matches!(request.target, Some(Target::LlamaFactory | Target::Axolotl)),
        nvme_path: request.nvme_path.as_deref(),
        objective: match objective {
            Objective::Time | Objective::Cost => zeropilot_plan::Objective::Time,
            Objective::Memory => zeropilot_plan::Objective::Memory,
        },
        target,
        engine: training.software.engine(),
    };
    if request.max_seq_len {
        if task_name != TaskName::Sft {
            return Err(PlanProblem::LongestOfTask(task_name));
        }
        let longest = zeropilot_plan::longest(&task, MOST_TOKENS).map_err(PlanProblem::Plan)?;
        return plan_at(name, asked_about, asked, longest);
    }
    let (cluster, plan, offers) = match objective {
        Objective::Cost => {
            let offers = zeropilot_plan::offers(&task).map_err(PlanProblem::Plan)?;
            let Offer { cluster, plan } = offers.cheapest().clone();
            (cluster, plan, Some(offers))
        }
        Objective::Time | Objective::Memory => {
            let plan = zeropilot_plan::plan(&task).map_err(PlanProblem::Plan)?;
            (cluster, plan, None)
        }
    };
    let choice = plan.fitting.first();
    if let Some(choice) = choice {
        provenance.notes.extend(Note::about_choice(choice, &cluster, training.seq_len(), bill));
        provenance.notes.extend(notes_of_work(choice, model, &recipe));
    }
    // What the plan has chosen for vLLM, the job does not have.
    let request = PlanRequest { task: said, ..request };
    let current = as_written(name, asked_about, &request, job);
    let accumulation = choice.map_or(1, |choice| choice.way.work.accumulation);
    let steps = recipe.task.with_accumulation(accumulation);
    let (model, gpus) = (name.to_owned(), request.machines.gpus.clone().unwrap_or_default());
    let (length, method) = (training.seq_len(), training.method());
    Ok(Planned {
        model,
        gpus,
        cluster,
        length,
        longest: None,
        method,
        task: task_name,
        steps,
        plan,
        offers,
        bill,
        provenance,
        current,
    })
}

impl PlanRequest {
    /// What the plan must keep to.
    fn held(&self) -> Result<Held, OutOfRange> {
        if let Some(stage) = self.stage {
            within("stage", u64::from(stage), 0, 3)?;
        }
        let offloaded = |offload| match offload {
            Offload::None => Offloaded::Nothing,
            Offload::Optimizer => Offloaded::Optimizer,
            Offload::All => Offloaded::Everything,
        };
        Ok(Held {
            stage: self.stage.and_then(Stage::from_number),
            offloaded: self.offload.map(offloaded),
            micro_batch: self.training.micro_batch.and_then(NonZeroU64::new),
            checkpointing: self.training.grad_checkpointing,
        })
    }
}

/// What is to be known about the chosen work.
fn notes_of_work(choice: &Fitting, model: &Model, recipe: &Recipe) -> Vec<Note> {
    let Way { work, hpz, .. } = choice.way;
    let times = work.long_context.sequence_ranks;
    let loss = if work.fused_loss { LossHead::Fused } else { recipe.loss };
    let chosen = Recipe { loss, long_context: work.long_context, ..recipe.clone() };
    let hpz = (hpz > 1).then_some(Note::HpzVersion);
    let shared = (times > 1).then_some(Note::SharedGradients { times, avoided: true });
    let long = Note::about_length(model, &chosen, work.micro_batch);
    hpz.into_iter().chain(shared).chain(long).collect()
}

/// The plan for the longest sequences that were found, or for the shortest that were tried if none fits.
fn plan_at(
    name: &str,
    model: &Model,
    asked: &PlanRequest,
    longest: Longest,
) -> Result<Planned, PlanProblem> {
    let mut request = PlanRequest { max_seq_len: false, ..asked.clone() };
    let length = longest.reaches.last().map_or(SHORTEST, |reach| reach.sequence);
    request.training.seq_len = Some(length);
    let mut planned = plan(name, model, &request)?;
    // Nobody said this length: it is the answer.
    planned.provenance.statements.retain(|statement| statement.name != "seq_len");
    Ok(Planned { longest: Some(longest), ..planned })
}

/// Tokens of the sequences that a plan is made for where none fits.
const SHORTEST: u64 = 1024;

/// The job with its own config, where it names one.
fn as_written(
    name: &str,
    model: &Model,
    request: &PlanRequest,
    job: TrainingJob,
) -> Option<AsWritten> {
    job.config.as_ref()?;
    let job = MemoryRequest {
        machines: request.machines.clone(),
        // What a plan is made to hold, the job need not have.
        training: Training {
            fused_loss: None,
            micro_batch: None,
            grad_checkpointing: None,
            ..request.training.clone()
        },
        task: request.task.clone(),
        job,
        ..MemoryRequest::default()
    };
    let request = SimulateRequest { job, scale: None, strong: false };
    let Simulated { job, time, program, .. } = simulate(name, model.clone(), &request).ok()?;
    let answer = Answer::to(&job.question()).ok()?;
    Some(AsWritten { job, answer, time, accumulation: program.accumulation })
}

impl Planned {
    /// What is chosen; `None` if nothing fits.
    pub fn choice(&self) -> Option<&Fitting> {
        self.plan.fitting.first()
    }

    /// The commands that start the choice with a config file of this name, by launcher.
    pub fn commands(&self, config: &str) -> Vec<(&'static str, String)> {
        let layout = self.cluster.gpus.layout;
        let (Some(choice), Some(ranks_per_machine)) =
            (self.choice(), NonZeroU64::new(layout.gpus_per_node))
        else {
            return Vec::new();
        };
        let machines = match NonZeroU64::new(layout.nodes).filter(|nodes| nodes.get() > 1) {
            None => Hosts::One,
            Some(count) => {
                Hosts::Several { count, main_address: "MAIN_HOST", hostfile: "hostfile" }
            }
        };
        let rlhf_type = match self.task {
            TaskName::Sft => None,
            TaskName::Reward => Some("rm"),
            task => Some(task.name()),
        };
        let long = choice.way.work.long_context;
        let shares_only =
            LongContext { sequence_ranks: long.sequence_ranks, ..LongContext::NONE } == long;
        let has_task = |launcher: Launcher| match launcher {
            Launcher::Swift => {
                shares_only && !matches!(self.task, TaskName::Distill | TaskName::Rloo)
            }
            // Its YAML says the task. It has no Ulysses, and no script to change.
            Launcher::LlamaFactory => {
                long == LongContext::NONE
                    && matches!(self.task, TaskName::Sft | TaskName::Dpo | TaskName::Kto)
            }
            _ => true,
        };
        let line = |launcher: Launcher| {
            let reader = launcher.reader(choice.recipe.target).filter(|_| has_task(launcher))?;
            // Others have no options that all scripts share.
            let arguments = if reader.is_trainer() { choice.arguments(reader) } else { Vec::new() };
            let (script, arguments) = (launcher.script(), &arguments[..]);
            let job = Job { machines, ranks_per_machine, script, config, arguments, rlhf_type };
            Some((launcher.name(), job.command(launcher).shell().ok()?))
        };
        Launcher::ALL.into_iter().filter_map(line).collect()
    }
}

fn precision(format: NumberFormat) -> Precision {
    match format {
        NumberFormat::Bf16 => Precision::Bf16,
        NumberFormat::Fp16 => Precision::Fp16(LossScale::Dynamic(DynamicLossScale::default())),
        NumberFormat::Fp32 => Precision::Fp32,
    }
}
