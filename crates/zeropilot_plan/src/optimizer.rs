//! Optimizers the engine builds from a config.

/// An algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptimizerKind {
    /// Adam with decoupled weight decay.
    AdamW,
    /// Adam with weight decay in the gradient.
    Adam,
    /// The sign of the momentum.
    Lion,
    /// One growing sum of squares.
    Adagrad,
}

impl OptimizerKind {
    /// All of them. Each has a version for optimizer states in host memory.
    pub const ALL: [Self; 4] = [Self::AdamW, Self::Adam, Self::Lion, Self::Adagrad];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdamW => "adamw",
            Self::Adam => "adam",
            Self::Lion => "lion",
            Self::Adagrad => "adagrad",
        }
    }

    /// The `type` in a config.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::AdamW => "AdamW",
            Self::Adam => "Adam",
            Self::Lion => "Lion",
            Self::Adagrad => "Adagrad",
        }
    }

    /// Whether it averages over past gradients.
    pub fn has_betas(self) -> bool {
        self != Self::Adagrad
    }

    /// Whether it divides by something that could be zero.
    pub fn has_epsilon(self) -> bool {
        self != Self::Lion
    }
}

/// The learning rate if nobody says one: the one HF Trainer begins with.
pub const DEFAULT_LEARNING_RATE: f64 = 5e-5;

/// Numbers of an optimizer. What is not said is the engine's default, or what a front end fills in.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HyperParameters {
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// How fast the averages forget.
    pub betas: Option<(f64, f64)>,
    /// What keeps the division finite.
    pub epsilon: Option<f64>,
    /// The pull towards zero.
    pub weight_decay: Option<f64>,
}

impl HyperParameters {
    /// The learning rate, or the default.
    pub fn learning_rate_or_default(&self) -> f64 {
        self.learning_rate.unwrap_or(DEFAULT_LEARNING_RATE)
    }

    /// The options that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("--learning-rate", self.learning_rate.is_some()),
            ("--betas", self.betas.is_some()),
            ("--eps", self.epsilon.is_some()),
            ("--weight-decay", self.weight_decay.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }
}
