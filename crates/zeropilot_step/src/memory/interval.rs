//! How far published runs lay from what was predicted for them: `knowledge/field/interval.json`, which
//! `zeropilot_accuracy` writes.

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_cluster::OwnRun;
use zeropilot_units::{Bytes, Estimate};

use crate::conformal::{Factors, OwnRuns, with_own};

/// Runs whose predictions err alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Weights in 16 or 32 bits, trained or with adapters.
    Full,
    /// Adapters on a quantized base; the published runs have four bits.
    FourBit,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 2] = [Self::Full, Self::FourBit];

    /// That of a base which is quantized, or not.
    pub fn of(is_quantized: bool) -> Self {
        if is_quantized { Self::FourBit } else { Self::Full }
    }

    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FourBit => "four_bit",
        }
    }

    /// What published runs say of it.
    pub fn interval(self) -> Interval {
        let groups = &FILE.groups;
        *groups.iter().find(|interval| interval.group == self).expect("a test reads every group")
    }

    /// The same with the user's own runs.
    pub(super) fn interval_with(self, own: &[OwnRun]) -> Interval {
        let is_four_bit = self == Self::FourBit;
        let own = own.iter().filter(|run| run.is_four_bit == is_four_bit);
        let ratios: Vec<f64> = own.filter_map(|run| run.memory).collect();
        let published = self.interval();
        let (Factors { low, high }, own) =
            with_own(Factors { low: published.low, high: published.high }, &ratios);
        Interval { low, high, own, ..published }
    }
}

/// Bounds of measured over predicted memory, and what they rest on.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Interval {
    group: Group,
    low: f64,
    high: f64,
    /// Published runs it rests on.
    pub rows: u64,
    /// Sources of those.
    pub sources: u64,
    /// Runs within bounds that come from all other sources.
    pub inside: u64,
    /// Runs below the upper of those bounds.
    pub below: u64,
    /// What the user's own runs have to do with them.
    #[serde(skip)]
    pub own: Option<OwnRuns>,
}

impl Interval {
    /// A prediction with its bounds.
    pub fn around(&self, expected: Bytes) -> Estimate {
        let of = |factor: f64| Bytes::whole(expected.0 as f64 * factor);
        Estimate::new(of(self.low), expected, of(self.high))
    }
}

#[derive(Debug, Deserialize)]
struct File {
    groups: Vec<Interval>,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("field/interval.json") };
    serde_json::from_str(text).expect("a test reads the embedded file")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_bounds_around_its_prediction() {
        for group in Group::ALL {
            let interval = group.interval();
            let bounds = interval.around(Bytes(1000));
            assert!(bounds.low() <= Bytes(1000) && bounds.high() > Bytes(1000), "{group:?}");
            assert!(interval.inside <= interval.below && interval.below <= interval.rows);
        }
    }
}
