//! The words people choose from.

use serde::{Deserialize, Deserializer, Serialize};
pub use zeropilot_job::{Attention, MethodName, NumberFormat, Optimizer};

/// What is kept on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
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
#[serde(rename_all = "lowercase")]
pub enum FusedLoss {
    /// Compute whole logits
    #[default]
    No,
    /// Use Liger's fused loss
    Yes,
    /// Use TRL's own head, which its SFTTrainer has since 1.15: logits tile by tile
    Trl,
    /// Let `plan` choose
    Either,
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
    /// The least time for a sequence.
    #[default]
    Time,
    /// The least GPU time for a sequence, if need be on fewer GPUs.
    Cost,
    /// The most free memory.
    Memory,
}

/// How the model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Under zero.Init: never whole
    Partitioned,
    /// Every rank the whole model in host memory
    Whole,
}

/// accelerate's precisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bit
    No,
    /// 16 bit with loss scale
    Fp16,
    /// 16 bit
    Bf16,
    /// 8 bit on top of bf16
    Fp8,
}
