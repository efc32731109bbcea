//! What is minimised, as a program on the tape of the trained model.

use super::distillation::Distillation;
use super::ppo::Ppo;
use super::preference::Scores;
use super::{Generation, Generator, Returned, Role, Sizes};
use crate::family::{FusedOutputs, Program, Returns, own_loss};
use crate::head::LossHead;
use crate::tape::{Category, Mark, Tape, Tensor};

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Objective {
    /// Cross entropy of the next token, computed as the recipe's loss head does.
    #[default]
    NextToken,
    /// Preference between two answers against a reference, which runs after the trained model.
    Dpo {
        /// How log-probabilities are computed.
        scores: Scores,
        /// Whether logits are computed for completions only (`use_logits_to_keep` of TRL).
        last_logits: bool,
    },
    /// Single answers that are good or bad; the mean divergence comes from a second batch.
    Kto(Scores),
    /// Odds of two answers and cross entropy of the better one over prompt and answer.
    Orpo,
    /// Preference without a reference and cross entropy of the better answer (also SimPO).
    Cpo,
    /// A reward model: one number for each of two answers.
    Reward,
    /// Policy gradient over completions that the model has generated (GRPO, RLOO); a reference has run before.
    PolicyGradient {
        /// How log-probabilities are computed.
        scores: Scores,
        /// Tokens of a completion.
        completion: u64,
    },
    /// Policy gradient over completions that the model has generated, and the error of a value model, which is trained in
    /// the same engine; a reference, the value model and a reward model have run before.
    Ppo(Ppo),
    /// Imitation of a teacher.
    Distillation(Distillation),
}

impl Objective {
    /// Sequences that the model runs for each one of the micro batch: answers come in pairs.
    #[must_use]
    pub fn rows(self) -> u64 {
        match self {
            Self::Dpo { .. } | Self::Orpo | Self::Cpo | Self::Reward => 2,
            _ => 1,
        }
    }

    /// The head that the trained model is built with.
    pub(crate) fn head(self, recipe: LossHead) -> LossHead {
        match self {
            Self::NextToken => recipe,
            Self::Reward => LossHead::Score,
            _ if self.is_fused() => LossHead::Tiled,
            _ => LossHead::Model,
        }
    }

    /// The head that a frozen model is built with.
    pub(crate) fn frozen_head(self, role: Role) -> LossHead {
        match role {
            Role::Reward => LossHead::Score,
            _ if self.is_fused() => LossHead::Tiled,
            _ => LossHead::Model,
        }
    }

    /// What a frozen model is called for.
    pub(crate) fn frozen_returns(self, role: Role, completion: Option<u64>) -> Returns {
        match (role, self) {
            (Role::Reward, _) => Returns::Score,
            (_, Self::Dpo { last_logits: true, .. }) => last_logits(completion),
            (_, Self::PolicyGradient { completion, scores }) if scores != Scores::Fused => {
                Returns::LastLogits(completion + 1)
            }
            _ if self.is_fused() => Returns::LogProbabilities(FusedOutputs::default()),
            _ => Returns::Logits,
        }
    }

    /// Whether models are called for the hidden states before every layer too, which stay alive with what they return.
    pub(crate) fn keeps_hidden(self) -> bool {
        matches!(self, Self::Ppo(Ppo { as_trl: true, .. }))
    }

    fn is_fused(self) -> bool {
        matches!(
            self,
            Self::Dpo { scores: Scores::Fused, .. }
                | Self::Kto(Scores::Fused)
                | Self::PolicyGradient { scores: Scores::Fused, .. }
        )
    }
}

/// Logits of the completion and of the token before it.
pub(super) fn last_logits(completion: Option<u64>) -> Returns {
    completion.map_or(Returns::Logits, |tokens| Returns::LastLogits(tokens + 1))
}

/// What another model is for, and what it returns.
pub(crate) type Other<'s> = (Role, &'s [Returned]);

/// The trained model, its tape, and what the others return.
pub(crate) struct Stage<'s, 't> {
    pub(crate) program: &'s dyn Program,
    /// The same for the sequences that run at once before any is learned from, where these are other ones.
    pub(crate) rollout: Option<(&'s dyn Program, Sizes)>,
    pub(crate) tape: &'t Tape,
    pub(crate) sizes: Sizes,
    pub(crate) others: &'s [Other<'s>],
    /// The reference is the trained model without its adapters.
    pub(crate) adapters_off: bool,
    /// Generation, and the bytes at its highest point.
    pub(crate) generation: Option<(Generation, u64)>,
}

impl<'t> Stage<'_, 't> {
    /// Calls the trained model to train it.
    pub(super) fn train(&self, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        self.tape.mark(Mark::Begin);
        self.program.call(self.tape, returns)
    }

    /// Calls the trained model without gradients, before it is called to be trained.
    pub(super) fn score(&self, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        self.tape.mark(Mark::Score);
        self.tape.no_grad(|| self.program.call(self.tape, returns))
    }

    /// Lets another model run, if there is one for this; what it returns.
    pub(super) fn visit(&self, role: Role) -> Option<Vec<Tensor<'t>>> {
        let place = self.others.iter().position(|(other, _)| *other == role)?;
        let (_, returned) = self.others[place];
        self.tape.mark(Mark::Visit(u8::try_from(place).ok()?));
        let make = |it: &Returned| self.tape.fresh(it.elements, it.element_bytes, Category::Loss);
        Some(returned.iter().map(make).collect())
    }

    /// What the reference returns, if there is one. Where it is the trained model itself it is called for `returns`.
    pub(super) fn reference(&self, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        self.reference_by(self.program, returns)
    }

    /// The same, with the program to call where it is the trained model itself.
    pub(super) fn reference_by(
        &self,
        program: &dyn Program,
        returns: Returns,
    ) -> Option<Vec<Tensor<'t>>> {
        if self.adapters_off {
            self.tape.mark(Mark::Reference);
            let call = || self.tape.without_adapters(|| program.call(self.tape, returns));
            return self.tape.no_grad(call);
        }
        self.visit(Role::Reference)
    }

    fn generate(&self) {
        let Some((generation, bytes)) = self.generation else { return };
        match generation.by {
            Generator::Model { gathers } => {
                if gathers {
                    self.tape.mark(Mark::Generate);
                }
                drop(self.tape.fresh(bytes, 1, Category::Activation));
                self.tape.mark(Mark::Generated);
            }
            Generator::Engine { publication, .. } => self.tape.mark(Mark::Publish(publication)),
        }
    }

    /// What precedes happens once in a step, unless every micro step generates.
    pub(super) fn rolled(&self) {
        if self.generation.is_none_or(|(generation, _)| !generation.every_micro_step) {
            self.tape.mark(Mark::Rolled);
        }
    }

    /// The sum of what each sequence has.
    pub(super) fn per_sequence(&self, of_tokens: &Tensor<'t>) -> Tensor<'t> {
        of_tokens.sum(of_tokens.elements() / self.sizes.batch.sequences.max(1))
    }
}

/// What an objective leaves behind.
pub(crate) struct Ran<'t> {
    pub(crate) loss: Tensor<'t>,
    /// What stays alive until backward is complete.
    pub(crate) held: Vec<Tensor<'t>>,
}

impl<'t> From<Tensor<'t>> for Ran<'t> {
    fn from(loss: Tensor<'t>) -> Self {
        Self { loss, held: Vec::new() }
    }
}

/// Runs the objective: the loss, or none if the model returns nothing that it could be computed from.
pub(crate) fn run<'t>(objective: Objective, stage: &Stage<'_, 't>) -> Option<Ran<'t>> {
    stage.generate();
    let loss = match objective {
        Objective::NextToken => Some(own_loss(stage.program, stage.tape)),
        Objective::Dpo { scores, last_logits } => stage.dpo(scores, last_logits),
        Objective::Kto(scores) => stage.kto(scores),
        Objective::Orpo | Objective::Cpo => stage.without_reference(),
        Objective::Reward => stage.reward(),
        Objective::PolicyGradient { scores, completion } => {
            stage.policy_gradient(scores, completion)
        }
        Objective::Ppo(ppo) => return stage.ppo(ppo),
        Objective::Distillation(distillation) => stage.distillation(distillation),
    };
    loss.map(Ran::from)
}
