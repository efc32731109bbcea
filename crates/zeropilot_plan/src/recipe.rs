//! A config that holds together, before it is written.

use zeropilot_units::Elements;

use crate::batch::Batch;
use crate::checkpointing::{ActivationCheckpointing, AsyncIo};
use crate::knob::{Knob, Knobs};
use crate::optimizer::{HyperParameters, OptimizerKind};
use crate::precision::Precision;
use crate::scheduler::{SchedulerKind, Steps};
use crate::sizing::SizedKey;
use crate::target::Target;
use crate::zero::Zero;

/// Everything a config says. Made by [`Request::recipe`](crate::Request::recipe).
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Who reads it.
    pub target: Target,
    /// What is partitioned and offloaded.
    pub zero: Zero,
    /// The number format.
    pub precision: Precision,
    /// Samples per step.
    pub batch: Batch,
    /// The optimizer the engine builds; `None` leaves it to the script.
    pub optimizer: Option<OptimizerKind>,
    /// The optimizer's numbers, wherever it is built.
    pub hyper_parameters: HyperParameters,
    /// The schedule the engine builds; `None` leaves it to the script.
    pub scheduler: Option<SchedulerKind>,
    /// The schedule's numbers, wherever it is built.
    pub steps: Steps,
    /// The norm gradients are clipped at; `None` is the default of engine and Trainer, [`Recipe::CLIPPING`].
    pub clipping: Option<f64>,
    /// DeepSpeed's own activation checkpointing.
    pub checkpointing: Option<ActivationCheckpointing>,
    /// How the disk is read and written.
    pub async_io: Option<AsyncIo>,
    /// Steps between two lines of the engine's log.
    pub steps_per_print: Option<u64>,
    /// Fine-grained keys that somebody chose.
    pub knobs: Knobs,
    /// Fine-grained keys that follow from the model.
    pub sized: Vec<SizedKey>,
    /// Fine-grained keys that the front end fills from the model it has.
    pub filled: Vec<Knob>,
}

impl Recipe {
    /// The norm gradients are clipped at if nobody says one. It is always written: engines before 0.19.3 did not
    /// clip without being told.
    pub const CLIPPING: f64 = 1.0;

    /// The elements a key holds, whoever decided it; `None` if it is not written as a number.
    pub fn elements(&self, knob: Knob) -> Option<Elements> {
        let sized = || self.sized.iter().find(|key| key.knob == knob).map(|key| key.elements);
        self.knobs.elements(knob).or_else(sized)
    }
}
