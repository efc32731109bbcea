//! What a model is trained for and which other models run, as people say it.

use std::sync::Arc;

use serde::Deserialize;
use zeropilot_model::Model;
use zeropilot_step::lower::Recipe;
use zeropilot_step::task::{
    Distillation, Divergence, Frozen, Generation, Objective, Role, Scores, Task,
};

use crate::name::{MethodName, ReferenceName, RolloutName, TaskName};
use crate::software::{LibraryVersion, Software};
use crate::tokens;
use crate::training::Training;

/// What a model is trained for, and which other models run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Task"))]
#[serde(default, deny_unknown_fields)]
pub struct TaskRequest {
    /// What the model is trained for [default: sft]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TASK"))]
    pub task: Option<TaskName>,
    /// Teacher of a distillation, named as `--model` names a model
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODEL"))]
    pub teacher: Option<String>,
    /// What DPO, KTO, GRPO and RLOO compare with [default: copy, adapters-off with LoRA; none for grpo]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    pub reference: Option<ReferenceName>,
    /// Tokens of a completion, out of `--seq-len` [default: half of it where completions are generated, otherwise all tokens count]
    #[serde(deserialize_with = "tokens::deserialize")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = tokens::parse,
        visible_alias = "max-completion-length"))]
    pub completion_len: Option<u64>,
    /// What generates completions for GRPO, RLOO and GKD [default: generate]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT"))]
    pub rollout: Option<RolloutName>,
    /// The teacher, once it has been found.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub teacher_model: Option<Arc<Model>>,
}

/// Why a task makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskProblem {
    /// A distillation without a teacher.
    #[error("`{}` needs a teacher", task.name())]
    NoTeacher {
        /// The task.
        task: TaskName,
    },
    /// An option that means nothing to the task.
    #[error("`{option}` means nothing to `{}`", task.name())]
    Unused {
        /// The task.
        task: TaskName,
        /// The option, as programs name it.
        option: &'static str,
    },
    /// Adapters are to be switched off, and there are none.
    #[error("`adapters-off` needs adapters")]
    NoAdapters,
    /// Student and teacher predict different vocabularies, so that their logits cannot be compared.
    #[error("the vocabularies have {student} and {teacher} tokens")]
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
    /// A model whose output is not known.
    #[error("the model has no output projection that a reward head could replace")]
    NoRewardHead,
}

impl TaskRequest {
    /// The task.
    pub fn task(&self) -> TaskName {
        self.task.unwrap_or_default()
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
            TaskName::Dpo | TaskName::Kto | TaskName::Rloo if method != MethodName::Full => {
                ReferenceName::AdaptersOff
            }
            TaskName::Dpo | TaskName::Kto | TaskName::Rloo => ReferenceName::Copy,
            _ => ReferenceName::None,
        };
        self.reference.unwrap_or(usual)
    }

    /// Whether it learns from nothing but generated completions.
    fn generates(&self) -> bool {
        matches!(self.task(), TaskName::Grpo | TaskName::Rloo)
    }

    fn has_teacher(&self) -> bool {
        matches!(self.task(), TaskName::Distill | TaskName::Gkd)
    }

    /// Options that the task has no use for.
    fn unused(&self) -> Option<&'static str> {
        let generates = self.generates() || self.task() == TaskName::Gkd;
        let compares = self.generates() || matches!(self.task(), TaskName::Dpo | TaskName::Kto);
        let has_completions = compares || self.has_teacher();
        [
            (!self.has_teacher() && self.teacher.is_some(), "teacher"),
            (!compares && self.reference.is_some(), "reference"),
            (!has_completions && self.completion_len.is_some(), "completion_len"),
            (!generates && self.rollout.is_some(), "rollout"),
        ]
        .into_iter()
        .find_map(|(is_so, option)| is_so.then_some(option))
    }

    /// The task as the step model knows it, with frozen models whose settings follow from those of the trained one.
    pub(crate) fn lower(&self, model: &Model, training: &Training) -> Result<Task, TaskProblem> {
        let task = self.task();
        if let Some(option) = self.unused() {
            return Err(TaskProblem::Unused { task, option });
        }
        let length = training.seq_len();
        let completion = self.completion_len;
        if let Some(tokens) = completion.filter(|tokens| *tokens > length) {
            return Err(TaskProblem::CompletionTooLong { tokens, length });
        }
        let generated = completion.unwrap_or(length / 2).max(1);
        let scores = scores(&training.software);
        let reference = self.reference(training.method());
        let adapters_off = reference == ReferenceName::AdaptersOff;
        if adapters_off && training.method() == MethodName::Full {
            return Err(TaskProblem::NoAdapters);
        }
        let frozen = |role: Role, model: Arc<Model>| Frozen {
            role,
            model,
            zero: None,
            has_optimizer: false,
        };
        let mut models = Vec::new();
        if reference == ReferenceName::Copy {
            models.push(frozen(Role::Reference, Arc::new(model.clone())));
        }
        if self.has_teacher() {
            let teacher = self.teacher_model.clone().ok_or(TaskProblem::NoTeacher { task })?;
            same_vocabulary(model, &teacher)?;
            models.push(frozen(Role::Teacher, teacher));
        }
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
            TaskName::Distill => Objective::Distillation(Distillation {
                divergence: Divergence::Wide,
                cross_entropy: false,
                teacher_first: true,
                teacher_cache: false,
            }),
            TaskName::Gkd => Objective::Distillation(Distillation {
                divergence: Divergence::JensenShannon,
                cross_entropy: false,
                teacher_first: false,
                teacher_cache: true,
            }),
        };
        // By default GKD generates in half of its micro steps (`lmbda` 0.5).
        let is_on_policy = self.generates() || task == TaskName::Gkd;
        let is_here = is_on_policy && self.rollout.unwrap_or_default() == RolloutName::Generate;
        let generation = is_here.then(|| Generation {
            // Those of a step, once its accumulation is known.
            micro_batches: 1,
            prompt: length.saturating_sub(generated).max(1),
            completion: generated,
            every_micro_step: task == TaskName::Gkd,
            scores: task == TaskName::Rloo,
            gathers: true,
        });
        Ok(Task {
            objective,
            frozen: models,
            completion: if self.generates() { Some(generated) } else { completion },
            adapters_off,
            generation,
        })
    }
}

/// A recipe for steps of so many micro batches: GRPO and RLOO generate the completions of all of them at once.
pub(crate) fn with_accumulation(mut recipe: Recipe, accumulation: u64) -> Recipe {
    if let Some(generation) = &mut recipe.task.generation
        && !generation.every_micro_step
    {
        generation.micro_batches = accumulation;
    }
    recipe
}

/// How TRL computes log-probabilities: by its version, otherwise as the newest does.
fn scores(software: &Software) -> Scores {
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

fn same_vocabulary(student: &Model, teacher: &Model) -> Result<(), TaskProblem> {
    let size = |model: &Model| model.dimensions().map(|dimensions| dimensions.vocab_size);
    match (size(student), size(teacher)) {
        (Some(student), Some(teacher)) if student != teacher => {
            Err(TaskProblem::Vocabularies { student, teacher })
        }
        _ => Ok(()),
    }
}
