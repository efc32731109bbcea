//! Whether it fits.

use serde::Serialize;
use zeropilot_cluster::Cluster;
use zeropilot_step::memory::Answer;
use zeropilot_text::{Language, Text};
use zeropilot_units::Estimate;

/// How a need compares with what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Verdict"))]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Even the most fits, and leaves headroom.
    Fits,
    /// Even the most fits, but leaves little.
    LowHeadroom,
    /// The most does not fit, the least may.
    MayNotFit,
    /// Not even the least fits.
    DoesNotFit,
}

/// How a run fits into its machines, GPU and host, as far as it is known what they have: the worse of both.
pub fn fit_of(answer: &Answer, cluster: &Cluster) -> Option<Fit> {
    let device = cluster.capacity().map(|capacity| fit(answer.device(), capacity.bytes));
    let host = cluster.host.ram.map(|ram| fit(answer.node(), Estimate::exact(ram)));
    device.max(host)
}

/// How `need` compares with `capacity`.
pub fn fit(need: Estimate, capacity: Estimate) -> Fit {
    if need.high() <= capacity.expected() {
        let is_sure = need.leaves_headroom(capacity.expected()) && need.high() <= capacity.low();
        if is_sure { Fit::Fits } else { Fit::LowHeadroom }
    } else if need.low() <= capacity.high() {
        Fit::MayNotFit
    } else {
        Fit::DoesNotFit
    }
}

impl Fit {
    /// Whether even the most fits.
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Fits | Self::LowHeadroom)
    }

    pub(crate) fn words(self, language: Language) -> &'static str {
        match self {
            Self::Fits => Text::new("fits", "放得下"),
            Self::LowHeadroom => Text::new("fits, low headroom", "放得下，余量小"),
            Self::MayNotFit => Text::new("may not fit", "可能放不下"),
            Self::DoesNotFit => Text::new("does not fit", "放不下"),
        }
        .get(language)
    }

    pub(crate) fn style(self) -> &'static str {
        match self {
            Self::Fits => "\u{1b}[1;32m",
            Self::LowHeadroom | Self::MayNotFit => "\u{1b}[1;33m",
            Self::DoesNotFit => "\u{1b}[1;31m",
        }
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_units::Bytes;

    use super::*;

    #[test]
    fn the_verdict_is_no_surer_than_the_numbers() {
        let need = |low, expected, high| Estimate::new(Bytes(low), Bytes(expected), Bytes(high));
        let card = need(98, 100, 102);
        // A twentieth of 100 is 5.
        assert_eq!(fit(need(80, 90, 95), card), Fit::Fits);
        assert_eq!(fit(need(80, 90, 96), card), Fit::LowHeadroom);
        assert_eq!(fit(need(80, 90, 100), card), Fit::LowHeadroom);
        assert_eq!(fit(need(80, 90, 101), card), Fit::MayNotFit);
        assert_eq!(fit(need(95, 101, 120), card), Fit::MayNotFit);
        assert_eq!(fit(need(103, 110, 120), card), Fit::DoesNotFit);
    }
}
