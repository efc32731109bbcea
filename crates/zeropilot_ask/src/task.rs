//! What a model is trained for and which other models run, as people say it.

use std::sync::Arc;

use serde::Deserialize;
use zeropilot_cluster::Cluster;
use zeropilot_job::{
    Direction, JobTask, LibraryVersion, NotModelled, Origin, Sourced, TrainingJob,
};
use zeropilot_model::Model;
use zeropilot_step::memory::RolloutMemory;
use zeropilot_step::task::{
    Colocated, Critic, Distillation, Divergence, Frozen, Generation, Generator, Objective, Ppo,
    Processing, Publication, Role, Scores, Task,
};

use zeropilot_units::Bytes;

use crate::name::{FusedLoss, MethodName, ReferenceName, RolloutName, TaskName, TrainerName};
use crate::software::Software;
use crate::tokens;
use crate::training::Training;

/// Completions that PPO generates and judges at once by default (`local_rollout_forward_batch_size`).
const ROLLOUT_BATCH: u64 = 64;
/// Times that PPO learns from a completion by default (`num_ppo_epochs`).
const PPO_EPOCHS: u64 = 4;
/// The last release of TRL that has a `PPOTrainer`.
const LAST_PPO: LibraryVersion = LibraryVersion::new(1, 12);

/// What a model is trained for, and which other models run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Task"))]
#[serde(default, deny_unknown_fields)]
pub struct TaskRequest {
    /// Set the training task [default: sft]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TASK"))]
    pub task: Option<TaskName>,
    /// Set the teacher model for distillation, named as in `--model`
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODEL"))]
    pub teacher: Option<String>,
    /// Set the reward model for PPO, GRPO or RLOO on the same GPUs, named as in `--model`; if omitted, a model of the same size for PPO, otherwise none
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODEL"))]
    pub reward_model: Option<String>,
    /// Set the value model for PPO, named as in `--model`; if omitted, a model of the same size as the reward model
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODEL", visible_alias = "value-model"))]
    pub critic: Option<String>,
    /// Set the reference model for DPO, KTO, GRPO, RLOO and PPO; if omitted, `copy`, `adapters-off` with LoRA, `none` for GRPO
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    pub reference: Option<ReferenceName>,
    /// Set the completion length in tokens, a part of `--seq-len`; if omitted, half of `--seq-len` for generated completions, otherwise all tokens
    #[serde(deserialize_with = "tokens::deserialize")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = tokens::parse,
        visible_alias = "max-completion-length"))]
    pub completion_len: Option<u64>,
    /// Set the backend that generates completions for GRPO, RLOO and GKD [default: generate]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    pub rollout: Option<RolloutName>,
    /// Set the number of completions that PPO generates and scores at once on each GPU [default: 64]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", visible_alias = "local-rollout-forward-batch-size")
    )]
    pub rollout_batch: Option<u64>,
    /// Set the fraction of each GPU's memory that vLLM uses with `--rollout vllm`; if omitted, 0.3 as in TRL, 0.9 for ms-swift
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE"))]
    pub vllm_gpu_memory_utilization: Option<f64>,
    /// Let vLLM release its GPU memory during training (sleep mode)
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true"))]
    pub vllm_sleep: Option<bool>,
    /// Share one copy of vLLM's weights between this many GPUs [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub vllm_tensor_parallel_size: Option<u64>,
    /// Set the trainer that computes the loss for DPO, KTO, GRPO, RLOO and PPO [default: trl]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHOSE"))]
    pub trainer: Option<TrainerName>,
    /// How often completions are generated and learned from, as a job says it.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub reuse: Reuse,
    /// The other models that are named, once they have been found.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub found: FoundModels,
}

/// How often completions are generated, and how often they are learned from; what is not said has the trainer's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reuse {
    /// Micro-batches whose completions are generated at once (`steps_per_generation`); those of a step by default.
    pub steps_per_generation: Option<u64>,
    /// The same as completions on all GPUs (`generation_batch_size`).
    pub generation_batch_size: Option<u64>,
    /// Times that a completion is learned from (`num_iterations`, `num_ppo_epochs` of PPO).
    pub num_iterations: Option<u64>,
}

/// The batch of an optimizer step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepBatch {
    /// Sequences of a micro-batch.
    pub(crate) micro_batch: u64,
    /// Micro-batches.
    pub(crate) accumulation: u64,
    /// Ranks.
    pub(crate) world: u64,
}

/// Models that a request or its job names beside the trained one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundModels {
    teacher: Option<Arc<Model>>,
    reward: Option<Arc<Model>>,
    critic: Option<Arc<Model>>,
}

/// Why a task makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskProblem {
    /// A model that is named and was not looked for.
    #[error("zeropilot does not find the model that `{option}` names")]
    NotFound {
        /// The option, as programs name it.
        option: &'static str,
    },
    /// An option that has to be at least one.
    #[error("`{option}` is 0")]
    Zero {
        /// The option, as programs name it.
        option: &'static str,
    },
    /// PPO without the reference that its reward is computed with.
    #[error("`ppo` needs a reference model on the GPUs")]
    NoReference,
    /// PPO of LLaMA-Factory, which is another one.
    #[error("zeropilot does not model LLaMA-Factory's PPO, which has a value head on the policy")]
    ValueHead,
    /// A distillation without a teacher.
    #[error("`{}` needs a teacher model", task.name())]
    NoTeacher {
        /// The task.
        task: TaskName,
    },
    /// An option that means nothing to the task.
    #[error("`{option}` has no effect with `{}`", task.name())]
    Unused {
        /// The task.
        task: TaskName,
        /// The option, as programs name it.
        option: &'static str,
    },
    /// An option about vLLM on the training GPUs, where it does not generate.
    #[error("`{option}` needs vLLM on the training GPUs")]
    NoVllm {
        /// The option, as programs name it.
        option: &'static str,
    },
    /// Adapters are to be switched off, and there are none.
    #[error("`adapters-off` needs adapters")]
    NoAdapters,
    /// Student and teacher predict different vocabularies, so that their logits cannot be compared.
    #[error("the vocabularies of student and teacher have {student} and {teacher} tokens")]
    Vocabularies {
        /// Of the student.
        student: u64,
        /// Of the teacher.
        teacher: u64,
    },
    /// A completion that is longer than the sequence that holds it.
    #[error("a completion of {tokens} tokens is longer than the sequence of {length}")]
    CompletionTooLong {
        /// Tokens of the completion.
        tokens: u64,
        /// Tokens of the sequence.
        length: u64,
    },
    /// A share of a GPU that is none.
    #[error("vLLM cannot use a fraction of {share} of the GPU memory")]
    Share {
        /// The share.
        share: String,
    },
    /// Copies of vLLM's weights that the GPUs cannot be divided into.
    #[error("{ranks} GPUs cannot be divided into groups of {split}")]
    Split {
        /// GPUs.
        ranks: u64,
        /// GPUs that share a copy.
        split: u64,
    },
    /// A share of a GPU that does not hold vLLM's weights.
    #[error("vLLM's weights need {weights} on each GPU, but vLLM may use only {share}")]
    ShareTooSmall {
        /// Its weights on a GPU.
        weights: Bytes,
        /// What it may take.
        share: Bytes,
    },
    /// A model whose output is not known.
    #[error("the model has no output projection that a reward head could replace")]
    NoRewardHead,
}

impl TaskRequest {
    /// The task.
    pub fn task(&self) -> TaskName {
        self.task.unwrap_or_default()
    }

    /// The task, where a job says one too.
    pub(crate) fn of_job(&self, job: Option<&JobTask>) -> TaskName {
        self.task.or_else(|| job.map(|job| job.task.value)).unwrap_or_default()
    }

    /// Finds the other models that the request or its job names; `open` finds one by its name.
    ///
    /// # Errors
    ///
    /// If one of them cannot be found.
    pub fn find_models<E>(
        &mut self,
        job: &TrainingJob,
        open: impl Fn(&str) -> Result<Model, E>,
    ) -> Result<(), E> {
        let task = self.of_job(job.task.as_ref());
        let job = job.task.as_ref().filter(|job| job.task.value == task);
        let find = |own: &Option<String>, of_job: Option<&Sourced<String>>| {
            let name = own.as_ref().or_else(|| of_job.map(|said| &said.value));
            name.map(|name| open(name).map(Arc::new)).transpose()
        };
        let teacher = job.and_then(|job| job.teacher.as_ref()).filter(|_| task.has_teacher());
        self.found = FoundModels {
            teacher: find(&self.teacher, teacher)?,
            reward: find(&self.reward_model, job.and_then(|job| job.reward_model.as_ref()))?,
            critic: find(&self.critic, job.and_then(|job| job.critic.as_ref()))?,
        };
        Ok(())
    }

    /// Tokens of a sequence if nobody says how many: with room for a prompt that is as long as the completion.
    pub(crate) fn usual_length(&self, job: Option<&JobTask>) -> u64 {
        let of_job = || Some(job?.completion_len.as_ref()?.value);
        let completion = self.completion_len.or_else(of_job).unwrap_or_default();
        Training::SEQ_LEN.max(completion.saturating_mul(2))
    }

    /// What is not known of the loss of a task.
    pub(crate) fn not_modelled(&self, training: &Training, trl: Origin) -> Option<NotModelled> {
        let task = self.task();
        let version = training.software.trl_version;
        let is_of_old_trl = version.is_some_and(|version| version < LibraryVersion::new(1, 16))
            && matches!(task, TaskName::Orpo | TaskName::Cpo | TaskName::Gkd);
        let is_after_ppo = version.is_some_and(|version| version > LAST_PPO)
            && task == TaskName::Ppo
            && self.trainer.unwrap_or_default() == TrainerName::Trl;
        let (en, zh, written, direction, origin) = if training.fused_loss() == FusedLoss::Yes {
            (
                "Liger's fused loss for this task; zeropilot uses the trainer's own loss",
                "该任务的 Liger 融合 loss；按训练器自己的 loss 计入",
                "liger".to_owned(),
                Direction::Lower,
                Origin::Option,
            )
        } else if is_of_old_trl {
            (
                "this task's loss in this TRL release; zeropilot uses the loss of TRL 1.16",
                "该 TRL 版本计算此任务 loss 的方式；按 TRL 1.16 计入",
                format!("trl {}", version.map(|it| it.to_string()).unwrap_or_default()),
                Direction::Either,
                trl,
            )
        } else if is_after_ppo {
            (
                "this release of TRL, which has no PPOTrainer; zeropilot uses the PPOTrainer of TRL 1.12",
                "该版本的 TRL 已没有 PPOTrainer；按 1.12 的 PPOTrainer 计入",
                format!("trl {}", version.map(|it| it.to_string()).unwrap_or_default()),
                Direction::Either,
                trl,
            )
        } else {
            return None;
        };
        Some(NotModelled { en: en.to_owned(), zh: zh.to_owned(), written, direction, origin })
    }

    /// The model that is trained: a reward model has another head.
    pub(crate) fn model(&self, model: &Model) -> Result<Model, TaskProblem> {
        match self.task() {
            TaskName::Reward => model.as_reward_model().ok_or(TaskProblem::NoRewardHead),
            _ => Ok(model.clone()),
        }
    }

    /// What the trained model is compared with.
    pub fn reference(&self, method: MethodName) -> ReferenceName {
        let usual = match self.task() {
            TaskName::Dpo | TaskName::Kto | TaskName::Rloo | TaskName::Ppo => match method {
                MethodName::Full => ReferenceName::Copy,
                MethodName::Lora | MethodName::Qlora => ReferenceName::AdaptersOff,
            },
            _ => ReferenceName::None,
        };
        self.reference.unwrap_or(usual)
    }

    /// Options that mean nothing here.
    fn unused(&self) -> Option<TaskProblem> {
        let task = self.task();
        // Its trainer has nothing but the model's own `generate`.
        let is_ppo = task == TaskName::Ppo;
        let is_other = is_ppo && self.rollout.is_some_and(|it| it != RolloutName::Generate);
        let options = [
            (!task.has_teacher() && self.teacher.is_some(), "teacher"),
            (!task.learns_from_completions() && self.reward_model.is_some(), "reward_model"),
            (!is_ppo && self.critic.is_some(), "critic"),
            (!is_ppo && self.rollout_batch.is_some(), "rollout_batch"),
            (is_other, "rollout"),
            (!task.compares() && self.reference.is_some(), "reference"),
            (!task.has_completions() && self.completion_len.is_some(), "completion_len"),
            (!task.generates() && self.rollout.is_some(), "rollout"),
            (!task.compares() && self.trainer.is_some(), "trainer"),
        ];
        let of_vllm = [
            (self.vllm_gpu_memory_utilization.is_some(), "vllm_gpu_memory_utilization"),
            (self.vllm_sleep.is_some(), "vllm_sleep"),
            (self.vllm_tensor_parallel_size.is_some(), "vllm_tensor_parallel_size"),
        ];
        let first = |options: &[(bool, &'static str)]| {
            options.iter().find_map(|(is_so, option)| is_so.then_some(*option))
        };
        let of_vllm = first(&of_vllm).filter(|_| !self.is_colocated());
        match (first(&options), of_vllm) {
            (Some(option), _) => Some(TaskProblem::Unused { task, option }),
            (None, Some(option)) if task.generates() && !is_ppo => {
                Some(TaskProblem::NoVllm { option })
            }
            (None, Some(option)) => Some(TaskProblem::Unused { task, option }),
            (None, None) => None,
        }
    }

    /// How log-probabilities are computed: by whose trainer, and for TRL by its version, otherwise as the newest does.
    fn scores(&self, software: &Software) -> Scores {
        match self.trainer.unwrap_or_default() {
            TrainerName::LlamaFactory => return Scores::Wide,
            TrainerName::Swift => return Scores::RowByRow,
            TrainerName::Trl => {}
        }
        let Some(version) = software.trl_version else { return Scores::Fused };
        let since = |major, minor| version >= LibraryVersion::new(major, minor);
        if since(1, 15) {
            Scores::Fused
        } else if since(1, 8) {
            Scores::RowByRow
        } else if since(0, 29) {
            Scores::RowByRowOfCopy
        } else if since(0, 15) {
            Scores::RowByRow
        } else {
            Scores::AtOnce
        }
    }

    /// Whether vLLM generates on the GPUs that train.
    pub(crate) fn is_colocated(&self) -> bool {
        self.rollout == Some(RolloutName::Vllm)
    }

    /// Who generates completions, if anyone does.
    fn generator(&self, training: &Training) -> Result<Option<Generator>, TaskProblem> {
        if !self.task().generates() {
            return Ok(None);
        }
        // Adapters are merged into the whole model before vLLM gets it; ms-swift gathers all of it anyway.
        let is_swift = self.trainer == Some(TrainerName::Swift);
        let publication = if training.method() == MethodName::Full && !is_swift {
            Publication::EachInTurn
        } else {
            Publication::AllAtOnce
        };
        Ok(match self.rollout.unwrap_or_default() {
            RolloutName::None => None,
            RolloutName::Generate => Some(Generator::Model { gathers: true }),
            RolloutName::Server => Some(Generator::Engine { publication, colocated: None }),
            RolloutName::Vllm => {
                let colocated = Some(self.colocated()?);
                Some(Generator::Engine { publication, colocated })
            }
        })
    }

    fn colocated(&self) -> Result<Colocated, TaskProblem> {
        let usual = match self.trainer.unwrap_or_default() {
            TrainerName::Swift => 0.9,
            TrainerName::Trl | TrainerName::LlamaFactory => 0.3,
        };
        let share = self.vllm_gpu_memory_utilization.unwrap_or(usual);
        if !(share > 0.0 && share <= 1.0) {
            return Err(TaskProblem::Share { share: share.to_string() });
        }
        // At most a thousand.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let per_mille = (share * 1000.0).round() as u16;
        Ok(Colocated {
            per_mille,
            sleeps: self.vllm_sleep.unwrap_or_default(),
            tensor_parallel: self.split(),
        })
    }

    /// A share and a sleep mode for vLLM on the same GPUs, where nobody says them: room for its weights and for the
    /// completions of a step, at most a third of a GPU for these, in twentieths of a GPU.
    pub(crate) fn choose_rollout(
        &mut self,
        model: &Model,
        cluster: &Cluster,
        sequences: u64,
        length: u64,
    ) {
        if !self.is_colocated() {
            return;
        }
        self.vllm_sleep.get_or_insert(true);
        let (Some(capacity), None) = (cluster.capacity(), self.vllm_gpu_memory_utilization) else {
            return;
        };
        let (capacity, split) = (capacity.bytes.expected().0 as f64, self.split());
        let cached = RolloutMemory::cached_token(model, split).map_or(0, |token| token.0);
        let wanted = cached.saturating_mul(sequences.saturating_mul(split)).saturating_mul(length);
        let needed = RolloutMemory::least(model, split).0 as f64
            + (wanted as f64).min(capacity / 3.0).max(capacity / 20.0);
        let twentieths = (needed / capacity * 20.0).ceil().min(18.0);
        self.vllm_gpu_memory_utilization = Some(twentieths / 20.0);
    }

    /// GPUs that share one copy of vLLM's weights.
    fn split(&self) -> u64 {
        self.vllm_tensor_parallel_size.unwrap_or(1).max(1)
    }

    /// Whether the model scores what another engine has generated, since the probabilities of both differ a little: TRL's
    /// GRPO does (`vllm_importance_sampling_correction`).
    fn corrects_for(&self, generator: Generator) -> bool {
        matches!(generator, Generator::Engine { .. })
            && self.task() == TaskName::Grpo
            && self.trainer.unwrap_or_default() == TrainerName::Trl
    }

    /// What makes no sense whatever the model is.
    fn check(&self, length: u64) -> Result<(), TaskProblem> {
        let task = self.task();
        if let Some(problem) = self.unused() {
            return Err(problem);
        }
        if task == TaskName::Ppo && self.trainer == Some(TrainerName::LlamaFactory) {
            return Err(TaskProblem::ValueHead);
        }
        for (number, option) in [
            (self.vllm_tensor_parallel_size, "vllm_tensor_parallel_size"),
            (self.rollout_batch, "rollout_batch"),
        ] {
            if number == Some(0) {
                return Err(TaskProblem::Zero { option });
            }
        }
        match self.completion_len.filter(|tokens| *tokens > length) {
            Some(tokens) => Err(TaskProblem::CompletionTooLong { tokens, length }),
            None => Ok(()),
        }
    }

    /// The task as the step model knows it, with frozen models whose settings follow from those of the trained one.
    pub(crate) fn lower(
        &self,
        model: &Model,
        training: &Training,
        cluster: &Cluster,
    ) -> Result<Task, TaskProblem> {
        let task = self.task();
        let length = training.seq_len();
        self.check(length)?;
        let completion = self.completion_len;
        let generated = completion.unwrap_or(length / 2).max(1);
        let scores = self.scores(&training.software);
        let reference = self.reference(training.method());
        let adapters_off = reference == ReferenceName::AdaptersOff;
        if adapters_off && training.method() == MethodName::Full {
            return Err(TaskProblem::NoAdapters);
        }
        let has_reference = matches!(reference, ReferenceName::Copy | ReferenceName::AdaptersOff);
        if task == TaskName::Ppo && !has_reference {
            return Err(TaskProblem::NoReference);
        }
        // ms-swift switches the caches of frozen models off.
        let is_swift = self.trainer == Some(TrainerName::Swift);
        let frozen = |role: Role, model: Arc<Model>| Frozen {
            role,
            model,
            zero: None,
            has_optimizer: false,
            keeps_cache: match (task, role) {
                (TaskName::Gkd, _) => true,
                (TaskName::Ppo, Role::Reference) => !is_swift,
                (TaskName::Grpo | TaskName::Rloo, Role::Reward) => !is_swift,
                _ => false,
            },
        };
        let mut models = Vec::new();
        if reference == ReferenceName::Copy {
            models.push(frozen(Role::Reference, Arc::new(model.clone())));
        }
        if task.has_teacher() {
            let teacher = self.found.teacher.clone().ok_or(TaskProblem::NoTeacher { task })?;
            same_vocabulary(model, &teacher)?;
            models.push(frozen(Role::Teacher, teacher));
        }
        let judge = self.judge(model)?;
        models.extend(judge.clone().map(|judge| frozen(Role::Reward, judge)));
        let critic = judge.filter(|_| task == TaskName::Ppo);
        let critic = critic.map(|judge| self.critic(&judge)).transpose()?;
        let objective = match task {
            TaskName::Sft => Objective::NextToken,
            TaskName::Dpo => Objective::Dpo { scores, last_logits: false },
            TaskName::Kto => Objective::Kto(scores),
            TaskName::Orpo => Objective::Orpo,
            TaskName::Cpo => Objective::Cpo,
            TaskName::Reward => Objective::Reward,
            TaskName::Grpo | TaskName::Rloo => {
                Objective::PolicyGradient { scores, completion: generated }
            }
            TaskName::Ppo => Objective::Ppo(Ppo { completion: generated, as_trl: true }),
            TaskName::Distill => Objective::Distillation(Distillation {
                divergence: Divergence::Wide,
                cross_entropy: false,
                teacher_first: true,
                picks_logits: false,
            }),
            TaskName::Gkd => Objective::Distillation(Distillation {
                divergence: Divergence::JensenShannon,
                cross_entropy: false,
                teacher_first: false,
                picks_logits: false,
            }),
        };
        // By default GKD generates in half of its micro steps (`lmbda` 0.5).
        let generation = self.generator(training)?.map(|by| Generation {
            // Those of a step, once its accumulation is known.
            micro_batches: 1,
            at_once: (task == TaskName::Ppo).then(|| self.rollout_batch.unwrap_or(ROLLOUT_BATCH)),
            keeps_logits: task == TaskName::Ppo,
            steps: self.iterations(),
            prompt: length.saturating_sub(generated).max(1),
            completion: generated,
            every_micro_step: task == TaskName::Gkd,
            scores: task == TaskName::Rloo || self.corrects_for(by) || self.is_reused(),
            // GKD samples with a temperature of 0.9 by default, PPO of 0.7.
            processing: match task {
                TaskName::Gkd | TaskName::Ppo => Processing::Temperature,
                _ => Processing::None,
            },
            by,
        });
        let task = Task {
            objective,
            frozen: models,
            critic,
            completion: if task.learns_from_completions() { Some(generated) } else { completion },
            adapters_off,
            generation,
        };
        check_rollout(&task, model, cluster)?;
        Ok(task)
    }
}

impl TaskRequest {
    /// Times that a completion is learned from.
    fn iterations(&self) -> u64 {
        let usual = if self.task() == TaskName::Ppo { PPO_EPOCHS } else { 1 };
        self.reuse.num_iterations.unwrap_or(usual).max(1)
    }

    /// Whether GRPO learns from completions again after the policy has changed, so that the model scores them before.
    fn is_reused(&self) -> bool {
        self.task() == TaskName::Grpo && self.iterations() > 1
    }

    /// Whether GRPO or RLOO may not generate once for every step.
    pub(crate) fn reuses(&self) -> bool {
        let Reuse { steps_per_generation, generation_batch_size, .. } = self.reuse;
        let is_apart = steps_per_generation.or(generation_batch_size).is_some();
        self.task() != TaskName::Ppo && (is_apart || self.iterations() > 1)
    }

    /// The task in steps of such a batch. GRPO and RLOO generate for as many micro-batches as a step has, unless they are
    /// told otherwise; where GRPO learns from completions in a later step than theirs, the model scores them before.
    pub(crate) fn in_steps(&self, task: Task, step: StepBatch) -> Task {
        let StepBatch { micro_batch, accumulation, world } = step;
        let mut task = task.with_accumulation(accumulation);
        let name = self.task();
        let Some(generation) = &mut task.generation else { return task };
        if !matches!(name, TaskName::Grpo | TaskName::Rloo) {
            return task;
        }
        let of_one = micro_batch.saturating_mul(world).max(1);
        let of_batch = || Some(self.reuse.generation_batch_size? / of_one);
        let said = self.reuse.steps_per_generation.or_else(of_batch);
        let at_once = said.filter(|steps| *steps > 0).unwrap_or(accumulation).max(1);
        let all = at_once.saturating_mul(self.iterations());
        generation.micro_batches = at_once;
        generation.steps = all.div_ceil(accumulation.max(1)).max(1);
        if name == TaskName::Grpo {
            let is_swift = self.trainer == Some(TrainerName::Swift);
            // ms-swift looks at both apart.
            let every = if is_swift { at_once } else { all };
            let is_late = !accumulation.is_multiple_of(every) || is_swift && self.iterations() > 1;
            generation.scores = self.corrects_for(generation.by) || is_late;
        }
        task
    }

    /// The model that judges completions, if there is one.
    fn judge(&self, model: &Model) -> Result<Option<Arc<Model>>, TaskProblem> {
        let option = "reward_model";
        let judge = match (&self.reward_model, &self.found.reward) {
            (None, _) if self.task() != TaskName::Ppo => return Ok(None),
            (None, _) => model.as_reward_model(),
            (Some(_), Some(found)) => found.as_reward_model(),
            (Some(_), None) => return Err(TaskProblem::NotFound { option }),
        };
        Ok(Some(Arc::new(judge.ok_or(TaskProblem::NoRewardHead)?)))
    }

    /// The value model of PPO. ms-swift trains it as it trains the policy, TRL all of it.
    fn critic(&self, judge: &Arc<Model>) -> Result<Critic, TaskProblem> {
        let model = match (&self.critic, &self.found.critic) {
            (None, _) => Arc::clone(judge),
            (Some(_), Some(found)) => {
                Arc::new(found.as_reward_model().ok_or(TaskProblem::NoRewardHead)?)
            }
            (Some(_), None) => return Err(TaskProblem::NotFound { option: "critic" }),
        };
        Ok(Critic { model, as_policy: self.trainer == Some(TrainerName::Swift) })
    }
}

/// Whether an engine on the same GPUs can start.
fn check_rollout(task: &Task, model: &Model, cluster: &Cluster) -> Result<(), TaskProblem> {
    if let Some(engine) = task.colocated() {
        let (ranks, split) = (cluster.world_size(), engine.tensor_parallel);
        if !ranks.is_multiple_of(split) {
            return Err(TaskProblem::Split { ranks, split });
        }
    }
    match RolloutMemory::of(task, model, cluster) {
        Some(RolloutMemory { weights, share, cache, .. }) if cache.0 == 0 => {
            Err(TaskProblem::ShareTooSmall { weights, share })
        }
        _ => Ok(()),
    }
}

fn same_vocabulary(student: &Model, teacher: &Model) -> Result<(), TaskProblem> {
    let size = |model: &Model| model.dimensions().map(|dimensions| dimensions.vocab_size);
    match (size(student), size(teacher)) {
        (Some(student), Some(teacher)) if student != teacher => {
            Err(TaskProblem::Vocabularies { student, teacher })
        }
        _ => Ok(()),
    }
}
