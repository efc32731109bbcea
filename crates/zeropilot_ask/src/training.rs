//! How a model is trained, as people say it.

use serde::Deserialize;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::ScaleStorage;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{Method, Recipe};
use zeropilot_step::tape::AttentionForm;
use zeropilot_step::zero::{BaseOptimizer, Loading};
use zeropilot_units::ElementSize;

use crate::name::{Attention, Load, MethodName, Optimizer};
use crate::range::{OutOfRange, within};

/// The most tokens of a sequence.
pub const MOST_TOKENS: u64 = 1 << 24;
/// The most sequences of a micro batch, and micro batches of a step.
pub const MOST_SEQUENCES: u64 = 1 << 20;
/// The highest rank of adapters.
pub const MOST_RANK: u64 = 1 << 16;

/// How a model is trained.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Tokens of a sequence.
    pub seq_len: u64,
    /// Tokens of a target sequence of a model with encoder and decoder.
    pub target_len: Option<u64>,
    /// Sequences each GPU takes at once; otherwise what the config says, or 1.
    pub micro_batch: Option<u64>,
    /// Micro batches per optimizer step; otherwise what the config says, or 1.
    pub grad_accum: Option<u64>,
    /// What is trained.
    pub method: MethodName,
    /// Rank of the adapters.
    pub lora_rank: u64,
    /// Modules with an adapter; if none is named, every linear layer.
    pub lora_targets: Vec<String>,
    /// Recompute every layer in backward.
    pub grad_checkpointing: bool,
    /// The form of attention.
    pub attention: Attention,
    /// Projection and cross entropy in one kernel.
    pub fused_loss: bool,
    /// The optimizer, where the config names none.
    pub optimizer: Optimizer,
    /// How the model is loaded.
    pub load: Option<Load>,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            seq_len: 2048,
            target_len: None,
            micro_batch: None,
            grad_accum: None,
            method: MethodName::Full,
            lora_rank: 16,
            lora_targets: Vec::new(),
            grad_checkpointing: false,
            attention: Attention::Auto,
            fused_loss: false,
            optimizer: Optimizer::Adamw,
            load: None,
        }
    }
}

impl Training {
    /// The recipe that the memory model knows.
    ///
    /// # Errors
    ///
    /// If a number makes no sense.
    pub fn recipe(&self) -> Result<Recipe, OutOfRange> {
        within("seq_len", self.seq_len, 1, MOST_TOKENS)?;
        within("target_len", self.target_len.unwrap_or(1), 1, MOST_TOKENS)?;
        within("micro_batch", self.micro_batch.unwrap_or(1), 1, MOST_SEQUENCES)?;
        within("grad_accum", self.grad_accum.unwrap_or(1), 1, MOST_SEQUENCES)?;
        within("lora_rank", self.lora_rank, 1, MOST_RANK)?;
        Ok(Recipe {
            method: self.method(),
            target: self.target_len,
            checkpointing: self.grad_checkpointing,
            attention: match self.attention {
                Attention::Auto => AttentionForm::AsModel,
                Attention::Eager => AttentionForm::Eager,
                Attention::Sdpa | Attention::Flash => AttentionForm::Flash,
            },
            loss: if self.fused_loss { LossHead::Fused } else { LossHead::Model },
            loading: self.load.map(|load| match load {
                Load::Partitioned => Loading::Partitioned,
                Load::Whole => Loading::Whole(ElementSize::Two),
            }),
            optimizer: match self.optimizer {
                // Fused AdamW is what the Trainer takes by itself.
                Optimizer::Adamw => BaseOptimizer::FusedAdam,
                Optimizer::Adamw8bit => BaseOptimizer::EightBitAdam,
                Optimizer::Adafactor => BaseOptimizer::Adafactor,
                Optimizer::Lion => BaseOptimizer::Lion,
                Optimizer::Sgd => BaseOptimizer::Sgd,
            },
            ..Recipe::full(self.seq_len)
        })
    }

    fn method(&self) -> Method {
        let lora = || {
            let lora = Lora::new(self.lora_rank);
            if self.lora_targets.is_empty() {
                return lora.on_all_linear();
            }
            let names: Vec<&str> = self.lora_targets.iter().map(String::as_str).collect();
            lora.on(&names)
        };
        match self.method {
            MethodName::Full => Method::Full,
            MethodName::Lora => Method::Lora(lora()),
            MethodName::Qlora => {
                Method::QLora { lora: lora(), scales: ScaleStorage::DoubleQuantized }
            }
        }
    }
}
