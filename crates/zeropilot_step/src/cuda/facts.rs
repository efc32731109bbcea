//! `knowledge/cuda/cuda.json` as types.

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_units::{Bytes, Estimate};

/// A figure somebody printed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Observation {
    /// In MiB.
    pub mib: u64,
    /// On what.
    pub on: String,
    /// How it was read.
    pub how: String,
    /// Where it is printed.
    pub source: String,
}

/// Bounds, and what they rest on.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Bounds {
    low_mib: u64,
    expected_mib: u64,
    high_mib: u64,
    pub(super) observations: Vec<Observation>,
}

impl Bounds {
    pub(super) fn estimate(&self) -> Estimate {
        let mib = |amount: u64| Bytes(amount << 20);
        Estimate::new(mib(self.low_mib), mib(self.expected_mib), mib(self.high_mib))
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Context {
    pub(super) capabilities: Vec<String>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Library {
    Nccl,
    Rccl,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Number {
    Any,
    One,
    Two,
    More,
    Several,
}

impl Number {
    pub(super) fn covers(self, count: u64) -> bool {
        match self {
            Self::Any => true,
            Self::One => count == 1,
            Self::Two => count == 2,
            Self::More => count > 2,
            Self::Several => count > 1,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Communicator {
    pub(super) library: Library,
    pub(super) fast_link: Option<bool>,
    pub(super) nodes: Number,
    pub(super) ranks: Number,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

/// How many there are.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Count {
    pub(super) low: u64,
    pub(super) expected: u64,
    pub(super) high: u64,
    pub(super) source: String,
}

impl Count {
    /// So many, and `more` without doubt, of something that takes `each`.
    pub(super) fn of(&self, each: Estimate, more: u64) -> Estimate {
        Estimate::new(
            each.times(self.low + more).low(),
            each.times(self.expected + more).expected(),
            each.times(self.high + more).high(),
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MatrixLibrary {
    Cublas,
    Hipblas,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Workspace {
    pub(super) library: MatrixLibrary,
    pub(super) capabilities: Vec<String>,
    pub(super) bytes: u64,
    /// In earlier versions of PyTorch.
    pub(super) before: Option<u64>,
    pub(super) source: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Facts {
    pub(super) context: Vec<Context>,
    pub(super) communicator: Vec<Communicator>,
    pub(super) communicators: Count,
    pub(super) matrix_workspace: Vec<Workspace>,
    pub(super) matrix_workspace_handles: Count,
}

pub(super) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("cuda/cuda.json") };
    serde_json::from_str(text).expect("a test reads the embedded file")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_observation_lies_within_the_bounds_of_its_row() {
        let context = FACTS.context.iter().map(|row| &row.bounds);
        let bounds = context.chain(FACTS.communicator.iter().map(|row| &row.bounds));
        for row in bounds {
            assert!(row.low_mib <= row.expected_mib && row.expected_mib <= row.high_mib, "{row:?}");
            for seen in &row.observations {
                assert!((row.low_mib..=row.high_mib).contains(&seen.mib), "{seen:?}");
            }
        }
    }
}
