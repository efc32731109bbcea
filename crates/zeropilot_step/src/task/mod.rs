//! Jobs with more than one model: what is trained for, which other models run, and when.
//!
//! One model is trained, with PPO also a value model in the same engine. Every other one is frozen and has an engine of
//! its own, whose config follows from the trained model's. An [`Objective`] is a program on the tape of the trained model: it calls that model, lets the others run
//! where the trainer does ([`Mark::Visit`](crate::tape::Mark::Visit)) and computes the loss from what all of them
//! returned.

mod distillation;
mod generation;
mod logits;
mod objective;
mod ppo;
mod preference;

use std::sync::Arc;

use zeropilot_config::settings::Zero;
use zeropilot_model::Model;
use zeropilot_units::Bytes;

use crate::family::Setup;
use crate::shape::Batch;

pub use self::distillation::{Distillation, Divergence};
pub(crate) use self::generation::generation_bytes;
pub use self::objective::Objective;
pub(crate) use self::objective::{Other, Ran, Stage, run};
pub use self::ppo::Ppo;
pub use self::preference::Scores;

/// What a frozen model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The model from which training begins, with which the trained one is compared.
    Reference,
    /// The model that is imitated.
    Teacher,
    /// Judges completions.
    Reward,
}

/// A model that runs and is not trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Frozen {
    /// What it is for.
    pub role: Role,
    /// The model.
    pub model: Arc<Model>,
    /// Settings of its own; `None` where they follow from those of the trained model.
    pub zero: Option<Zero>,
    /// Whether its engine gets an optimizer too: the config has an `optimizer` section that nobody took out (TRL before
    /// 1.10, `deepspeed.initialize` by hand).
    pub has_optimizer: bool,
    /// Whether its keys and values stay alive with what it returns: it is called without `use_cache=False`.
    pub keeps_cache: bool,
}

/// The value model of PPO, which is trained in one engine with the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Critic {
    /// The model, with a head of one column.
    pub model: Arc<Model>,
    /// Whether it is trained as the policy is, with adapters of its own where that has some (ms-swift). Otherwise all of it
    /// is trained (TRL).
    pub as_policy: bool,
}

/// Completions that are generated before they are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Micro batches whose completions a rank generates at once.
    pub micro_batches: u64,
    /// Sequences that a rank generates and judges at most at once; `None` for all of them.
    pub at_once: Option<u64>,
    /// Tokens of a prompt.
    pub prompt: u64,
    /// Tokens of a completion.
    pub completion: u64,
    /// Whether the 32-bit logits of all sampled tokens are kept until the next generation is complete (`output_scores` in
    /// TRL's PPO).
    pub keeps_logits: bool,
    /// Whether it happens in every micro step, and not once for all of a step.
    pub every_micro_step: bool,
    /// Optimizer steps that learn from the same completions (`num_ppo_epochs`).
    pub steps: u64,
    /// Whether the model then scores its completions without gradients: RLOO always, GRPO where the policy has changed
    /// since, or where vLLM has generated.
    pub scores: bool,
    /// What changes the logits before a token is sampled.
    pub processing: Processing,
    /// Who generates.
    pub by: Generator,
}

/// What changes logits before a token is sampled from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processing {
    /// Nothing.
    None,
    /// A temperature other than 1.
    Temperature,
    /// A least length, which rules out the token that ends a completion.
    LeastLength,
}

/// Who generates completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// The trained model, by its own `generate`.
    Model {
        /// Whether stage 3 gathers the whole model for it (`ds3_gather_for_generation`, the default), and not one
        /// module after the other for every token.
        gathers: bool,
    },
    /// Another engine, which is given the weights first.
    Engine {
        /// How stage 3 gathers the weights.
        publication: Publication,
        /// What it takes of the GPUs that train, if it runs there.
        colocated: Option<Colocated>,
    },
}

/// How stage 3 gathers weights for another engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Publication {
    /// One parameter after the other.
    EachInTurn,
    /// All of them, since adapters are merged into the whole model.
    AllAtOnce,
}

/// An engine that generates on the GPUs that train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colocated {
    /// Thousandths of a GPU that it takes, its weights included (`gpu_memory_utilization`).
    pub per_mille: u16,
    /// Whether it gives weights and cache back while the model is trained.
    pub sleeps: bool,
    /// GPUs that share one copy of its weights.
    pub tensor_parallel: u64,
}

impl Colocated {
    /// What it takes of a GPU while it generates.
    pub fn share(self, capacity: Bytes) -> Bytes {
        Bytes(capacity.0 / 1000 * u64::from(self.per_mille))
    }
}

/// What a model is trained for, and with the help of which others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Task {
    /// What is minimised.
    pub objective: Objective,
    /// The other models.
    pub frozen: Vec<Frozen>,
    /// The value model of PPO.
    pub critic: Option<Critic>,
    /// Tokens at the end of a sequence that have labels: those of a completion. `None` for all of them.
    pub completion: Option<u64>,
    /// Whether the model without its adapters is the reference.
    pub adapters_off: bool,
    /// What is generated before it is learned from.
    pub generation: Option<Generation>,
}

impl Task {
    /// Whether nothing but the next token is learned, from labels.
    pub fn is_supervised(&self) -> bool {
        self.objective == Objective::NextToken && self.frozen.is_empty()
    }

    /// The engine that generates on the same GPUs.
    pub fn colocated(&self) -> Option<&Colocated> {
        match &self.generation.as_ref()?.by {
            Generator::Engine { colocated, .. } => colocated.as_ref(),
            Generator::Model { .. } => None,
        }
    }

    pub(crate) fn colocated_mut(&mut self) -> Option<&mut Colocated> {
        match &mut self.generation.as_mut()?.by {
            Generator::Engine { colocated, .. } => colocated.as_mut(),
            Generator::Model { .. } => None,
        }
    }

    /// The same for steps of so many micro batches: GRPO and RLOO generate the completions of all of them at once.
    #[must_use]
    pub fn with_accumulation(mut self, micro_batches: u64) -> Self {
        if let Some(generation) = self.generation.as_mut().filter(|it| !it.every_micro_step) {
            generation.micro_batches = micro_batches;
        }
        self
    }

    /// Pieces in which completions run through the models before any is learned from: GRPO and RLOO take as many at once
    /// as a micro batch has, PPO as many as its trainer gives.
    pub(crate) fn pieces(&self, micro_batch: u64) -> u64 {
        let Some(generation) = self.generation.filter(|it| !it.every_micro_step) else { return 1 };
        match self.objective {
            Objective::PolicyGradient { .. } => generation.micro_batches.max(1),
            Objective::Ppo(_) => {
                generation.sequences(micro_batch).div_ceil(generation.piece(micro_batch).max(1))
            }
            _ => 1,
        }
    }

    /// Sequences that a frozen model runs at once, with so many in a micro batch: a reward model judges all completions
    /// that were generated, PPO's models as many as its trainer gives them.
    pub(crate) fn frozen_sequences(&self, role: Role, micro_batch: u64) -> u64 {
        match (self.objective, role, self.generation) {
            (Objective::Ppo(_), _, Some(generation)) => generation.piece(micro_batch),
            (Objective::PolicyGradient { .. }, Role::Reward, Some(generation)) => {
                generation.sequences(micro_batch)
            }
            _ => micro_batch,
        }
    }

    /// The same where sequences have this share of their length.
    #[must_use]
    pub fn shortened(mut self, (to, from): (u64, u64)) -> Self {
        let shorter = |tokens: u64| (tokens * to / from.max(1)).max(1);
        self.completion = self.completion.map(shorter);
        match &mut self.objective {
            Objective::PolicyGradient { completion, .. }
            | Objective::Ppo(Ppo { completion, .. }) => {
                *completion = shorter(*completion);
            }
            _ => {}
        }
        if let Some(generation) = &mut self.generation {
            generation.prompt = shorter(generation.prompt);
            generation.completion = shorter(generation.completion);
        }
        self
    }
}

/// A tensor that a frozen model returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Returned {
    pub(crate) elements: u64,
    pub(crate) element_bytes: u8,
}

/// The sizes of what a loss is computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: Batch,
    pub(crate) vocabulary: u64,
    pub(crate) completion: Option<u64>,
    /// Elements of the hidden states before and after all layers.
    pub(crate) hidden_states: u64,
}

impl Sizes {
    pub(crate) fn of(setup: &Setup) -> Self {
        let Setup { batch, shape, completion, .. } = *setup;
        Self {
            batch,
            vocabulary: shape.vocabulary,
            completion,
            hidden_states: (shape.layers + 1) * batch.tokens() * shape.hidden,
        }
    }

    /// Logits that predict a token.
    pub(crate) fn predicted(self) -> u64 {
        let Batch { sequences, length, .. } = self.batch;
        sequences * length.saturating_sub(1) * self.vocabulary
    }

    /// Positions whose next token has a label.
    pub(crate) fn labelled(self) -> u64 {
        let Batch { sequences, length, .. } = self.batch;
        sequences * labelled(self.completion, length)
    }
}

/// Positions of a sequence whose next token has a label.
pub(crate) fn labelled(completion: Option<u64>, length: u64) -> u64 {
    let most = length.saturating_sub(1);
    completion.map_or(most, |tokens| tokens.min(most))
}
