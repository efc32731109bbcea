//! The words people choose from.

use serde::Deserialize;

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

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum NumberFormat {
    /// 16 bit
    #[default]
    Bf16,
    /// 16 bit with loss scale
    Fp16,
    /// 32 bit
    Fp32,
}

impl NumberFormat {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp32 => "fp32",
        }
    }
}

/// What is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum MethodName {
    /// Everything
    #[default]
    Full,
    /// Adapters
    Lora,
    /// Adapters on a base in four bits
    Qlora,
}

/// The form of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// What the model takes by itself
    #[default]
    Auto,
    /// Written out, scores kept
    Eager,
    /// PyTorch's fused kernels
    Sdpa,
    /// FlashAttention
    Flash,
}

/// Whether the loss is fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum FusedLoss {
    /// It is not.
    #[default]
    No,
    /// It is.
    Yes,
    /// Whichever is better.
    Either,
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

/// The optimizer of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW
    #[default]
    Adamw,
    /// AdamW of bitsandbytes with eight-bit states
    Adamw8bit,
    /// Adafactor
    Adafactor,
    /// Lion
    Lion,
    /// SGD without momentum
    Sgd,
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
