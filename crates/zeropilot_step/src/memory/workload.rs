//! What a micro batch of a model does on a GPU, whatever ZeRO does around it: shared by all configs that run it.

use std::slice;
use std::sync::{Arc, OnceLock};

use zeropilot_model::Model;
use zeropilot_units::{Bytes, Estimate};

use crate::cuda::{Before, Gradients, Settings, replay};
use crate::lower::{Conditions, LowerError, Lowered, Recipe};
use crate::tape::{Options, Trace};

/// What decides a workload besides the model.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadKey {
    /// How the model is trained.
    pub recipe: Recipe,
    /// What else decides the program.
    pub conditions: Conditions,
}

/// A model lowered for GPUs.
#[derive(Debug)]
pub struct Workload {
    lowered: Lowered,
    options: Options,
    settings: Settings,
    waste: Arc<Waste>,
}

/// What PyTorch's allocator makes of a program. Nothing that ZeRO adds to it is replayed, so that workloads whose
/// programs are built alike have the same.
#[derive(Debug, Default)]
struct Waste {
    micro_step: OnceLock<Trace>,
    /// By [`Gradients`] and [`Flattening`].
    slack: [[OnceLock<Bytes>; 2]; 2],
}

/// Where parameters become one flat buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flattening {
    /// Nowhere, or where it leaves nothing on the GPU.
    Elsewhere,
    /// On the GPU: the blocks of the parameters stay in PyTorch's cache (`flatten_on_accelerator` in DeepSpeed's
    /// `stage_1_and_2.py`).
    OnDevice,
}

impl Workload {
    /// Lowers a model.
    ///
    /// # Errors
    ///
    /// If it cannot be lowered.
    pub fn new(model: &Model, key: WorkloadKey) -> Result<Self, LowerError> {
        let WorkloadKey { recipe, conditions } = key;
        Ok(Self {
            lowered: Lowered::new(model, &recipe, &conditions)?,
            options: Options {
                module_events: false,
                zero3_linear: false,
                ..recipe.options(conditions.options)
            },
            settings: Settings {
                expandable_segments: recipe.expandable_segments,
                ..Settings::default()
            },
            waste: Arc::default(),
        })
    }

    /// The same; what the allocator makes of it is worked out once for both, if their programs are built alike.
    #[must_use]
    pub fn beside(self, other: &Self) -> Self {
        let is_alike = self.options == other.options
            && self.settings == other.settings
            && self.lowered.setup() == other.lowered.setup()
            && self.lowered.task() == other.lowered.task();
        match is_alike {
            true => Self { waste: Arc::clone(&other.waste), ..self },
            false => self,
        }
    }

    /// The program.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// What PyTorch's allocator reserves beyond tensors, by replaying the micro step on it. At best all blocks find
    /// their place; as much again is allowed for what is not replayed. What ZeRO keeps lies in segments of its own and
    /// wastes nothing worth counting, but what its buffers were built from stays in the cache.
    pub fn slack(&self, gradients: Gradients, flattening: Flattening) -> Estimate {
        let known = &self.waste.slack[gradients as usize][flattening as usize];
        let slack = *known.get_or_init(|| {
            let run = || self.lowered.trace(self.options);
            let trace = self.waste.micro_step.get_or_init(run);
            let freed = match flattening {
                Flattening::OnDevice => self.lowered.trained_bytes(),
                Flattening::Elsewhere => Vec::new(),
            };
            let before = Before { freed, ..Before::default() };
            let replayed = replay(slice::from_ref(trace), &before, gradients, self.settings);
            // Without a limit every request is served.
            replayed.map_or(Bytes(0), |replayed| replayed.slack())
        });
        Estimate::new(Bytes(0), slack, Bytes(slack.0.saturating_mul(2)))
    }
}
