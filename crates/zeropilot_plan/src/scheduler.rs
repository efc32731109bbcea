//! Learning-rate schedules the engine builds from a config.

use std::num::NonZeroU64;

/// The shape of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchedulerKind {
    /// Up, then constant.
    WarmupLr,
    /// Up, then down in a line to zero.
    WarmupDecayLr,
    /// Up, then down along a cosine.
    WarmupCosineLr,
    /// Up and down once.
    OneCycle,
}

impl SchedulerKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::WarmupLr, Self::WarmupDecayLr, Self::WarmupCosineLr, Self::OneCycle];

    /// The `type` in a config, which is also its name on the command line.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::WarmupLr => "WarmupLR",
            Self::WarmupDecayLr => "WarmupDecayLR",
            Self::WarmupCosineLr => "WarmupCosineLR",
            Self::OneCycle => "OneCycle",
        }
    }

    /// Whether it must know how long training takes.
    pub fn needs_total_steps(self) -> bool {
        matches!(self, Self::WarmupDecayLr | Self::WarmupCosineLr)
    }
}

/// How the learning rate rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarmupShape {
    /// By the same amount each step.
    Linear,
    /// Fast, then slowly.
    Log,
}

impl WarmupShape {
    /// As written in a config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
        }
    }
}

/// How long a schedule rises and lasts. What is not said is the engine's default, or what a front end fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Steps until the highest learning rate is reached.
    pub warmup: Option<NonZeroU64>,
    /// Steps of the whole training.
    pub total: Option<NonZeroU64>,
    /// How it rises; the engine's default is [`WarmupShape::Log`].
    pub shape: Option<WarmupShape>,
}
