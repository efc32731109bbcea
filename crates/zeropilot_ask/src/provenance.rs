//! What a question rests on: each value with who said it, and what the job says that no prediction follows.
//!
//! Options win over the files of a job, those over the defaults of its framework; what nobody says is assumed.

use std::num::NonZeroU64;

use serde_json::Value;
use zeropilot_job::{
    ConfigContent, Direction, Framework, FrozenParts, JobConfig, JobTask, NotModelled, Origin,
    Sourced, TrainingJob,
};

use zeropilot_model::quantization::Adapters;
use zeropilot_model::{CountedFrom, Family, Model, Names, Part, PartKind};
use zeropilot_plan::Target;
use zeropilot_step::lower::{differentiates_frozen_tower, sees};
use zeropilot_units::parse_product;

use crate::machines::Machines;
use crate::memory::{MemoryProblem, MemoryRequest, Stated, WrittenConfig};
use crate::name::{FusedLoss, ImageChoice, MethodName, PartName, TaskName};
use crate::note::Note;
use crate::plan::PlanRequest;
use crate::task::TaskRequest;
use crate::training::Training;

/// Arguments that name parameters to freeze or to train, which `--freeze` says otherwise.
const FROZEN_BY_NAME: [&str; 4] = [
    "unfrozen_parameters",
    "freeze_parameters",
    "freeze_parameters_regex",
    "freeze_parameters_ratio",
];

/// Models whose parts LLaMA-Factory does not know (`_register_composite_model`), so that it freezes none of them.
const LEFT_BY_LLAMA_FACTORY: [Family; 3] =
    [Family::Idefics3, Family::SmolVlm, Family::LlavaOnevision];

/// What a job says of how often GRPO and RLOO generate.
const REUSE: [&str; 3] = ["steps_per_generation", "generation_batch_size", "num_iterations"];

/// A value that a question rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Which, by its name in programs.
    pub name: &'static str,
    /// The value.
    pub value: Value,
    /// Who said it.
    pub origin: Origin,
}

/// What a question rests on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Provenance {
    /// Who runs the training loop, where a job says it.
    pub framework: Option<Framework>,
    /// The values.
    pub statements: Vec<Statement>,
    /// What the job says that no prediction follows.
    pub not_modelled: Vec<NotModelled>,
    /// Values that only the run knows.
    pub unknown: Vec<&'static str>,
    /// What else there is to know.
    pub notes: Vec<Note>,
    /// Parts that the job freezes, and its limit for images: whether they count, the model decides.
    parts: OfParts,
}

/// What a job says of the parts of a model, where no option does.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfParts {
    frozen: Vec<(PartName, Origin)>,
    max_pixels: Option<Origin>,
}

/// A config that a job names and that cannot be read before it runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the config `{name}` of the job cannot be read")]
pub struct UnreadableConfig {
    /// What the job calls it.
    pub name: String,
    /// Whether the script builds it when it runs, rather than that the file is missing.
    pub is_computed: bool,
    /// Where the job names it.
    pub origin: Origin,
}

impl Provenance {
    /// Fills what a request leaves open from its job, and says where every value comes from.
    ///
    /// # Errors
    ///
    /// If the job's config is needed and cannot be read.
    pub(crate) fn settle(request: &mut MemoryRequest) -> Result<Self, UnreadableConfig> {
        let job = std::mem::take(&mut request.job);
        let mut all = Self::of(&job);
        let is_made =
            request.stage.is_some() || request.offload.is_some() || request.without_deepspeed;
        if request.config.is_none() && !is_made {
            request.config = all.config(job.config.as_ref())?;
        }
        let written = request.config.as_ref().map(|config| Stated::of(&config.bytes));
        let is_weak = |origin: &Origin| {
            let reads_arguments = !matches!(job.framework, None | Some(Framework::DeepSpeed));
            !reads_arguments || matches!(origin, Origin::FrameworkDefault { .. })
        };
        // What the config states itself counts before defaults, and before arguments that nothing compares with it.
        let beside = |is_stated: fn(&Stated) -> bool, origin: &Origin| {
            written.as_ref().is_some_and(is_stated) && is_weak(origin)
        };
        let strong = |said: &Option<Sourced<u64>>, is_stated: fn(&Stated) -> bool| {
            said.clone().filter(|said| !beside(is_stated, &said.origin))
        };
        all.machines(&mut request.machines, job.world_size.clone());
        let states = |is_stated: fn(&Stated) -> bool| written.as_ref().is_some_and(is_stated);
        let training = &mut request.training;
        let micro = strong(&job.micro_batch, |stated| stated.micro_batch.is_some());
        let assumed = (!states(|stated| stated.micro_batch.is_some())).then_some(1);
        all.take("micro_batch", &mut training.micro_batch, micro, assumed);
        let steps = strong(&job.grad_accum, |stated| stated.grad_accum.is_some());
        let steps = match (&written, &job.config, job.framework) {
            // accelerate warns that the script says otherwise, and uses the config's.
            (
                Some(Stated { grad_accum: Some(value), .. }),
                Some(config),
                Some(Framework::Accelerate),
            ) if steps.is_some() => {
                let is_same = steps.as_ref().is_some_and(|steps| steps.value == *value);
                let origin = config.origin.clone();
                steps.filter(|_| is_same).or(Some(Sourced { value: *value, origin }))
            }
            _ => steps,
        };
        let assumed = (!states(|stated| stated.grad_accum.is_some())).then_some(1);
        all.take("grad_accum", &mut training.grad_accum, steps, assumed);
        // TRL's PPOTrainer, and that of ms-swift, do not read it.
        let is_ppo = request.task.of_job(job.task.as_ref()) == TaskName::Ppo;
        let checkpointing = job.grad_checkpointing.clone();
        let is_read = |said: &Sourced<bool>| !(is_ppo && said.value);
        let checkpointing = checkpointing.filter(is_read);
        all.take(
            "grad_checkpointing",
            &mut training.grad_checkpointing,
            checkpointing,
            Some(false),
        );
        all.training(training, &request.task, &job);
        all.task(&mut request.task, training, job.task.as_ref());
        let precision = job.precision.clone();
        let precision =
            precision.filter(|said| !beside(|stated| stated.precision.is_some(), &said.origin));
        let assumed = written.is_none().then(|| request.machines.usual_format());
        all.take("precision", &mut request.precision, precision, assumed);
        if request.without_deepspeed {
            all.state("without_deepspeed", true, Origin::Option);
        } else if request.config.is_none() {
            let usual = request.usual_stage();
            all.take("stage", &mut request.stage, None, Some(usual));
        }
        Ok(all)
    }

    /// What the files of a job say, without a question to it.
    pub fn of_job(job: &TrainingJob) -> Self {
        let mut all = Self::of(job);
        if let Some(config) = &job.config {
            all.state("config", &config.name, config.origin.clone());
        }
        if let Some(world) = &job.world_size {
            all.state("world_size", world.value, world.origin.clone());
        }
        let rest = TrainingJob { model: None, config: None, ..job.clone() };
        let mut question = MemoryRequest { job: rest, ..MemoryRequest::default() };
        let settled = Self::settle(&mut question).unwrap_or_default();
        let is_said = |one: &Statement| one.origin != Origin::Assumed;
        all.statements.extend(settled.statements.into_iter().filter(is_said));
        let is_in_file = |(_, origin): &(PartName, Origin)| matches!(origin, Origin::File { .. });
        let frozen = settled.parts.frozen.into_iter().filter(is_in_file);
        let (parts, origins): (Vec<PartName>, Vec<Origin>) = frozen.unzip();
        if let Some(origin) = origins.into_iter().next() {
            all.state("freeze", part_names(&parts), origin);
        }
        all
    }

    fn of(job: &TrainingJob) -> Self {
        let mut all = Self {
            framework: job.framework,
            statements: Vec::new(),
            not_modelled: job.not_modelled.clone(),
            unknown: job.unknown.clone(),
            notes: Vec::new(),
            parts: OfParts::default(),
        };
        if let Some(model) = &job.model {
            all.state("model", &model.value, model.origin.clone());
        }
        all
    }

    /// Fills what a request for a plan leaves open from its job.
    pub(crate) fn settle_plan(request: &mut PlanRequest) -> Self {
        let job = std::mem::take(&mut request.job);
        let mut all = Self::of(&job);
        all.machines(&mut request.machines, job.world_size.clone());
        let stated = job.config.as_ref().and_then(|config| {
            let written = WrittenConfig::of(config).ok()?;
            Some((Stated::of(&written.bytes), config.origin.clone()))
        });
        let stated = stated.unwrap_or((Stated::default(), Origin::Assumed));
        let ranks = request.machines.cluster().ok().map(|cluster| cluster.world_size());
        let shared = job.sequence_parallel.as_ref().map(|said| said.value);
        let sharing = request.training.sequence_parallel.or(shared).unwrap_or(1);
        let batch = global_batch(&job, &stated, ranks, sharing);
        all.take("global_batch", &mut request.global_batch, batch, None);
        all.take("stage", &mut request.stage, None, None);
        all.take("offload", &mut request.offload, None, None);
        all.take("micro_batch", &mut request.training.micro_batch, None, None);
        all.take("grad_checkpointing", &mut request.training.grad_checkpointing, None, None);
        all.training(&mut request.training, &request.task, &job);
        all.task(&mut request.task, &mut request.training, job.task.as_ref());
        let (written, origin) = stated;
        let written = written.precision.map(|value| Sourced { value, origin });
        let precision = job.precision.clone().or(written);
        let usual = request.machines.usual_format();
        all.take("precision", &mut request.precision, precision, Some(usual));
        request.target = request.target.or_else(|| job.framework.map(reader));
        all
    }

    /// How it is trained, except for what a plan chooses.
    fn training(&mut self, training: &mut Training, task: &TaskRequest, job: &TrainingJob) {
        let length = job.seq_len.clone();
        let usual = task.usual_length(job.task.as_ref());
        self.take("seq_len", &mut training.seq_len, length, Some(usual));
        training.seq_len.get_or_insert(usual);
        let method = job.method.clone();
        self.take("method", &mut training.method, method, Some(MethodName::Full));
        if training.method() != MethodName::Full {
            let rank = job.lora_rank.clone();
            self.take("lora_rank", &mut training.lora_rank, rank, Some(Training::LORA_RANK));
            self.targets(&mut training.lora_targets, job.lora_targets.clone());
        }
        if training.method() == MethodName::Qlora {
            let format = job.quantization.clone();
            self.take("quantization", &mut training.quantization, format, None);
        }
        self.take("attention", &mut training.attention, job.attention.clone(), None);
        let fused = job
            .fused_loss
            .clone()
            .map(|said| said.map(|is_fused| if is_fused { FusedLoss::Yes } else { FusedLoss::No }));
        // TRL has a head of its own, with Liger's other kernels, too.
        let is_next_token = task.of_job(job.task.as_ref()) == TaskName::Sft;
        let has_head = is_next_token && training.software.has_trl_head();
        let trl = job.trl_head.clone().filter(|_| has_head);
        let trl = trl.map(|origin| Sourced { value: FusedLoss::Trl, origin });
        if trl.is_some() && training.fused_loss.is_none() {
            self.not_modelled.extend(training.software.of_trl());
            let is_assumed = training.software.trl_version.is_none();
            self.notes.extend(is_assumed.then_some(Note::TrlAssumed));
        }
        let tiled = job.tiled_loss.clone().map(|said| said.map(FusedLoss::from));
        self.take("fused_loss", &mut training.fused_loss, tiled.or(trl).or(fused), None);
        if matches!(training.fused_loss, Some(FusedLoss::SequenceTiled | FusedLoss::TiledFused)) {
            self.take("loss_shards", &mut training.loss_shards, job.loss_shards.clone(), None);
            if training.loss_shards.is_none() {
                self.state("loss_shards", "≤ 1 GiB".to_owned(), Origin::Assumed);
            }
        }
        self.take("liger", &mut training.liger, job.liger.clone(), None);
        self.parts_of_job(training, job);
        let shared = job.sequence_parallel.clone();
        self.take("sequence_parallel", &mut training.sequence_parallel, shared, None);
        self.take("tiled_mlp", &mut training.tiled_mlp, job.tiled_mlp.clone(), None);
        self.take("activation_offload", &mut training.activation_offload, None, None);
        let grows = job.expandable_segments.clone();
        self.take("expandable_segments", &mut training.expandable_segments, grows, None);
        self.take("optimizer", &mut training.optimizer, job.optimizer.clone(), None);
        let software = &training.software;
        let origin = software.engine_origin();
        // That the newest is assumed where nothing else is known needs no word.
        if origin != Origin::Assumed {
            self.state("deepspeed_version", software.engine().name(), origin);
        }
        if let Some(version) = software.transformers_version {
            self.state("transformers_version", version.to_string(), Origin::Option);
        }
        if let Some(version) = software.trl_version {
            self.state("trl_version", version.to_string(), Origin::Option);
        }
    }

    /// What it is trained for. Another task than the job's has nothing from the job.
    fn task(&mut self, task: &mut TaskRequest, training: &mut Training, job: Option<&JobTask>) {
        let name = task.of_job(job);
        let job = job.filter(|job| job.task.value == name);
        self.take("task", &mut task.task, job.map(|job| job.task.clone()), None);
        if name == TaskName::Sft {
            return;
        }
        let teacher = job.and_then(|job| job.teacher.clone());
        self.take("teacher", &mut task.teacher, teacher, None);
        let judge = job.and_then(|job| job.reward_model.clone());
        self.take("reward_model", &mut task.reward_model, judge, None);
        self.take("critic", &mut task.critic, job.and_then(|job| job.critic.clone()), None);
        let batch = job.and_then(|job| job.rollout_batch.clone());
        self.take("rollout_batch", &mut task.rollout_batch, batch, None);
        if name == TaskName::Ppo && task.reward_model.is_none() {
            self.state("reward_model", "a model of this shape", Origin::Assumed);
        }
        let reuse = job.map(|job| job.reuse.clone()).unwrap_or_default();
        let own = &mut task.reuse;
        let iterations = match name {
            TaskName::Ppo => "num_ppo_epochs",
            _ => "num_iterations",
        };
        for (name, own, said) in [
            ("steps_per_generation", &mut own.steps_per_generation, reuse.steps_per_generation),
            ("generation_batch_size", &mut own.generation_batch_size, reuse.generation_batch_size),
            (iterations, &mut own.num_iterations, reuse.num_iterations),
        ] {
            self.take(name, own, said, None);
        }
        let reference = job.and_then(|job| job.reference.clone());
        self.take("reference", &mut task.reference, reference, None);
        let completion = job.and_then(|job| job.completion_len.clone());
        self.take("completion_len", &mut task.completion_len, completion, None);
        self.take("rollout", &mut task.rollout, job.and_then(|job| job.rollout.clone()), None);
        let vllm = job.filter(|_| task.is_colocated()).map(|job| job.vllm.clone());
        let vllm = vllm.unwrap_or_default();
        let share = &mut task.vllm_gpu_memory_utilization;
        self.take("vllm_gpu_memory_utilization", share, vllm.share, None);
        self.take("vllm_sleep", &mut task.vllm_sleep, vllm.sleeps, None);
        let split = &mut task.vllm_tensor_parallel_size;
        self.take("vllm_tensor_parallel_size", split, vllm.tensor_parallel, None);
        let trainer = job.and_then(|job| job.trainer.clone()).filter(|_| name.compares());
        self.take("trainer", &mut task.trainer, trainer, None);
        let software = &mut training.software;
        if let Some(trl) = job.and_then(|job| job.trl.clone())
            && software.trl_version.is_none()
        {
            software.trl_version = Some(trl.value);
            self.state("trl_version", trl.value.to_string(), trl.origin);
        }
        let origin = self.origin_of("trl_version");
        self.not_modelled.extend(task.not_modelled(training, origin));
    }

    /// Says which share and sleep mode of vLLM a plan has chosen.
    pub(crate) fn chose_rollout(&mut self, task: &TaskRequest) {
        let said = |name: &str| self.statements.iter().any(|one| one.name == name);
        let (has_share, has_sleep) = (said("vllm_gpu_memory_utilization"), said("vllm_sleep"));
        if let Some(share) = task.vllm_gpu_memory_utilization.filter(|_| !has_share) {
            self.state("vllm_gpu_memory_utilization", share, Origin::Assumed);
        }
        if let Some(sleeps) = task.vllm_sleep.filter(|_| !has_sleep) {
            self.state("vllm_sleep", sleeps, Origin::Assumed);
        }
    }

    /// Names the time of generation as what no prediction follows.
    pub(crate) fn leave_out_generation(&mut self) {
        let task = self.statements.iter().find(|one| one.name == "task");
        let name = task.and_then(|task| task.value.as_str()).unwrap_or_default().to_owned();
        let written = format!("task {name}");
        let generation = not_modelled(
            "generation time (`generate` or vLLM); zeropilot counts only the all-gathers before and after generation",
            "生成（`generate` 或 vLLM）的耗时；只计入生成前后的 all-gather",
            &written,
            Direction::Higher,
        );
        let again = not_modelled(
            "several steps on the same completions (`num_ppo_epochs`); zeropilot counts the forward passes of the reference, value and reward models in every step",
            "用同一批补全训练多步（`num_ppo_epochs`）；参考模型、价值模型和奖励模型的前向耗时在每一步都计入",
            &written,
            Direction::Lower,
        );
        let is_once = |one: &Statement| one.name == "num_ppo_epochs" && one.value == 1;
        let is_once = self.statements.iter().any(is_once);
        let again = Some(again).filter(|_| name == TaskName::Ppo.name() && !is_once);
        let origin = self.origin_of("task");
        let all = [generation].into_iter().chain(again);
        self.not_modelled.extend(all.map(|one| NotModelled { origin: origin.clone(), ..one }));
    }

    /// Names what an answer about time, or a plan, leaves out where completions are not generated once in every step.
    pub(crate) fn leave_out_reuse(&mut self, is_plan: bool) {
        let is_it = |one: &&Statement| REUSE.contains(&one.name);
        let Some(said) = self.statements.iter().find(is_it).cloned() else { return };
        let written = format!("{}={}", said.name, said.value);
        let of_time = not_modelled(
            "the time of a generation that is not repeated once per optimizer step; zeropilot counts the forward passes of the policy, reference and reward models as if every step generated",
            "生成不是每步一次时的耗时；策略模型、参考模型和奖励模型的前向按每步都生成计入",
            &written,
            Direction::Either,
        );
        let of_plan = not_modelled(
            "the number of completions per generation; the plan counts those of one optimizer step",
            "每次生成的补全数；方案按一步所需的补全数计入",
            &written,
            Direction::Either,
        );
        let of_plan = Some(of_plan).filter(|_| is_plan && said.name != "num_iterations");
        let all = [of_time].into_iter().chain(of_plan);
        self.not_modelled.extend(all.map(|one| NotModelled { origin: said.origin.clone(), ..one }));
    }

    /// The same problem with who says what contradicts.
    pub(crate) fn explain(&self, mut problem: MemoryProblem) -> MemoryProblem {
        if let MemoryProblem::Conflict { conflict, .. } = &mut problem {
            conflict.origin = self.origin_of(conflict.option);
            conflict.config = self.origin_of("config");
            conflict.framework = self.framework;
        }
        problem
    }

    fn origin_of(&self, name: &str) -> Origin {
        let stated = self.statements.iter().find(|one| one.name == name);
        stated.map_or(Origin::Option, |one| one.origin.clone())
    }

    /// What follows from the model: a length it can take, what it sees, which of its parts are not trained, and what is
    /// not modelled of its towers.
    pub(crate) fn of_model(&mut self, model: &Model, training: &mut Training) {
        self.shorten(model, training);
        let OfParts { frozen, max_pixels } = std::mem::take(&mut self.parts);
        let said = |is_said: bool| if is_said { Origin::Option } else { Origin::Assumed };
        if sees(model) {
            let image = training.image.unwrap_or_default();
            self.state("image", image, said(training.image.is_some()));
            if image != ImageChoice::None {
                let count = training.images_per_sample;
                self.state("images_per_sample", count.unwrap_or(1), said(count.is_some()));
            }
            if let Some(most) = training.max_pixels {
                self.state("max_pixels", most, max_pixels.unwrap_or(Origin::Option));
            }
        }
        self.frozen(frozen, model, training);
        self.not_modelled.extend(unseen(model).or_else(|| likened(model)));
        self.not_modelled.extend(base(model, training));
        let is_frozen =
            training.method() != MethodName::Full || training.freeze.contains(&PartName::Vision);
        if is_frozen && training.grad_checkpointing() && differentiates_frozen_tower(model) {
            self.notes.push(Note::FrozenTowerDifferentiated);
        }
    }

    /// The parts that are frozen, as the options or else the job say; `frozen` is what the job says.
    fn frozen(&mut self, frozen: Vec<(PartName, Origin)>, model: &Model, training: &mut Training) {
        let origin = if frozen.is_empty() {
            let is_of = |one: &NotModelled| FROZEN_BY_NAME.iter().any(|name| one.is_of(name));
            if !training.freeze.is_empty() {
                self.not_modelled.retain(|one| !is_of(one));
            }
            Origin::Option
        } else {
            let is_left = self.framework == Some(Framework::LlamaFactory)
                && model.family().is_some_and(|family| LEFT_BY_LLAMA_FACTORY.contains(&family));
            let has = |part: PartName| {
                let is_it = |one: &Part| one.kind == PartKind::from(part);
                !is_left && model.parts().iter().any(is_it)
            };
            training.freeze.retain(|part| has(*part));
            // A tower that holds the projector freezes it as well.
            let sum = |model: &Model| {
                let is_it = |one: &&Part| one.kind == PartKind::Projector;
                model.parts().iter().filter(is_it).map(|one| one.trainable.0).sum::<u64>()
            };
            if training.freeze.contains(&PartName::Vision)
                && !training.freeze.contains(&PartName::Projector)
                && sum(model) > 0
                && sum(&model.freeze_part(PartKind::Vision)) == 0
            {
                self.not_modelled.push(not_modelled(
                    "the trained projector of a frozen vision tower; zeropilot freezes it with the tower",
                    "视觉塔冻结时仍训练的投影层；按与视觉塔一起冻结计入",
                    "projector not frozen",
                    Direction::Higher,
                ));
            }
            let of_parts = frozen.into_iter().filter(|(part, _)| training.freeze.contains(part));
            let mut origins: Vec<Origin> = of_parts.map(|(_, origin)| origin).collect();
            let in_file = origins.iter().position(|it| matches!(it, Origin::File { .. }));
            if origins.is_empty() { return } else { origins.swap_remove(in_file.unwrap_or(0)) }
        };
        if !training.freeze.is_empty() {
            self.state("freeze", part_names(&training.freeze), origin);
        }
    }

    /// What the job says of the parts of a model, where no option does.
    fn parts_of_job(&mut self, training: &mut Training, job: &TrainingJob) {
        if let (None, Some(said)) = (training.max_pixels, &job.max_pixels) {
            training.max_pixels = Some(said.value);
            self.parts.max_pixels = Some(said.origin.clone());
        }
        if !training.freeze.is_empty() {
            return;
        }
        let FrozenParts { towers, projector, language } = &job.frozen;
        for (part, said) in [
            (PartName::Vision, towers),
            (PartName::Audio, towers),
            (PartName::Projector, projector),
            (PartName::Language, language),
        ] {
            if let Some(said) = said.as_ref().filter(|said| said.value) {
                training.freeze.push(part);
                self.parts.frozen.push((part, said.origin.clone()));
            }
        }
    }

    /// The assumed length, cut to the positions that a model has learned: it fails beyond them.
    fn shorten(&mut self, model: &Model, training: &mut Training) {
        let most = model.dimensions().and_then(|dimensions| dimensions.max_positions);
        let is_short = most.is_some_and(|most| most < Training::SEQ_LEN);
        let stated = self.statements.iter_mut().find(|one| one.name == "seq_len");
        if let (Some(most), Some(stated)) = (most.filter(|_| is_short), stated)
            && stated.origin == Origin::Assumed
        {
            stated.value = most.into();
            training.seq_len = Some(most);
        }
    }

    /// A GPU without a number is as many as the job has ranks.
    fn machines(&mut self, machines: &mut Machines, world: Option<Sourced<u64>>) {
        let (Some(text), Some(world)) = (&machines.gpus, world) else { return };
        let product = parse_product(text);
        if product.factors.is_empty() && product.of.parse::<u64>().is_err() {
            machines.gpus = Some(format!("{}x{text}", world.value));
            self.state("world_size", world.value, world.origin);
        }
    }

    /// The value that counts, and its statement.
    fn take<T: Clone + serde::Serialize>(
        &mut self,
        name: &'static str,
        said: &mut Option<T>,
        job: Option<Sourced<T>>,
        assumed: Option<T>,
    ) {
        let (value, origin) = match (said.clone(), job, assumed) {
            (Some(value), ..) => (value, Origin::Option),
            (None, Some(job), _) => {
                *said = Some(job.value.clone());
                (job.value, job.origin)
            }
            (None, None, Some(value)) => (value, Origin::Assumed),
            (None, None, None) => return,
        };
        self.state(name, value, origin);
    }

    fn targets(&mut self, said: &mut Vec<String>, job: Option<Sourced<Vec<String>>>) {
        let origin = match job {
            _ if !said.is_empty() => Origin::Option,
            Some(job) => {
                *said = job.value;
                job.origin
            }
            None => Origin::Assumed,
        };
        let value = if said.is_empty() { "all-linear".to_owned() } else { said.join(",") };
        self.state("lora_targets", value, origin);
    }

    fn state(&mut self, name: &'static str, value: impl serde::Serialize, origin: Origin) {
        // These values are numbers, words and switches.
        let value = serde_json::to_value(value).unwrap_or_default();
        self.statements.push(Statement { name, value, origin });
    }

    fn config(
        &mut self,
        config: Option<&JobConfig>,
    ) -> Result<Option<WrittenConfig>, UnreadableConfig> {
        let Some(config) = config else { return Ok(None) };
        let written = WrittenConfig::of(config)?;
        self.state("config", &config.name, config.origin.clone());
        Ok(Some(written))
    }
}

impl WrittenConfig {
    /// The config of a job.
    ///
    /// # Errors
    ///
    /// If it cannot be read before the job runs.
    pub fn of(config: &JobConfig) -> Result<Self, UnreadableConfig> {
        let JobConfig { name, content, origin } = config;
        let unreadable = |is_computed| UnreadableConfig {
            name: name.clone(),
            is_computed,
            origin: origin.clone(),
        };
        match content {
            ConfigContent::Missing => Err(unreadable(false)),
            ConfigContent::Computed => Err(unreadable(true)),
            ConfigContent::Text(text) => {
                Ok(Self { name: name.clone(), bytes: text.clone().into_bytes() })
            }
        }
    }
}

/// Samples of an optimizer step over all ranks: as the config states them, or where all factors are settled. A job that does
/// not say its ranks has those of the machines; so many ranks share a sequence.
fn global_batch(
    job: &TrainingJob,
    (stated, origin): &(Stated, Origin),
    ranks: Option<u64>,
    sharing: u64,
) -> Option<Sourced<NonZeroU64>> {
    let sourced = |value| Sourced { value, origin: origin.clone() };
    let whole = stated.global_batch.map(sourced);
    let product = || {
        let micro = stated.micro_batch.map(sourced).or_else(|| job.micro_batch.clone())?;
        // Where the config states the one and not the other, the engine takes 1.
        let alone = stated.micro_batch.map(|_| 1);
        let said = job.grad_accum.as_ref().map(|steps| steps.value);
        let steps = stated.grad_accum.or(said).or(alone)?;
        let world = job.world_size.as_ref().map(|world| world.value).or(ranks)?;
        let groups = world.checked_div(sharing).filter(|_| world.is_multiple_of(sharing))?;
        let value = micro.value.checked_mul(steps)?.checked_mul(groups)?;
        Some(Sourced { value, origin: micro.origin })
    };
    let Sourced { value, origin } = whole.or_else(product)?;
    Some(Sourced { value: NonZeroU64::new(value)?, origin })
}

fn part_names(parts: &[PartName]) -> String {
    let names = parts.iter().map(|part| PartKind::from(*part).name());
    names.collect::<Vec<_>>().join(",")
}

/// A tower that no program runs.
fn unseen(model: &Model) -> Option<NotModelled> {
    let is_tower = |kind: PartKind| matches!(kind, PartKind::Vision | PartKind::Audio);
    let has_tower = model.parts().iter().any(|part| is_tower(part.kind));
    let family = model.family()?;
    if !has_tower || sees(model) || family == Family::Whisper {
        return None;
    }
    Some(not_modelled(
        "image or audio input; zeropilot counts the weights, but not the tower's activations or \
         the tokens of images or audio",
        "图像或音频输入；权重已计入，但视觉/音频塔的激活值和相应的 token 没有计入",
        family.model_type(),
        Direction::Higher,
    ))
}

/// What is not known of a base that its config says is quantized.
fn base(model: &Model, training: &Training) -> Option<NotModelled> {
    let base = model.quantized_base()?;
    if training.method() == MethodName::Qlora && training.quantization.is_some() {
        return None;
    }
    let (en, zh, direction) = match (training.method(), base.adapters()) {
        (MethodName::Full, _) => (
            "the quantization of the model; zeropilot counts trained weights in the training precision",
            "模型的量化；要训练的权重按训练精度计入",
            Direction::Either,
        ),
        (_, Adapters::NotTrainable) => (
            "the quantization of the model; transformers cannot train adapters on this base model, so zeropilot counts the model as unquantized",
            "模型的量化；transformers 不支持在这种基座模型上训练 LoRA，按未量化计入",
            Direction::Lower,
        ),
        (_, Adapters::NeedDequantized) => (
            "the quantization of the model; adapters need its weights in 16 bits (`dequantize=True`), so zeropilot counts 16 bits",
            "模型的量化；训练 LoRA 需要把权重还原为 16 位（`dequantize=True`），按此计入",
            Direction::Either,
        ),
        _ if !base.is_sized() => (
            "the quantization of the model; zeropilot does not support its layout and counts the model as unquantized",
            "模型的量化；zeropilot 不支持这种格式的布局，按未量化计入",
            Direction::Lower,
        ),
        _ if !base.is_of_bitsandbytes() => (
            "the kernels of this quantized base model; zeropilot counts the weights in their format and assumes the \
             kernels of bitsandbytes",
            "这种量化基座模型的 kernel；权重按其格式计入，kernel 假定与 bitsandbytes 相同",
            Direction::Either,
        ),
        _ => return None,
    };
    let written = format!("quantization_config: {}", base.format);
    Some(not_modelled(en, zh, &written, direction))
}

/// What a model of an unknown type has of its own.
fn likened(model: &Model) -> Option<NotModelled> {
    let Names::Likeness { of, counted, is_language_only, .. } = model.names() else { return None };
    let (en, zh, direction) = match (is_language_only, counted) {
        (_, CountedFrom::Sizes) => (
            "the structure of the model; you gave only its sizes, so zeropilot assumes a Llama of that size",
            "模型的结构；只给出了尺寸，按同样大小的 Llama 计算",
            Direction::Either,
        ),
        (true, CountedFrom::Tensors) => (
            "image or audio input; zeropilot does not support the model type and uses the activations of a similar language model",
            "图像或音频输入；不支持这类模型，激活值按相近的语言模型计算",
            Direction::Higher,
        ),
        (true, _) => (
            "vision or audio parts; zeropilot does not support the model type and counts only the language model, \
             based on a similar model",
            "模型的视觉/音频部分；不支持这类模型，只按相近的结构计入了语言模型",
            Direction::Higher,
        ),
        (false, CountedFrom::Tensors) => (
            "the structure of the model; zeropilot does not support the model type and uses the activations of a similar model",
            "模型的结构；不支持这类模型，激活值按相近的模型计算",
            Direction::Either,
        ),
        (false, _) => (
            "the structure of the model; zeropilot does not support the model type and uses the parameters and activations of a similar model",
            "模型的结构；不支持这类模型，参数量和激活值按相近的模型计算",
            Direction::Either,
        ),
    };
    let written = if *counted == CountedFrom::Sizes { "--params" } else { of.as_str() };
    Some(not_modelled(en, zh, written, direction))
}

fn not_modelled(en: &str, zh: &str, written: &str, direction: Direction) -> NotModelled {
    NotModelled {
        en: en.to_owned(),
        zh: zh.to_owned(),
        written: written.to_owned(),
        direction,
        origin: Origin::Option,
    }
}

/// Who reads the config of a framework's job.
fn reader(framework: Framework) -> Target {
    match framework {
        Framework::DeepSpeed => Target::DeepSpeed,
        Framework::Accelerate => Target::Accelerate,
        Framework::LlamaFactory => Target::LlamaFactory,
        Framework::Swift => Target::Swift,
        Framework::Axolotl => Target::Axolotl,
        Framework::HfTrainer | Framework::Trl => Target::HfTrainer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_an_unknown_type_says_what_is_not_its_own() {
        let of = |more: &str| {
            let sizes = r#""hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "num_attention_heads": 4"#;
            let text = format!(r#"{{"model_type": "brand_new", {sizes}{more}}}"#);
            likened(&Model::from_config(&text).unwrap()).unwrap()
        };
        assert_eq!((of("").written.as_str(), of("").direction), ("brand_new", Direction::Either));
        assert_eq!(of(r#", "vision_config": {}"#).direction, Direction::Higher);
        let known = Model::from_config(r#"{"model_type": "llama"}"#).unwrap();
        assert_eq!(likened(&known), None);
    }
}
