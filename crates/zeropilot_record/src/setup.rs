//! What an attempt runs with.

use serde::{Deserialize, Serialize};

/// Where states that leave the GPU are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Offload {
    /// They stay on the GPU.
    #[default]
    None,
    /// In host memory.
    Cpu,
    /// On a disk.
    Nvme,
}

/// What decides how much memory a config needs, under the names that `zeropilot plan --json` uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strategy {
    /// The ZeRO stage.
    pub stage: u64,
    /// Where optimizer states are kept.
    #[serde(default)]
    pub offload_optimizer: Offload,
    /// Where weights are kept.
    #[serde(default)]
    pub offload_param: Offload,
    /// Samples per GPU and forward pass, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub micro_batch: Option<u64>,
    /// Micro-batches per update, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gradient_accumulation_steps: Option<u64>,
}

/// What an attempt runs with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setup {
    /// The command as given.
    #[default]
    AsGiven,
    /// A config that needs less memory.
    Strategy(Strategy),
    /// Words of a record from before this was data; empty for the command as given.
    Text(String),
}

impl Setup {
    /// Whether nothing was changed.
    pub fn is_as_given(&self) -> bool {
        match self {
            Self::AsGiven => true,
            Self::Strategy(_) => false,
            Self::Text(text) => text.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_reads_back_and_plain_texts_still_read() {
        let offload_optimizer = Offload::Cpu;
        let strategy = Strategy { stage: 3, offload_optimizer, ..Strategy::default() };
        let text = Setup::Text("ZeRO-3".to_owned());
        for setup in [Setup::AsGiven, Setup::Strategy(strategy), text] {
            let json = serde_json::to_string(&setup).expect("JSON");
            assert_eq!(serde_json::from_str::<Setup>(&json).expect(&json), setup);
        }
    }
}
