//! What a person asks for, each part on its own, and what becomes of it.

mod batch;
mod precision;
mod training;
mod zero;

use std::num::NonZeroU64;

use zeropilot_units::ElementSize;

use crate::checkpointing::{ActivationCheckpointing, AsyncIo};
use crate::knob::{Knob, KnobValue, Knobs};
use crate::optimizer::{HyperParameters, OptimizerKind};
use crate::precision::{DynamicLossScale, Precision};
use crate::preset::Preset;
use crate::recipe::Recipe;
use crate::refusal::Refusal;
use crate::scheduler::{SchedulerKind, Steps};
use crate::sizing::{Circumstances, Link, ModelSize, SizedKey, size};
use crate::target::Target;
use crate::zero::{Device, Stage, Zero};

/// Something that can be wanted, not wanted, or left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wish<T> {
    /// Nobody said anything.
    #[default]
    Open,
    /// Nothing of the kind.
    No,
    /// This.
    Yes(T),
}

/// What is to be kept off the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OffloadRequest {
    /// Everything the stage can keep in host memory.
    pub all: bool,
    /// Optimizer states.
    pub optimizer: Wish<Device>,
    /// Weights.
    pub parameters: Wish<Device>,
    /// The directory on a disk.
    pub nvme_path: Option<String>,
    /// Whether host buffers are page-locked; yes if not said.
    pub pin_memory: Option<bool>,
}

/// How the loss is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossScaleRequest {
    /// Always by the same.
    pub fixed: Option<f64>,
    /// How to search for the scale.
    pub dynamic: DynamicLossScale,
}

/// Samples per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchRequest {
    /// Samples one rank takes at once.
    pub micro: Option<NonZeroU64>,
    /// Micro batches per optimizer step.
    pub accumulation: Option<NonZeroU64>,
    /// Ranks.
    pub world: Option<NonZeroU64>,
    /// Samples per optimizer step over all ranks, from which the accumulation follows.
    pub global: Option<NonZeroU64>,
}

/// A wish. The default asks for nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Who reads the config.
    pub target: Target,
    /// A stage with what it offloads.
    pub preset: Option<Preset>,
    /// A stage alone.
    pub stage: Option<Stage>,
    /// What is kept off the device.
    pub offload: OffloadRequest,
    /// Number formats, of which there must not be two; bf16 if there is none.
    pub precisions: Vec<Precision>,
    /// How the loss is scaled.
    pub loss_scale: LossScaleRequest,
    /// Samples per step.
    pub batch: BatchRequest,
    /// The optimizer the engine is to build.
    pub optimizer: Wish<OptimizerKind>,
    /// The optimizer's numbers.
    pub hyper_parameters: HyperParameters,
    /// The schedule the engine is to build.
    pub scheduler: Wish<SchedulerKind>,
    /// The schedule's numbers.
    pub steps: Steps,
    /// The norm gradients are clipped at.
    pub clipping: Option<f64>,
    /// DeepSpeed's own activation checkpointing.
    pub checkpointing: Option<ActivationCheckpointing>,
    /// How the disk is read and written.
    pub async_io: AsyncIo,
    /// Steps between two lines of the engine's log.
    pub steps_per_print: Option<u64>,
    /// Fine-grained keys.
    pub knobs: Knobs,
    /// The model to size for.
    pub model: Option<ModelSize>,
    /// The link to size for.
    pub link: Option<Link>,
}

impl Request {
    /// A config that holds together.
    ///
    /// # Errors
    ///
    /// All reasons why there is none.
    pub fn recipe(&self) -> Result<Recipe, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let zero = zero::resolve(self, &mut refusals);
        let precision = precision::resolve(self, &mut refusals);
        let batch = batch::resolve(&self.batch, &mut refusals);
        let training = training::resolve(self, &mut refusals);
        let mut knobs = self.knobs.clone();
        if let Some(zero) = &zero {
            self.judge_knobs(zero, &mut refusals);
            self.judge_disk(zero, &mut refusals);
            if saves_whole_weights(self.target, zero, &knobs) {
                // The key is a flag, so that it takes one.
                let _ = knobs.set(Knob::Gather16bitWeightsOnModelSave, KnobValue::Flag(true));
            }
        }
        match (zero, precision, batch) {
            (Some(zero), Some(precision), Some(batch)) if refusals.is_empty() => {
                let sized = self.sized(&zero, precision);
                let filled = self.filled(&zero);
                Ok(Recipe {
                    target: self.target,
                    precision,
                    batch,
                    optimizer: training.optimizer,
                    hyper_parameters: self.hyper_parameters,
                    scheduler: training.scheduler,
                    steps: self.steps,
                    clipping: self.clipping,
                    checkpointing: self.checkpointing,
                    async_io: (self.async_io != AsyncIo::default()).then_some(self.async_io),
                    steps_per_print: self.steps_per_print,
                    knobs,
                    sized: sized.into_iter().filter(|key| !filled.contains(&key.knob)).collect(),
                    filled,
                    zero,
                })
            }
            _ => Err(refusals),
        }
    }

    fn sized(&self, zero: &Zero, precision: Precision) -> Vec<SizedKey> {
        let Some(model) = self.model else { return Vec::new() };
        let element = match precision {
            Precision::Bf16 | Precision::Fp16(_) => ElementSize::Two,
            Precision::Fp32 => ElementSize::Four,
        };
        let world = self.batch.world.map(NonZeroU64::get);
        size(zero, &self.knobs, &Circumstances { model, link: self.link, world, element })
    }

    /// The HF Trainer sizes these keys for the model it trains; only a link is unknown to it.
    fn filled(&self, zero: &Zero) -> Vec<Knob> {
        if !self.target.is_trainer() || self.model.is_some() && self.link.is_some() {
            return Vec::new();
        }
        let keys: &[Knob] = match zero.stage() {
            Stage::Zero => &[],
            Stage::One | Stage::Two => &[Knob::ReduceBucketSize],
            Stage::Three => {
                &[Knob::ReduceBucketSize, Knob::PrefetchBucketSize, Knob::ParamPersistenceThreshold]
            }
        };
        keys.iter().copied().filter(|knob| self.knobs.get(*knob).is_none()).collect()
    }

    fn judge_knobs(&self, zero: &Zero, refusals: &mut Vec<Refusal>) {
        let stage = zero.stage();
        for (knob, value) in self.knobs.iter() {
            if !knob.is_read_by(stage) {
                refusals.push(Refusal::KnobNotRead { knob, stage });
            } else if !zero::has_section_of(zero, knob) {
                refusals.push(Refusal::KnobWithoutOffload(knob));
            }
            refusals.extend(self.judge_value(knob, value));
        }
        let is = |knob, on| self.knobs.get(knob) == Some(KnobValue::Flag(on));
        if is(Knob::QuantizedGradients, true) && is(Knob::ReduceScatter, false) {
            refusals.push(Refusal::QuantizedGradientsWithoutReduceScatter);
        }
    }

    fn judge_value(&self, knob: Knob, value: KnobValue) -> Option<Refusal> {
        let world = self.batch.world.map(NonZeroU64::get);
        match (knob, value) {
            (_, KnobValue::Share(share)) if !(0.0..=1.0).contains(&share) => {
                Some(Refusal::NotAShare { knob, share })
            }
            (Knob::AllgatherBucketSize, KnobValue::Elements(elements))
                if !elements.0.is_multiple_of(2) =>
            {
                Some(Refusal::OddAllgatherBucket(elements.0))
            }
            (Knob::ReduceBucketSize, KnobValue::Elements(elements)) if elements.0 == 0 => {
                Some(Refusal::Zero(knob))
            }
            (_, KnobValue::Count(0)) => Some(Refusal::Zero(knob)),
            (Knob::HpzPartitionSize, KnobValue::Count(size)) => world
                .filter(|world| !world.is_multiple_of(size))
                .map(|world| Refusal::HpzDoesNotDivide { size, world }),
            _ => None,
        }
    }

    fn judge_disk(&self, zero: &Zero, refusals: &mut Vec<Refusal>) {
        let uses_disk = zero::uses_disk(zero);
        let has_refused_disk = refusals.iter().any(|refusal| {
            matches!(refusal, Refusal::NvmeBelowStage3(_) | Refusal::NvmeWithoutPath)
        });
        if uses_disk || has_refused_disk {
            return;
        }
        if self.offload.nvme_path.is_some() {
            refusals.push(Refusal::PathWithoutNvme);
        }
        if self.async_io != AsyncIo::default() {
            refusals.push(Refusal::AsyncIoWithoutNvme);
        }
    }
}

/// Front ends save a model as one set of weights, which stage 3 must be told to gather.
fn saves_whole_weights(target: Target, zero: &Zero, knobs: &Knobs) -> bool {
    zero.stage() == Stage::Three
        && target.fills_placeholders()
        && knobs.get(Knob::Gather16bitWeightsOnModelSave).is_none()
}
