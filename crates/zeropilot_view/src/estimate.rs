//! Numbers with their bounds, as programs read them.

use serde::Serialize;
use zeropilot_step::time::Estimated;
use zeropilot_units::Estimate as Bytes;

/// Bytes with their bounds.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Estimate {
    low: u64,
    expected: u64,
    high: u64,
}

impl From<Bytes> for Estimate {
    fn from(bytes: Bytes) -> Self {
        Self { low: bytes.low().0, expected: bytes.expected().0, high: bytes.high().0 }
    }
}

/// Seconds, hours or money with their bounds.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Range {
    low: f64,
    expected: f64,
    high: f64,
}

impl Range {
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, expected: self.expected * factor, high: self.high * factor }
    }
}

impl From<[f64; 3]> for Range {
    fn from([low, expected, high]: [f64; 3]) -> Self {
        Self { low, expected, high }
    }
}

/// Seconds of a step.
impl From<&Estimated> for Range {
    fn from(time: &Estimated) -> Self {
        [time.best.total, time.expected.total, time.worst.total].into()
    }
}
