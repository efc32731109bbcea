//! The words people choose from to say how a model is trained.

use serde::{Deserialize, Serialize};

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum NumberFormat {
    /// 16-bit precision
    #[default]
    Bf16,
    /// 16-bit precision with loss scaling
    Fp16,
    /// 32-bit precision
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
    /// All parameters
    #[default]
    Full,
    /// Adapters
    Lora,
    /// Adapters on a quantized base model
    Qlora,
}

/// How the base of QLoRA is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Quantization {
    /// 4-bit NF4, double quantization
    #[default]
    Nf4,
    /// 4-bit NF4, scales in fp32
    Nf4Plain,
    /// 8-bit integers
    Int8,
}

/// The form of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// Default of the model
    #[default]
    Auto,
    /// Eager attention, which stores the scores
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
    /// AdamW of bitsandbytes with 8-bit states
    Adamw8bit,
    /// Adafactor
    Adafactor,
    /// Lion
    Lion,
    /// SGD without momentum
    Sgd,
}

/// What a model is trained for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum TaskName {
    /// Supervised fine-tuning or pre-training: prediction of the next token
    #[default]
    Sft,
    /// Preference between two answers, compared with a reference (TRL's DPOTrainer)
    Dpo,
    /// Answers labeled good or bad, compared with a reference (TRL's KTOTrainer)
    Kto,
    /// Preference without a reference (TRL's ORPOTrainer)
    Orpo,
    /// Preference without a reference (TRL's CPOTrainer, SimPO)
    Cpo,
    /// A reward model (TRL's RewardTrainer)
    Reward,
    /// Distillation from a teacher: KL divergence of fp32 logits in your own loop
    Distill,
    /// Distillation from a teacher (TRL's GKDTrainer)
    Gkd,
    /// Policy gradient over generated completions (TRL's GRPOTrainer)
    Grpo,
    /// Policy gradient over generated completions (TRL's RLOOTrainer)
    Rloo,
    /// Policy gradient with a value model and a reward model (TRL's PPOTrainer, to 1.12)
    Ppo,
}

impl TaskName {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Dpo => "dpo",
            Self::Kto => "kto",
            Self::Orpo => "orpo",
            Self::Cpo => "cpo",
            Self::Reward => "reward",
            Self::Distill => "distill",
            Self::Gkd => "gkd",
            Self::Grpo => "grpo",
            Self::Rloo => "rloo",
            Self::Ppo => "ppo",
        }
    }

    /// Whether a teacher is imitated.
    pub fn has_teacher(self) -> bool {
        matches!(self, Self::Distill | Self::Gkd)
    }

    /// Whether the trained model may be compared with a reference.
    pub fn compares(self) -> bool {
        matches!(self, Self::Dpo | Self::Kto | Self::Grpo | Self::Rloo | Self::Ppo)
    }

    /// Whether it learns from nothing but generated completions.
    pub fn learns_from_completions(self) -> bool {
        matches!(self, Self::Grpo | Self::Rloo | Self::Ppo)
    }

    /// Whether completions may be generated.
    pub fn generates(self) -> bool {
        self.learns_from_completions() || self == Self::Gkd
    }

    /// Whether prompt and completion are told apart.
    pub fn has_completions(self) -> bool {
        self.compares() || self.has_teacher()
    }
}

/// What the trained model is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceName {
    /// A frozen copy of the model on the same GPUs
    Copy,
    /// The model itself with its adapters disabled
    AdaptersOff,
    /// Log-probabilities computed before training (precompute_ref_log_probs)
    Precomputed,
    /// Nothing (beta 0)
    None,
}

/// What generates completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum RolloutName {
    /// The model's own `generate` on the same GPUs
    #[default]
    Generate,
    /// vLLM on the same GPUs (vllm_mode colocate)
    Vllm,
    /// A vLLM server on other GPUs
    Server,
    /// Nothing: the data set has the completions (GKD with lmbda 0)
    None,
}

/// Whose trainer computes the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum TrainerName {
    /// TRL, also as used by axolotl
    #[default]
    Trl,
    /// ms-swift: log-softmax of 16-bit logits, one sequence at a time
    Swift,
    /// LLaMA-Factory: 32-bit logits, one log-softmax over all of them
    #[cfg_attr(feature = "clap", value(name = "llamafactory"))]
    LlamaFactory,
}
