//! Which program will read the config, and which of its keys that program fills.

use std::fmt;
use std::str::FromStr;

use zeropilot_config::front_end::FrontEnd;

/// A program that trains with DeepSpeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Target {
    /// A script that calls `deepspeed.initialize` itself.
    #[default]
    DeepSpeed,
    /// `transformers.Trainer`.
    HfTrainer,
    /// A script around `accelerate.Accelerator`.
    Accelerate,
    /// ms-swift, which trains with the HF Trainer.
    Swift,
    /// LLaMA-Factory, which trains with the HF Trainer.
    LlamaFactory,
    /// axolotl, which trains with the HF Trainer.
    Axolotl,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::DeepSpeed,
        Self::HfTrainer,
        Self::Accelerate,
        Self::Swift,
        Self::LlamaFactory,
        Self::Axolotl,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "deepspeed",
            Self::HfTrainer => "hf-trainer",
            Self::Accelerate => "accelerate",
            Self::Swift => "swift",
            Self::LlamaFactory => "llamafactory",
            Self::Axolotl => "axolotl",
        }
    }

    /// Whose way of reading a config decides.
    pub fn front_end(self) -> FrontEnd {
        match self {
            Self::DeepSpeed => FrontEnd::DeepSpeed,
            Self::Accelerate => FrontEnd::Accelerate,
            Self::HfTrainer | Self::Swift | Self::LlamaFactory | Self::Axolotl => {
                FrontEnd::HfTrainer
            }
        }
    }

    /// Whether the HF Trainer fills, and compares with its arguments, what it knows.
    pub fn is_trainer(self) -> bool {
        self.front_end() == FrontEnd::HfTrainer
    }

    /// Whether somebody stands between the file and the engine, who replaces `"auto"`.
    pub fn fills_placeholders(self) -> bool {
        self.front_end() != FrontEnd::DeepSpeed
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no target's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("zeropilot does not write configs for `{0}`")]
pub struct UnknownTarget(pub String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|target| target.name() == name);
        known.ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}
