//! How far the activations of a stand-in are off, from recorded runs of real classes.
//!
//! The bounds are those of split conformal prediction. A family's distance is how far its error lies from the middle of
//! its class, as a ratio; the bounds reach as far as nine of ten families do, counting the one to come, and on neither
//! side more than a tenth beyond the farthest error there. A class of few families has the bounds of all together.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::class::StandInClass;

/// Bounds of a relative error: 0.1 says that the stand-in keeps a tenth more than the real model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorRange {
    /// The lowest error.
    pub low: f64,
    /// The highest error.
    pub high: f64,
}

impl ErrorRange {
    /// What the real model keeps for every byte that the stand-in keeps: the least and the most.
    pub fn real_per_predicted(self) -> (f64, f64) {
        (1.0 / (1.0 + self.high), 1.0 / (1.0 + self.low))
    }

    /// Whether an error is within the bounds.
    pub fn includes(self, error: f64) -> bool {
        (self.low..=self.high).contains(&error)
    }
}

/// The share of families that should lie within the bounds.
const SHARE: f64 = 0.9;

/// With fewer families than this, not even the largest of their distances holds for nine of ten.
const ENOUGH: usize = 9;

/// How far bounds may lie beyond every recorded error, as the logarithm of a ratio.
const BEYOND: f64 = 0.1;

/// Everything in `knowledge/models/stand_ins.json`.
#[derive(Debug, Deserialize)]
struct Recording {
    models: Vec<Recorded>,
}

/// A family whose real class was recorded, and its stand-in from the config alone and with tensor names.
#[derive(Debug, Deserialize)]
struct Recorded {
    model_type: String,
    config: Errors,
    names: Errors,
}

/// Relative errors of the bytes saved for backward and of those at the highest point.
#[derive(Debug, Deserialize)]
struct Errors {
    class: StandInClass,
    /// Without checkpointing.
    off: [f64; 2],
    /// With checkpointing.
    on: [f64; 2],
}

impl Errors {
    fn at_peak(&self, checkpointing: bool) -> f64 {
        let [_, peak] = if checkpointing { self.on } else { self.off };
        peak
    }
}

static RECORDING: LazyLock<Recording> = LazyLock::new(|| {
    serde_json::from_str(const { zeropilot_knowledge::text("models/stand_ins.json") })
        .expect("the embedded recording is generated in this form")
});

impl StandInClass {
    /// Bounds of the error of the activations at the highest point of a step.
    pub fn error(self, checkpointing: bool) -> ErrorRange {
        self.error_without(checkpointing, None)
    }

    /// The same as if one family had not been recorded.
    fn error_without(self, checkpointing: bool, left_out: Option<&str>) -> ErrorRange {
        let ratios = |class: Option<Self>| {
            let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for model in &RECORDING.models {
                for errors in [&model.config, &model.names] {
                    let is_counted = class.is_none_or(|class| class == errors.class);
                    if is_counted && left_out != Some(model.model_type.as_str()) {
                        let ratio = (1.0 + errors.at_peak(checkpointing)).ln();
                        ratios.entry(&model.model_type).or_default().push(ratio);
                    }
                }
            }
            ratios
        };
        let own = ratios(Some(self));
        bounds(&if own.len() < ENOUGH { ratios(None) } else { own })
    }
}

/// Bounds from the logarithms of predicted over real, by family.
fn bounds(ratios: &BTreeMap<&str, Vec<f64>>) -> ErrorRange {
    let mut all: Vec<f64> = ratios.values().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let middle = all.get(all.len() / 2).copied().unwrap_or(0.0);
    let farthest =
        |of: &Vec<f64>| of.iter().map(|ratio| (ratio - middle).abs()).fold(0.0, f64::max);
    let mut distances: Vec<f64> = ratios.values().map(farthest).collect();
    distances.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a short list"
    )]
    let place = (SHARE * (distances.len() + 1) as f64).ceil() as usize;
    let most = distances.get(place.saturating_sub(1)).or(distances.last()).copied().unwrap_or(0.0);
    // Distances count to both sides, but errors may lie on one of them.
    let low = all.first().map_or(0.0, |least| (middle - most).max(least - BEYOND));
    let high = all.last().map_or(0.0, |largest| (middle + most).min(largest + BEYOND));
    ErrorRange { low: low.exp() - 1.0, high: high.exp() - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every family is left out once and judged by the bounds of the others.
    #[test]
    fn nine_of_ten_families_lie_within_the_bounds_of_the_others() {
        let mut table: BTreeMap<(StandInClass, bool), (u32, u32)> = BTreeMap::new();
        for model in &RECORDING.models {
            for errors in [&model.config, &model.names] {
                for checkpointing in [false, true] {
                    let class = errors.class;
                    let range = class.error_without(checkpointing, Some(&model.model_type));
                    let (inside, all) = table.entry((class, checkpointing)).or_default();
                    *inside += u32::from(range.includes(errors.at_peak(checkpointing)));
                    *all += 1;
                }
            }
        }
        let (mut inside, mut all) = (0, 0);
        for ((class, checkpointing), (own_inside, own)) in &table {
            let ErrorRange { low, high } = class.error(*checkpointing);
            println!(
                "{class:?}, checkpointing {checkpointing}: {own_inside} of {own} within, now {low:+.2} … {high:+.2}"
            );
            inside += own_inside;
            all += own;
        }
        let share = f64::from(inside) / f64::from(all);
        println!("{} families: {inside} of {all}, {:.1} %", RECORDING.models.len(), 100.0 * share);
        assert!(share >= 0.9, "{share}");
    }

    #[test]
    fn every_class_has_bounds() {
        for class in StandInClass::ALL {
            for checkpointing in [false, true] {
                let range = class.error(checkpointing);
                assert!(-1.0 < range.low && range.low < range.high, "{class:?} {range:?}");
                let (least, most) = range.real_per_predicted();
                assert!(0.0 < least && least < most, "{class:?} {range:?}");
            }
        }
    }

    /// What is recorded of a state space on the PyTorch path is far above what a decoder keeps.
    #[test]
    fn a_state_space_keeps_more_than_its_stand_in() {
        let range = StandInClass::StateSpace.error(false);
        assert!(range.low < -0.8, "{range:?}");
    }
}
