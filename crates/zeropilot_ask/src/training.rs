//! How a model is trained, as people say it.

use serde::Deserialize;
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::{BaseFormat, QuantizedBase, ScaleStorage};
use zeropilot_step::head::{LossHead, LossShards};
use zeropilot_step::lower::{Images, Method, Recipe};
use zeropilot_step::shape::{Checkpoints, LongContext, MlpTiles};
use zeropilot_step::tape::{AttentionForm, LayerKernels};
use zeropilot_step::zero::{BaseOptimizer, Loading};
use zeropilot_units::ElementSize;

use crate::name::{
    self, Attention, FusedLoss, ImageChoice, Load, MethodName, Optimizer, PartName, Quantization,
};
use crate::range::{OutOfRange, within};
use crate::software::Software;
use crate::{size, tokens};

/// The most tokens of a sequence.
pub const MOST_TOKENS: u64 = 1 << 24;
/// The most sequences of a micro batch, and micro batches of a step.
pub const MOST_SEQUENCES: u64 = 1 << 20;
/// The highest rank of adapters.
pub const MOST_RANK: u64 = 1 << 16;
/// The most GPUs that share a sequence.
pub(crate) const MOST_SEQUENCE_RANKS: u64 = 1 << 12;
const MOST_SHARDS: u64 = 1 << 20;
/// The most images of a sequence.
pub(crate) const MOST_IMAGES: u64 = 1 << 10;
/// The most pixels of an image.
pub(crate) const MOST_PIXELS: u64 = 1 << 32;

/// How a model is trained. What is not said stays open, for a job or a config to say; the methods give the defaults.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Training"))]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Set the tokens per sequence, such as `4096` or `128k` (k = 1024) [default: 2048]
    #[serde(deserialize_with = "tokens::deserialize")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = tokens::parse,
        visible_alias = "max-seq-length", alias = "max-length"))]
    pub seq_len: Option<u64>,
    /// Set the tokens per target sequence of an encoder-decoder model
    #[serde(deserialize_with = "tokens::deserialize")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = tokens::parse))]
    pub target_len: Option<u64>,
    /// Set the size of every image in pixels, such as `1024x768`; `none` for text only; if omitted, 512x512 for a vision model
    #[serde(deserialize_with = "size::word")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WxH"))]
    pub image: Option<ImageChoice>,
    /// Set the number of images per sequence [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MOST_IMAGES)))]
    pub images_per_sample: Option<u64>,
    /// Reduce larger images to this many pixels, as the image processor does (its `max_pixels`); if omitted, no limit
    #[cfg_attr(feature = "clap", arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MOST_PIXELS)))]
    pub max_pixels: Option<u64>,
    /// Freeze these parts, separated by commas; with LoRA, they get no adapters
    #[serde(deserialize_with = "name::parts")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PARTS", value_delimiter = ','))]
    pub freeze: Vec<PartName>,
    /// Set the micro-batch size: sequences per GPU and forward pass; if omitted, the value in the config, or 1
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = sequences(),
        visible_alias = "per-device-train-batch-size", alias = "micro-batch-size"))]
    pub micro_batch: Option<u64>,
    /// Set the gradient accumulation steps: micro-batches per optimizer step; if omitted, the value in the config, or 1
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = sequences(),
        visible_alias = "gradient-accumulation-steps"))]
    pub grad_accum: Option<u64>,
    /// Choose the parameters to train [default: full]
    #[cfg_attr(feature = "clap", arg(long, value_name = "METHOD"))]
    pub method: Option<MethodName>,
    /// Set the format of a QLoRA base model; if omitted, the format in the model's config.json, or nf4
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT"))]
    pub quantization: Option<Quantization>,
    /// Set the rank of the LoRA adapters [default: 16]
    #[cfg_attr(feature = "clap", arg(long, value_name = "R",
        value_parser = clap::value_parser!(u64).range(1..=MOST_RANK)))]
    pub lora_rank: Option<u64>,
    /// Add adapters to these modules, separated by commas; if omitted, to every linear layer
    #[serde(deserialize_with = "size::list")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAMES", value_delimiter = ','))]
    pub lora_targets: Vec<String>,
    /// Recompute every layer in the backward pass (gradient checkpointing) [default: false]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", visible_alias = "gradient-checkpointing"))]
    pub grad_checkpointing: Option<bool>,
    /// Set the attention implementation [default: auto]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORM"))]
    pub attention: Option<Attention>,
    /// Never store all logits at once: use the fused loss of Liger (`yes`) or TRL (`trl`), or one of DeepSpeed's tiled losses [default: no]
    #[serde(deserialize_with = "name::fused_loss")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHETHER", num_args = 0..=1,
        require_equals = true, default_missing_value = "yes"))]
    pub fused_loss: Option<FusedLoss>,
    /// Set the number of shards for DeepSpeed's tiled losses; if omitted, enough that the fp32 logits of one shard need at most 1 GiB
    #[cfg_attr(feature = "clap", arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MOST_SHARDS)))]
    pub loss_shards: Option<u64>,
    /// Use all Liger kernels: fused loss, norms, rotary embeddings and gated activations [default: false]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true"))]
    pub liger: Option<bool>,
    /// Share each sequence between this many GPUs (sequence parallelism with DeepSpeed's Ulysses) [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", visible_alias = "sequence-parallel-size",
        value_parser = clap::value_parser!(u64).range(1..=MOST_SEQUENCE_RANKS)))]
    pub sequence_parallel: Option<u64>,
    /// Compute feed-forward layers in tiles (DeepSpeed's TiledMLP) [default: false]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true"))]
    pub tiled_mlp: Option<bool>,
    /// Offload activation checkpoints to host memory; turns on gradient checkpointing [default: false]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true"))]
    pub activation_offload: Option<bool>,
    /// Use expandable segments in PyTorch's allocator (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) [default: false]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true"))]
    pub expandable_segments: Option<bool>,
    /// Use this optimizer if the config does not name one [default: adamw]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub optimizer: Option<Optimizer>,
    /// Choose how ranks load the model; if omitted, partitioned in stage 3 (zero.Init), the whole model on every rank in other stages
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW"))]
    pub load: Option<Load>,
    /// What runs it.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub software: Software,
}

#[cfg(feature = "clap")]
fn sequences() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=MOST_SEQUENCES)
}

impl Training {
    /// Tokens per sequence if nobody says how many.
    pub const SEQ_LEN: u64 = 2048;
    /// The rank of adapters if nobody says which.
    pub const LORA_RANK: u64 = 16;

    /// Tokens per sequence.
    pub fn seq_len(&self) -> u64 {
        self.seq_len.unwrap_or(Self::SEQ_LEN)
    }

    /// The images of every sequence of a model that sees.
    pub fn images(&self) -> Option<Images> {
        let size = match self.image.unwrap_or_default() {
            ImageChoice::None => return None,
            ImageChoice::Size(size) => size,
        };
        let count = self.images_per_sample.unwrap_or(1);
        Some(Images::PerSequence { count, size, max_pixels: self.max_pixels })
    }

    /// A model with the parts frozen that are not trained.
    pub(crate) fn freeze(&self, model: &Model) -> Model {
        // Adapters freeze everything else by themselves.
        let parts = self.freeze.iter().filter(|_| self.method() == MethodName::Full);
        parts.fold(model.clone(), |model, part| model.freeze_part((*part).into()))
    }

    /// Parameters to train.
    pub fn method(&self) -> MethodName {
        self.method.unwrap_or_default()
    }

    /// Rank of the adapters.
    pub fn lora_rank(&self) -> u64 {
        self.lora_rank.unwrap_or(Self::LORA_RANK)
    }

    /// Whether layers are recomputed in the backward pass.
    pub fn grad_checkpointing(&self) -> bool {
        self.grad_checkpointing.unwrap_or_default() || self.activation_offload()
    }

    /// GPUs that share a sequence.
    pub fn sequence_parallel(&self) -> u64 {
        self.sequence_parallel.unwrap_or(1)
    }

    /// Whether checkpoints wait on the host.
    pub fn activation_offload(&self) -> bool {
        self.activation_offload.unwrap_or_default()
    }

    fn long_context(&self) -> LongContext {
        LongContext {
            sequence_ranks: self.sequence_parallel(),
            checkpoints: match self.activation_offload() {
                true => Checkpoints::OnHost,
                false => Checkpoints::Counted,
            },
            mlp_tiles: match self.tiled_mlp.unwrap_or_default() {
                true => MlpTiles::Auto,
                false => MlpTiles::Whole,
            },
        }
    }

    /// Attention implementation.
    pub fn attention(&self) -> Attention {
        self.attention.unwrap_or_default()
    }

    /// Whether projection and cross entropy are one kernel; Liger makes them one.
    pub fn fused_loss(&self) -> FusedLoss {
        let by_liger = if self.liger() { FusedLoss::Yes } else { FusedLoss::default() };
        self.fused_loss.unwrap_or(by_liger)
    }

    fn loss_shards(&self) -> LossShards {
        self.loss_shards.map_or(LossShards::Gibibyte, LossShards::Count)
    }

    /// Whether all kernels of Liger are used.
    pub fn liger(&self) -> bool {
        self.liger.unwrap_or_default()
    }

    /// The optimizer, if the config names none.
    pub fn optimizer(&self) -> Optimizer {
        self.optimizer.unwrap_or_default()
    }

    /// The recipe that the memory model knows.
    ///
    /// # Errors
    ///
    /// If a number makes no sense.
    pub fn recipe(&self) -> Result<Recipe, OutOfRange> {
        within("seq_len", self.seq_len(), 1, MOST_TOKENS)?;
        within("target_len", self.target_len.unwrap_or(1), 1, MOST_TOKENS)?;
        within("micro_batch", self.micro_batch.unwrap_or(1), 1, MOST_SEQUENCES)?;
        within("grad_accum", self.grad_accum.unwrap_or(1), 1, MOST_SEQUENCES)?;
        within("lora_rank", self.lora_rank(), 1, MOST_RANK)?;
        within("images_per_sample", self.images_per_sample.unwrap_or(1), 1, MOST_IMAGES)?;
        within("max_pixels", self.max_pixels.unwrap_or(1), 1, MOST_PIXELS)?;
        within("loss_shards", self.loss_shards.unwrap_or(1), 1, MOST_SHARDS)?;
        within("sequence_parallel", self.sequence_parallel(), 1, MOST_SEQUENCE_RANKS)?;
        Ok(Recipe {
            method: self.trained(),
            target: self.target_len,
            images: self.images(),
            checkpointing: self.grad_checkpointing(),
            attention: match self.attention() {
                Attention::Auto => AttentionForm::AsModel,
                Attention::Eager => AttentionForm::Eager,
                Attention::Sdpa | Attention::Flash => AttentionForm::Flash,
            },
            loss: match self.fused_loss() {
                FusedLoss::Yes => LossHead::Fused,
                FusedLoss::Trl => LossHead::Tiled,
                FusedLoss::SequenceTiled => LossHead::SequenceTiled(self.loss_shards()),
                FusedLoss::TiledFused => LossHead::TiledFused(self.loss_shards()),
                FusedLoss::No | FusedLoss::Either => LossHead::Model,
            },
            loading: self.load.map(|load| match load {
                Load::Partitioned => Loading::Partitioned,
                Load::Whole => Loading::Whole(ElementSize::Two),
            }),
            optimizer: match self.optimizer() {
                // Fused AdamW is what the Trainer takes by itself.
                Optimizer::Adamw => BaseOptimizer::FusedAdam,
                Optimizer::Adamw8bit => BaseOptimizer::EightBitAdam,
                Optimizer::Adafactor => BaseOptimizer::Adafactor,
                Optimizer::Lion => BaseOptimizer::Lion,
                Optimizer::Sgd => BaseOptimizer::Sgd,
            },
            layer_kernels: match self.liger() {
                true => LayerKernels::Liger,
                false => LayerKernels::Model,
            },
            expandable_segments: self.expandable_segments.unwrap_or_default(),
            long_context: self.long_context(),
            ..Recipe::full(self.seq_len())
        })
    }

    /// The same with what the software says.
    pub(crate) fn recipe_with_software(&self) -> Result<Recipe, OutOfRange> {
        Ok(self.software.recipe(self.recipe()?))
    }

    fn trained(&self) -> Method {
        let lora = || {
            let without = self.freeze.iter().map(|part| (*part).into()).collect();
            let lora = Lora { without, ..Lora::new(self.lora_rank()) };
            // PEFT's own word for what is meant if nobody names any.
            if self.lora_targets.is_empty() || self.lora_targets == ["all-linear"] {
                return lora.on_all_linear();
            }
            let names: Vec<&str> = self.lora_targets.iter().map(String::as_str).collect();
            lora.on(&names)
        };
        match self.method() {
            MethodName::Full => Method::Full,
            MethodName::Lora => Method::Lora(lora()),
            MethodName::Qlora => Method::QLora { lora: lora(), base: self.quantization.map(base) },
        }
    }
}

fn base(quantization: Quantization) -> QuantizedBase {
    match quantization {
        Quantization::Nf4 => BaseFormat::FourBit(ScaleStorage::DoubleQuantized),
        Quantization::Nf4Plain => BaseFormat::FourBit(ScaleStorage::Plain),
        Quantization::Int8 => BaseFormat::Int8,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_unsaid_and_the_old_ways_to_say_it_are_read() {
        let read = |text: &str| serde_json::from_str::<Training>(text).expect("a training");
        let nothing =
            r#"{"seq_len": null, "method": null, "lora_targets": null, "fused_loss": null}"#;
        assert_eq!(read(nothing), Training::default());
        let said = read(r#"{"seq_len": "4k", "grad_checkpointing": true, "fused_loss": true}"#);
        assert_eq!(said.seq_len(), 4096);
        assert!(said.grad_checkpointing());
        assert_eq!(said.fused_loss, Some(FusedLoss::Yes));
    }
}
