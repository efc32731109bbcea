//! Who runs the training loop.

use serde::Deserialize;

/// Who runs the training loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    /// The script calls `deepspeed.initialize` itself.
    #[serde(skip)]
    DeepSpeed,
    /// `transformers.Trainer`.
    HfTrainer,
    /// `accelerate.Accelerator`.
    Accelerate,
    /// TRL's trainers.
    Trl,
    /// LLaMA-Factory.
    #[serde(rename = "llamafactory")]
    LlamaFactory,
    /// axolotl.
    Axolotl,
    /// ms-swift.
    Swift,
}

impl Framework {
    /// Its name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "DeepSpeed",
            Self::HfTrainer => "HF Trainer",
            Self::Accelerate => "accelerate",
            Self::Trl => "TRL",
            Self::LlamaFactory => "LLaMA-Factory",
            Self::Axolotl => "axolotl",
            Self::Swift => "ms-swift",
        }
    }
}
