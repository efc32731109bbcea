//! The words people choose from to say how a model is trained.

use serde::{Deserialize, Serialize};

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum MethodName {
    /// Everything
    #[default]
    Full,
    /// Adapters
    Lora,
    /// Adapters on a quantized base
    Qlora,
}

/// How the base of QLoRA is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Quantization {
    /// Four bits, double quantization
    #[default]
    Nf4,
    /// Four bits, scales in fp32
    Nf4Plain,
    /// Eight bits
    Int8,
}

/// The form of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
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

/// The optimizer of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
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
