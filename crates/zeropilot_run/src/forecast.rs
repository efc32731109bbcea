//! What a config was predicted to need, against what was measured.
//!
//! Who predicts is not known here: fronts hand in a [`Predict`]. What is known is how a prediction and a measurement are
//! read together: which term was larger, and which config would fit given that.

use serde_json::{Map, Value};
use zeropilot_record::{Phase, Term};

use crate::fallbacks::BatchArguments;

/// The peak of a rank in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhasePeak {
    /// The phase.
    pub phase: Phase,
    /// Bytes of a rank, in the memory that holds its tensors.
    pub bytes: u64,
    /// What they are, the largest first.
    pub terms: Vec<Term>,
}

/// What a config is predicted to need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// Phase by phase.
    pub phases: Vec<PhasePeak>,
    /// The module or parameter nearest to the peak, if it is known.
    pub near: Option<String>,
    /// Bytes of the host that all ranks of this machine need together.
    pub host: u64,
}

/// Who predicts.
pub trait Predict {
    /// What a config needs; `None` if that is not known.
    fn forecast(&self, config: &Map<String, Value>, batch: BatchArguments) -> Option<Forecast>;
}

/// What was seen of a rank that ran out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Measured {
    /// The rank, if it is known.
    pub(crate) rank: Option<u32>,
    /// Bytes it had.
    pub(crate) reached: u64,
    /// Bytes it asked for when it was refused; 0 if it was killed.
    pub(crate) wanted: u64,
    /// When, if the log tells.
    pub(crate) phase: Option<Phase>,
    /// Whether a step was made before.
    pub(crate) is_training: bool,
}

impl Forecast {
    /// The most of all phases.
    pub(crate) fn peak(&self) -> u64 {
        self.fullest().map_or(0, |peak| peak.bytes)
    }

    /// The fullest of all phases.
    pub fn fullest(&self) -> Option<&PhasePeak> {
        self.phases.iter().max_by_key(|peak| peak.bytes)
    }

    fn at(&self, phase: Phase) -> Option<&PhasePeak> {
        self.phases.iter().find(|peak| peak.phase == phase)
    }

    /// The phase to compare a measurement with: its own, or the fullest. What is saved is what is held after a step.
    pub(crate) fn compared(&self, measured: &Measured) -> Option<&PhasePeak> {
        let phase = match measured.phase {
            Some(Phase::Saving) => Some(Phase::Step),
            phase => phase,
        };
        phase.and_then(|phase| self.at(phase)).or_else(|| self.fullest())
    }

    /// Whether it fits where the other did not, if both are off by the same factor: in the phase in which the other
    /// failed, which needed at least `reached + wanted` and could have `reached`.
    pub(crate) fn fits_where(&self, other: &Self, measured: &Measured) -> bool {
        let bytes = |forecast: &Self| {
            let peak = measured.phase.and_then(|phase| forecast.at(phase));
            peak.or_else(|| forecast.fullest()).map_or(0, |peak| u128::from(peak.bytes))
        };
        let scaled = bytes(self) * u128::from(measured.needed().max(1));
        let could_have = bytes(other) * u128::from(measured.reached);
        // Killed in the middle of growing: how much more it needed is not known, so more than a hair must be saved.
        let hair = if measured.wanted == 0 { could_have / 50 } else { 0 };
        scaled <= could_have - hair
    }
}

impl Measured {
    /// Bytes it needed at least.
    pub(crate) fn needed(&self) -> u64 {
        self.reached.saturating_add(self.wanted)
    }

    /// The term that was larger than predicted. Weights, gradients and optimizer states follow from the config and
    /// cannot be; what is larger is what depends on the data, or what is only there for a moment. Without a word on the
    /// phase, and before the first step, it may be either.
    pub(crate) fn larger(&self, peak: &PhasePeak) -> Option<&'static str> {
        let is_clear = self.phase.is_some() || self.is_training;
        (is_clear && self.needed() > peak.bytes).then_some(match peak.phase {
            Phase::Loading => "loading",
            Phase::Forward | Phase::Backward => "activations",
            Phase::Step | Phase::Saving => "temporaries",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(bytes: u64) -> Forecast {
        let peak = PhasePeak { phase: Phase::Backward, bytes, terms: Vec::new() };
        Forecast { phases: vec![peak], ..Forecast::default() }
    }

    #[test]
    fn a_fallback_must_fit_with_the_error_that_was_measured() {
        // Predicted 10, needed 12 + 8 = 20 and had 12: everything takes twice what is predicted, so 6 is the most.
        let measured = Measured { reached: 12, wanted: 8, ..Measured::default() };
        let failed = forecast(10);
        assert!(forecast(6).fits_where(&failed, &measured));
        assert!(!forecast(7).fits_where(&failed, &measured));
    }

    #[test]
    fn after_a_kill_at_least_a_fiftieth_must_be_saved() {
        let measured = Measured { reached: 1200, wanted: 0, ..Measured::default() };
        let failed = forecast(1000);
        assert!(forecast(980).fits_where(&failed, &measured));
        assert!(!forecast(990).fits_where(&failed, &measured));
        assert!(!forecast(1000).fits_where(&failed, &measured));
    }

    #[test]
    fn what_was_larger_is_what_the_config_does_not_decide() {
        let peak = &forecast(10).phases[0];
        let measured = |reached| Measured { reached, is_training: true, ..Measured::default() };
        assert_eq!(measured(11).larger(peak), Some("activations"));
        assert_eq!(measured(10).larger(peak), None);
        let before_a_step = Measured { is_training: false, ..measured(11) };
        assert_eq!(before_a_step.larger(peak), None);
    }
}
