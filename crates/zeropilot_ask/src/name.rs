//! The words people choose from.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use zeropilot_job::TiledLoss;
pub use zeropilot_job::{
    Attention, MethodName, NumberFormat, Optimizer, Quantization, ReferenceName, RolloutName,
    TaskName, TrainerName,
};
use zeropilot_model::PartKind;
use zeropilot_model::image::{BadImageSize, ImageSize};

/// What is kept on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// Nothing
    #[default]
    None,
    /// Optimizer states
    Optimizer,
    /// Optimizer states and parameters (stage 3)
    All,
}

/// Whether the loss is fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum FusedLoss {
    /// Compute all logits at once
    #[default]
    No,
    /// Use Liger's fused loss
    Yes,
    /// Use the fused head of TRL's SFTTrainer (since 1.15), which computes logits in tiles
    Trl,
    /// Use DeepSpeed's `sequence_tiled_compute`, which computes logits in shards and again in the backward pass
    SequenceTiled,
    /// Use DeepSpeed's `TiledFusedLogitsLoss`, which computes logits and their gradients in shards in the forward pass
    TiledFused,
    /// Let `plan` choose
    Either,
}

impl From<TiledLoss> for FusedLoss {
    fn from(loss: TiledLoss) -> Self {
        match loss {
            TiledLoss::SequenceTiled => Self::SequenceTiled,
            TiledLoss::TiledFused => Self::TiledFused,
        }
    }
}

/// Programs also say `true` and `false`.
pub(crate) fn fused_loss<'de, D>(from: D) -> Result<Option<FusedLoss>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Switch(bool),
        Word(FusedLoss),
    }
    Ok(Option::<Written>::deserialize(from)?.map(|written| match written {
        Written::Switch(true) => FusedLoss::Yes,
        Written::Switch(false) => FusedLoss::No,
        Written::Word(word) => word,
    }))
}

/// What the best way is best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Lowest time per sequence.
    #[default]
    Time,
    /// Lowest GPU time per sequence, on fewer GPUs if that is cheaper.
    Cost,
    /// Most free GPU memory.
    Memory,
}

/// How the model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Under zero.Init: no rank loads the whole model
    Partitioned,
    /// Every rank loads the whole model in host memory
    Whole,
}

/// accelerate's precisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit precision
    No,
    /// 16-bit precision with loss scaling
    Fp16,
    /// 16-bit precision
    Bf16,
    /// 8-bit matrix products, otherwise bf16
    Fp8,
}

/// What a model that sees is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageChoice {
    /// Nothing: text alone.
    None,
    /// Images of this size.
    Size(ImageSize),
}

impl Default for ImageChoice {
    fn default() -> Self {
        Self::Size(ImageSize { width: 512, height: 512 })
    }
}

impl FromStr for ImageChoice {
    type Err = BadImageSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            size => size.parse().map(Self::Size),
        }
    }
}

impl fmt::Display for ImageChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Size(size) => size.fmt(formatter),
        }
    }
}

impl Serialize for ImageChoice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum PartName {
    /// Vision tower; for Qwen-VL, including its merger
    Vision,
    /// Audio tower
    Audio,
    /// Projector between a tower and the language model
    Projector,
    /// The language model
    Language,
}

impl From<PartName> for PartKind {
    fn from(name: PartName) -> Self {
        match name {
            PartName::Vision => Self::Vision,
            PartName::Audio => Self::Audio,
            PartName::Projector => Self::Projector,
            PartName::Language => Self::Language,
        }
    }
}

/// A list of parts, where `null` is as good as none.
pub(crate) fn parts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PartName>, D::Error> {
    Option::<Vec<PartName>>::deserialize(from)
        .map(Option::unwrap_or_default)
        .map_err(D::Error::custom)
}
