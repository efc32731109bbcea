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
    /// Even the most fits.
    Fits,
    /// The expectation fits, the most may not.
    Tight,
    /// The expectation does not fit, the least may.
    Doubtful,
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
    if need.high() <= capacity.low() {
        Fit::Fits
    } else if need.expected() <= capacity.expected() {
        Fit::Tight
    } else if need.low() <= capacity.high() {
        Fit::Doubtful
    } else {
        Fit::DoesNotFit
    }
}

impl Fit {
    /// Whether the expectation fits.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::Fits | Self::Tight)
    }

    pub(crate) fn words(self, language: Language) -> &'static str {
        match self {
            Self::Fits => Text::new("fits", "放得下"),
            Self::Tight => Text::new("fits, but tightly", "放得下，但很紧"),
            Self::Doubtful => Text::new("probably does not fit", "很可能放不下"),
            Self::DoesNotFit => Text::new("does not fit", "放不下"),
        }
        .get(language)
    }

    pub(crate) fn style(self) -> &'static str {
        match self {
            Self::Fits => "\u{1b}[1;32m",
            Self::Tight | Self::Doubtful => "\u{1b}[1;33m",
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
        assert_eq!(fit(need(80, 90, 97), card), Fit::Fits);
        assert_eq!(fit(need(80, 90, 99), card), Fit::Tight);
        assert_eq!(fit(need(95, 101, 120), card), Fit::Doubtful);
        assert_eq!(fit(need(103, 110, 120), card), Fit::DoesNotFit);
    }
}
