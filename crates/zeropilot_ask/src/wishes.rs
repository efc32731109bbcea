//! A config as a program wishes for it: every part of a [`Request`] as a plain value.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::Deserialize;
use serde_json::Value;
use zeropilot_plan::{
    ActivationCheckpointing, AsyncIo, BatchRequest, Device, DynamicLossScale, HyperParameters,
    Knob, KnobKind, KnobValue, Knobs, Link, LossScale, LossScaleRequest, ModelSize, OffloadRequest,
    OptimizerKind, Precision, Preset, Request, SchedulerKind, Stage, Steps, Target, WarmupShape,
    Wish,
};
use zeropilot_units::{Bytes, Elements};

use crate::size;

/// Where something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the GPU.
    None,
    /// In host memory.
    Cpu,
    /// On a disk.
    Nvme,
}

/// How a learning rate rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Warmup {
    /// By the same amount each step.
    Linear,
    /// Fast, then slowly.
    Log,
}

/// What is wished for. The default asks for nothing.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wishes {
    /// Who reads the config.
    #[serde(rename = "for", deserialize_with = "size::word")]
    pub target: Option<Target>,
    /// A stage with what it offloads.
    #[serde(deserialize_with = "size::word")]
    pub preset: Option<Preset>,
    /// A stage alone.
    pub stage: Option<u8>,
    /// Samples one rank takes at once.
    pub micro_batch_size: Option<NonZeroU64>,
    /// Micro batches per optimizer step.
    pub gradient_accumulation: Option<NonZeroU64>,
    /// Ranks.
    pub world_size: Option<NonZeroU64>,
    /// Samples per optimizer step over all ranks.
    pub global_batch: Option<NonZeroU64>,
    /// Keep in host memory what the stage can.
    pub offload: bool,
    /// Where optimizer states are kept.
    pub offload_optimizer: Option<Place>,
    /// Where weights are kept.
    pub offload_param: Option<Place>,
    /// A directory on a fast disk.
    pub nvme_path: Option<String>,
    /// Page-lock host buffers.
    pub pin_memory: Option<bool>,
    /// Bytes of one disk request.
    #[serde(deserialize_with = "size::bytes")]
    pub aio_block_size: Option<Bytes>,
    /// Disk requests in flight.
    pub aio_queue_depth: Option<NonZeroU64>,
    /// Threads of one disk transfer.
    pub aio_intra_op_parallelism: Option<NonZeroU64>,
    /// Hand disk requests over one by one.
    pub aio_single_submit: Option<bool>,
    /// Overlap handing over disk requests with waiting for them.
    pub aio_overlap_events: Option<bool>,
    /// Train in bf16; `false` without another format means fp32.
    pub bf16: Option<bool>,
    /// Train in fp16.
    pub fp16: bool,
    /// Train in fp32.
    pub fp32: bool,
    /// fp16: scale the loss always by this.
    pub loss_scale: Option<f64>,
    /// fp16: begin the search at two to the power of this.
    pub initial_scale_power: Option<u64>,
    /// fp16: double the scale after so many steps without overflow.
    pub loss_scale_window: Option<u64>,
    /// fp16: overflows in a row that are forgiven.
    pub hysteresis: Option<u64>,
    /// fp16: the scale never falls below this.
    pub min_loss_scale: Option<u64>,
    /// The optimizer the engine builds, or `none`.
    pub optimizer: Option<String>,
    /// Learning rate.
    pub learning_rate: Option<f64>,
    /// Betas of Adam and Lion.
    pub betas: Option<(f64, f64)>,
    /// Epsilon of Adam and Adagrad.
    pub eps: Option<f64>,
    /// Weight decay.
    pub weight_decay: Option<f64>,
    /// The schedule the engine builds, or `none`.
    pub scheduler: Option<String>,
    /// Steps until the learning rate is at its height.
    pub warmup_steps: Option<NonZeroU64>,
    /// Steps of the whole training.
    pub total_steps: Option<NonZeroU64>,
    /// How the learning rate rises.
    pub warmup_type: Option<Warmup>,
    /// Gradient norm to clip at.
    pub clip: Option<f64>,
    /// Write the section `activation_checkpointing`.
    pub activation_checkpointing: bool,
    /// Split kept activations over the model-parallel ranks.
    pub partition_activations: bool,
    /// Keep activations in host memory.
    pub cpu_checkpointing: bool,
    /// Copy activations into one buffer for so many checkpoints.
    pub number_checkpoints: Option<NonZeroU64>,
    /// Wait for the device at each checkpoint.
    pub synchronize_checkpoint_boundary: bool,
    /// Measure the time of each checkpoint.
    pub profile_checkpoints: bool,
    /// Steps between two lines of the engine's log.
    pub steps_per_print: Option<NonZeroU64>,
    /// Bytes per second of the link to size buckets for.
    #[serde(deserialize_with = "size::bytes")]
    pub link_bandwidth: Option<Bytes>,
    /// Fine-grained keys of `zero_optimization` by their names, those of its sections with the section in front:
    /// `offload_optimizer_ratio`.
    pub knobs: BTreeMap<String, Value>,
}

/// A wish that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WishProblem {
    /// There is no such stage.
    #[error("`stage` is {0}, but stages are 0 to 3")]
    Stage(u8),
    /// A word that names nothing.
    #[error("`{name}` is `{found}`, but must be one of {}", known.join(", "))]
    Word {
        /// The argument.
        name: &'static str,
        /// What was given.
        found: String,
        /// What can be given.
        known: Vec<&'static str>,
    },
    /// There is no such key.
    #[error("there is no fine-grained key `{0}`")]
    NoSuchKnob(String),
    /// A key holds something else.
    #[error("`{name}` holds {}, not {found}", match kind {
        KnobKind::Elements => "a number of elements",
        KnobKind::Count => "a count",
        KnobKind::Flag => "true or false",
        KnobKind::Share => "a share between 0 and 1",
    })]
    KnobKind {
        /// The key.
        name: String,
        /// What it holds.
        kind: KnobKind,
        /// What was given.
        found: Value,
    },
    /// A link is sized for a model.
    #[error("`link_bandwidth` needs `model`: buckets are sized for both")]
    LinkWithoutModel,
}

impl Wishes {
    /// The request.
    ///
    /// # Errors
    ///
    /// If a wish cannot be read. Whether wishes contradict each other is decided later.
    pub fn request(&self, model: Option<ModelSize>) -> Result<Request, WishProblem> {
        let stage = |number| Stage::from_number(number).ok_or(WishProblem::Stage(number));
        if self.link_bandwidth.is_some() && model.is_none() {
            return Err(WishProblem::LinkWithoutModel);
        }
        Ok(Request {
            target: self.target.unwrap_or_default(),
            preset: self.preset,
            stage: self.stage.map(stage).transpose()?,
            offload: self.offload(),
            precisions: self.precisions(),
            loss_scale: LossScaleRequest {
                fixed: self.loss_scale,
                dynamic: DynamicLossScale {
                    initial_scale_power: self.initial_scale_power,
                    window: self.loss_scale_window,
                    hysteresis: self.hysteresis,
                    minimum: self.min_loss_scale,
                },
            },
            batch: BatchRequest {
                micro: self.micro_batch_size,
                accumulation: self.gradient_accumulation,
                world: self.world_size,
                global: self.global_batch,
            },
            optimizer: wish("optimizer", self.optimizer.as_deref(), &OptimizerKind::ALL, |kind| {
                kind.name()
            })?,
            hyper_parameters: HyperParameters {
                learning_rate: self.learning_rate,
                betas: self.betas,
                epsilon: self.eps,
                weight_decay: self.weight_decay,
            },
            scheduler: wish("scheduler", self.scheduler.as_deref(), &SchedulerKind::ALL, |kind| {
                kind.type_name()
            })?,
            steps: Steps {
                warmup: self.warmup_steps,
                total: self.total_steps,
                shape: self.warmup_type.map(|shape| match shape {
                    Warmup::Linear => WarmupShape::Linear,
                    Warmup::Log => WarmupShape::Log,
                }),
            },
            clipping: self.clip,
            checkpointing: self.checkpointing(),
            async_io: AsyncIo {
                block_size: self.aio_block_size.map(|bytes| bytes.0),
                queue_depth: self.aio_queue_depth.map(u64::from),
                intra_op_parallelism: self.aio_intra_op_parallelism.map(u64::from),
                single_submit: self.aio_single_submit,
                overlap_events: self.aio_overlap_events,
            },
            steps_per_print: self.steps_per_print.map(u64::from),
            knobs: knobs(&self.knobs)?,
            model,
            link: self.link_bandwidth.map(|bytes| Link { bandwidth: bytes.0 as f64 }),
        })
    }

    fn offload(&self) -> OffloadRequest {
        let wish = |place: Option<Place>| match place {
            None => Wish::Open,
            Some(Place::None) => Wish::No,
            Some(Place::Cpu) => Wish::Yes(Device::Cpu),
            Some(Place::Nvme) => Wish::Yes(Device::Nvme),
        };
        OffloadRequest {
            all: self.offload,
            optimizer: wish(self.offload_optimizer),
            parameters: wish(self.offload_param),
            nvme_path: self.nvme_path.clone(),
            pin_memory: self.pin_memory,
        }
    }

    fn precisions(&self) -> Vec<Precision> {
        let all = [
            (self.bf16 == Some(true), Precision::Bf16),
            (self.fp16, Precision::Fp16(LossScale::default())),
            (self.fp32 || self.bf16 == Some(false) && !self.fp16, Precision::Fp32),
        ];
        all.into_iter().filter_map(|(is_given, precision)| is_given.then_some(precision)).collect()
    }

    /// Any of its wishes asks for the section.
    fn checkpointing(&self) -> Option<ActivationCheckpointing> {
        let section = ActivationCheckpointing {
            partition_activations: self.partition_activations,
            cpu_checkpointing: self.cpu_checkpointing,
            number_checkpoints: self.number_checkpoints.map(u64::from),
            synchronize_checkpoint_boundary: self.synchronize_checkpoint_boundary,
            profile: self.profile_checkpoints,
        };
        let is_asked_for =
            self.activation_checkpointing || section != ActivationCheckpointing::default();
        is_asked_for.then_some(section)
    }
}

const NONE: &str = "none";

fn wish<T: Copy>(
    name: &'static str,
    word: Option<&str>,
    all: &[T],
    name_of: impl Fn(&T) -> &'static str,
) -> Result<Wish<T>, WishProblem> {
    match word {
        None => Ok(Wish::Open),
        Some(NONE) => Ok(Wish::No),
        Some(word) => {
            let found = all.iter().find(|one| name_of(one).eq_ignore_ascii_case(word));
            found.map(|one| Wish::Yes(*one)).ok_or_else(|| WishProblem::Word {
                name,
                found: word.to_owned(),
                known: all.iter().map(name_of).chain([NONE]).collect(),
            })
        }
    }
}

fn knobs(wished: &BTreeMap<String, Value>) -> Result<Knobs, WishProblem> {
    let mut knobs = Knobs::default();
    for (name, value) in wished {
        let path = |knob: &&Knob| knob.path().replace('.', "_") == *name;
        let knob = Knob::ALL.iter().find(path);
        let knob = *knob.ok_or_else(|| WishProblem::NoSuchKnob(name.clone()))?;
        let kind = knob.kind();
        let other = || WishProblem::KnobKind { name: name.clone(), kind, found: value.clone() };
        let set = knobs.set(knob, knob_value(kind, value).ok_or_else(other)?);
        set.map_err(|_| other())?;
    }
    Ok(knobs)
}

fn knob_value(kind: KnobKind, value: &Value) -> Option<KnobValue> {
    Some(match kind {
        KnobKind::Elements => KnobValue::Elements(match value {
            Value::String(text) => text.parse().ok()?,
            // `5e8` is how people write these.
            Value::Number(number) => number.to_string().parse::<Elements>().ok()?,
            _ => return None,
        }),
        KnobKind::Count => KnobValue::Count(value.as_u64()?),
        KnobKind::Flag => KnobValue::Flag(value.as_bool()?),
        KnobKind::Share => KnobValue::Share(value.as_f64()?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(wishes: Value) -> Result<Request, WishProblem> {
        let wishes: Wishes = serde_json::from_value(wishes).expect("wishes");
        wishes.request(None)
    }

    #[test]
    fn every_fine_grained_key_has_a_name_of_its_own() {
        for knob in Knob::ALL {
            let value = match knob.kind() {
                KnobKind::Elements => json!(5e8),
                KnobKind::Count => json!(2),
                KnobKind::Flag => json!(true),
                KnobKind::Share => json!(0.5),
            };
            let name = knob.path().replace('.', "_");
            let request = request(json!({"knobs": {name: value}})).expect("a request");
            let set: Vec<Knob> = request.knobs.iter().map(|(knob, _)| knob).collect();
            assert_eq!(set, [*knob]);
        }
    }

    #[test]
    fn sizes_are_elements_however_they_are_written() {
        for written in [json!(500_000_000), json!(5e8), json!("5e8")] {
            let request = request(json!({"knobs": {"reduce_bucket_size": written}}));
            let size = request.expect("a request").knobs.elements(Knob::ReduceBucketSize);
            assert_eq!(size, Some(Elements(500_000_000)), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (wishes, name) in [
            (json!({"stage": 4}), "stage"),
            (json!({"optimizer": "adamax"}), "adamax"),
            (json!({"knobs": {"reduce_bucket": 1}}), "reduce_bucket"),
            (json!({"knobs": {"overlap_comm": 1}}), "overlap_comm"),
            (json!({"link_bandwidth": "25GB"}), "link_bandwidth"),
        ] {
            let problem = request(wishes.clone()).expect_err("a problem").to_string();
            assert!(problem.contains(name), "{wishes}: {problem}");
        }
    }

    #[test]
    fn no_bf16_and_nothing_else_is_fp32() {
        let formats = |wishes: Value| -> Vec<&str> {
            let request = request(wishes).expect("a request");
            request.precisions.iter().map(|precision| precision.name()).collect()
        };
        assert_eq!(formats(json!({})), [""; 0]);
        assert_eq!(formats(json!({"bf16": false})), ["fp32"]);
        assert_eq!(formats(json!({"bf16": false, "fp16": true})), ["fp16"]);
        assert_eq!(formats(json!({"bf16": true, "fp16": true})), ["bf16", "fp16"]);
    }
}
