//! A config as a program wishes for it: every part of a [`Request`] as a plain value.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use zeropilot_plan::{
    ActivationCheckpointing, AsyncIo, BatchRequest, Device, DynamicLossScale, HyperParameters,
    Knob, KnobKind, KnobValue, Knobs, Link, LossScale, LossScaleRequest, ModelSize, OffloadRequest,
    OptimizerKind, Precision, Preset, Request, SchedulerKind, Stage, Steps, Target, WarmupShape,
    Wish,
};
use zeropilot_units::{Bytes, Elements};

use crate::name::Offload;
#[cfg(feature = "clap")]
use crate::parsers;
use crate::size;

/// Where something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the GPU
    None,
    /// In host memory
    Cpu,
    /// On a disk
    Nvme,
}

/// How a learning rate rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Warmup {
    /// Rise by the same amount in each step
    Linear,
    /// Rise fast at first, then slowly
    Log,
}

/// Headings of the options.
#[cfg(feature = "clap")]
mod heading {
    pub(super) const BATCH: &str = "Batch: micro-batch size × gradient accumulation steps × ranks";
    pub(super) const OFFLOAD: &str = "Offload";
    pub(super) const PRECISION: &str = "Precision";
    pub(super) const LEARNING: &str = "Optimizer and schedule";
    pub(super) const SECTIONS: &str = "DeepSpeed gradient checkpointing and logging";
}

/// What is wished for. The default asks for nothing.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Wishes {
    /// Choose a preset: a stage with its offload
    #[serde(deserialize_with = "size::word")]
    #[cfg_attr(feature = "clap", arg(value_name = "PRESET", value_parser = parsers::preset()))]
    pub preset: Option<Preset>,
    /// Set the ZeRO stage: 1 partitions optimizer states, 2 also gradients, 3 also weights
    #[cfg_attr(feature = "clap", arg(long, value_name = "0-3", value_parser = clap::value_parser!(u8).range(0..=3)))]
    pub stage: Option<u8>,
    /// Set the framework that reads the config; determines whether values are "auto" or numbers [default: deepspeed]
    #[serde(rename = "for", deserialize_with = "size::word")]
    #[cfg_attr(feature = "clap", arg(long = "for", value_name = "PROGRAM", value_parser = parsers::target()))]
    pub target: Option<Target>,
    /// Size buckets for a link with this bandwidth per second, such as 25GB
    #[serde(deserialize_with = "size::bytes")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", requires = "model"))]
    pub link_bandwidth: Option<Bytes>,
    /// Set the micro-batch size: samples per GPU and forward pass
    #[cfg_attr(feature = "clap", arg(long = "micro-batch", id = "micro_batch", visible_alias = "per-device-train-batch-size", alias = "micro-batch-size", value_name = "N", help_heading = heading::BATCH))]
    pub micro_batch_size: Option<NonZeroU64>,
    /// Set the gradient accumulation steps: micro-batches per optimizer step
    #[cfg_attr(feature = "clap", arg(long = "grad-accum", id = "grad_accum", visible_alias = "gradient-accumulation-steps", value_name = "N", help_heading = heading::BATCH))]
    pub gradient_accumulation: Option<NonZeroU64>,
    /// Set the world size: number of ranks (GPUs)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::BATCH))]
    pub world_size: Option<NonZeroU64>,
    /// Set the global batch size: samples per optimizer step on all ranks; determines the gradient accumulation steps
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::BATCH))]
    pub global_batch: Option<NonZeroU64>,
    /// Keep these states in host memory; `--offload` alone means all that the stage supports
    #[serde(deserialize_with = "offload")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "all", help_heading = heading::OFFLOAD))]
    pub offload: Option<Offload>,
    /// Choose where optimizer states are kept
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHERE", help_heading = heading::OFFLOAD))]
    pub offload_optimizer: Option<Place>,
    /// Choose where weights are kept; stage 3 only
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHERE", help_heading = heading::OFFLOAD))]
    pub offload_param: Option<Place>,
    /// Use this directory on a fast disk for NVMe offload; DeepSpeed empties it at startup
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIRECTORY", help_heading = heading::OFFLOAD))]
    pub nvme_path: Option<String>,
    /// Page-lock host buffers: faster copies, less host memory for other programs [default: true]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", help_heading = heading::OFFLOAD))]
    pub pin_memory: Option<bool>,
    /// Set the bytes per disk request
    #[serde(deserialize_with = "size::bytes")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", help_heading = heading::OFFLOAD))]
    pub aio_block_size: Option<Bytes>,
    /// Set the number of disk requests in flight
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::OFFLOAD))]
    pub aio_queue_depth: Option<NonZeroU64>,
    /// Set the number of threads per disk transfer
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::OFFLOAD))]
    pub aio_intra_op_parallelism: Option<NonZeroU64>,
    /// Submit disk requests one by one
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", help_heading = heading::OFFLOAD))]
    pub aio_single_submit: Option<bool>,
    /// Submit new disk requests while earlier ones are in progress
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", help_heading = heading::OFFLOAD))]
    pub aio_overlap_events: Option<bool>,
    /// Train in bf16, which is also the default; `false` without another format means fp32
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = heading::PRECISION))]
    pub bf16: Option<bool>,
    /// Train in fp16
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::PRECISION))]
    pub fp16: bool,
    /// Train in fp32
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::PRECISION))]
    pub fp32: bool,
    /// Use this fixed loss scale in fp16 instead of a dynamic one
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", help_heading = heading::PRECISION))]
    pub loss_scale: Option<f64>,
    /// Start the dynamic fp16 loss scale at two to this power
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::PRECISION))]
    pub initial_scale_power: Option<u64>,
    /// Double the fp16 loss scale after this many steps without overflow
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::PRECISION))]
    pub loss_scale_window: Option<u64>,
    /// Halve the fp16 loss scale after this many overflows (consecutive or not)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::PRECISION))]
    pub hysteresis: Option<u64>,
    /// Set the lower limit of the fp16 loss scale
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::PRECISION))]
    pub min_loss_scale: Option<u64>,
    /// Let DeepSpeed build this optimizer; `none` if your script builds it
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parsers::optimizer(), help_heading = heading::LEARNING))]
    pub optimizer: Option<String>,
    /// Set the learning rate
    #[cfg_attr(feature = "clap", arg(long, visible_alias = "lr", value_name = "X", help_heading = heading::LEARNING))]
    pub learning_rate: Option<f64>,
    /// Set the betas of Adam and Lion, such as 0.9,0.95
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,X", value_parser = parsers::pair, help_heading = heading::LEARNING))]
    pub betas: Option<(f64, f64)>,
    /// Set the epsilon of Adam and Adagrad
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", help_heading = heading::LEARNING))]
    pub eps: Option<f64>,
    /// Set the weight decay
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", help_heading = heading::LEARNING))]
    pub weight_decay: Option<f64>,
    /// Let DeepSpeed build this learning rate scheduler; `none` if your script builds it
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parsers::scheduler(), help_heading = heading::LEARNING))]
    pub scheduler: Option<String>,
    /// Set the number of steps until the learning rate peaks
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::LEARNING))]
    pub warmup_steps: Option<NonZeroU64>,
    /// Set the total number of training steps
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::LEARNING))]
    pub total_steps: Option<NonZeroU64>,
    /// Choose how the learning rate rises [DeepSpeed's default: log]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHAPE", help_heading = heading::LEARNING))]
    pub warmup_type: Option<Warmup>,
    /// Clip gradients at this norm, 0 for no clipping [default: 1.0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", help_heading = heading::LEARNING))]
    pub clip: Option<f64>,
    /// Write the section `activation_checkpointing`, for models that call deepspeed.checkpointing
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::SECTIONS))]
    pub activation_checkpointing: bool,
    /// Partition saved activations over the model-parallel ranks
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::SECTIONS))]
    pub partition_activations: bool,
    /// Keep activations in host memory
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::SECTIONS))]
    pub cpu_checkpointing: bool,
    /// Copy activations into one buffer for this many checkpoints
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::SECTIONS))]
    pub number_checkpoints: Option<NonZeroU64>,
    /// Wait for the GPU at each checkpoint
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::SECTIONS))]
    pub synchronize_checkpoint_boundary: bool,
    /// Measure the time of each checkpoint
    #[cfg_attr(feature = "clap", arg(long, help_heading = heading::SECTIONS))]
    pub profile_checkpoints: bool,
    /// Set the number of steps between progress lines in DeepSpeed's log
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = heading::SECTIONS))]
    pub steps_per_print: Option<NonZeroU64>,
    /// Fine-grained keys of `zero_optimization` by their names, those of its sections with the section in front:
    /// `offload_optimizer_ratio`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub knobs: BTreeMap<String, Value>,
}

/// Programs also say `true` for all; `false` says nothing.
fn offload<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Offload>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Switch(bool),
        Word(Offload),
    }
    Ok(Option::<Written>::deserialize(from)?.and_then(|written| match written {
        Written::Switch(is_on) => is_on.then_some(Offload::All),
        Written::Word(word) => Some(word),
    }))
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
    #[error("`{name}` must be {}, not {found}", match kind {
        KnobKind::Elements => "a number of elements",
        KnobKind::Count => "a count",
        KnobKind::Flag => "true or false",
        KnobKind::Share => "a fraction between 0 and 1",
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
    #[error("`link_bandwidth` needs `model`: bucket sizes depend on both")]
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
        let wish = |place: Option<Place>, otherwise: Wish<Device>| match place {
            None => otherwise,
            Some(Place::None) => Wish::No,
            Some(Place::Cpu) => Wish::Yes(Device::Cpu),
            Some(Place::Nvme) => Wish::Yes(Device::Nvme),
        };
        let (optimizer, parameters) = match self.offload {
            None | Some(Offload::All) => (Wish::Open, Wish::Open),
            Some(Offload::None) => (Wish::No, Wish::No),
            Some(Offload::Optimizer) => (Wish::Yes(Device::Cpu), Wish::No),
        };
        OffloadRequest {
            all: self.offload == Some(Offload::All),
            optimizer: wish(self.offload_optimizer, optimizer),
            parameters: wish(self.offload_param, parameters),
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

pub(crate) const NONE: &str = "none";

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
    fn offload_is_one_word_or_a_switch() {
        let offload = |wishes: Value| request(wishes).expect("a request").offload;
        assert!(offload(json!({"offload": true})).all && offload(json!({"offload": "all"})).all);
        assert_eq!(offload(json!({"offload": false})), OffloadRequest::default());
        let optimizer = offload(json!({"offload": "optimizer"}));
        assert_eq!((optimizer.optimizer, optimizer.parameters), (Wish::Yes(Device::Cpu), Wish::No));
        let disk = offload(json!({"offload": "optimizer", "offload_optimizer": "nvme"}));
        assert_eq!(disk.optimizer, Wish::Yes(Device::Nvme));
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
