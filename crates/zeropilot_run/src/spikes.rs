//! Losses and gradient norms that jump, against what they lately were.
//!
//! What is usual is a median with its spread, which a jump itself hardly moves. The first steps of a training fall steeply, so
//! that nothing is said about them.

use std::collections::VecDeque;

use zeropilot_record::Jumped;

use crate::progress::Progress;

/// Values that say what is usual.
const KEPT: usize = 50;
/// Values before anything is called a jump.
const FEWEST: usize = 20;
/// A jump is at least this many spreads above the median, the spread being that of a normal distribution.
const SPREADS: f64 = 8.0;
const NORMAL: f64 = 1.4826;
/// And above it by at least this share of it.
const LOSS: f64 = 0.5;
const NORM: f64 = 9.0;
/// Losses in a row that are high before training is said to have been thrown back.
const LASTING: u32 = 3;
/// Steps until the next jump is worth a word.
const QUIET: u64 = 20;

/// The last values of a kind.
#[derive(Debug, Default)]
struct Lately(VecDeque<f64>);

impl Lately {
    /// Takes a value in; if it is a jump, what was usual and what would have been the most.
    fn take(&mut self, value: f64, share: f64) -> Option<(f64, f64)> {
        let known = (self.0.len() >= FEWEST).then(|| {
            let usual = median(self.0.iter().copied());
            let spread = NORMAL * median(self.0.iter().map(|one| (one - usual).abs()));
            (usual, usual + (SPREADS * spread).max(share * usual.abs()))
        });
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(value);
        known.filter(|(_, most)| value > *most)
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jump {
    pub(crate) what: Jumped,
    pub(crate) step: u64,
    pub(crate) value: f64,
    pub(crate) usual: f64,
}

/// Follows losses and norms.
#[derive(Debug, Default)]
pub(crate) struct Spikes {
    losses: Lately,
    norms: Lately,
    /// The step of the last jump of each that was told.
    told: [Option<u64>; 2],
    /// The last step whose loss was usual.
    good: u64,
    /// A loss that jumped and has not come back.
    high: Option<High>,
}

/// A loss that jumped.
#[derive(Debug, Clone, Copy)]
struct High {
    since: u64,
    /// What would have been usual at most.
    most: f64,
    /// Losses since then that are above it.
    count: u32,
}

/// Training that was thrown back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThrownBack {
    /// The first step with a high loss.
    pub(crate) since: u64,
    /// The last step with a usual one. The weights it was computed with are those of the step before.
    pub(crate) good: u64,
}

impl Spikes {
    /// Takes a line in; the jumps in it that are worth a word.
    pub(crate) fn read(&mut self, step: u64, progress: &Progress) -> Vec<Jump> {
        let mut jumps = Vec::new();
        let values =
            [(Jumped::Loss, progress.loss, LOSS), (Jumped::GradientNorm, progress.grad_norm, NORM)];
        for (index, (what, value, share)) in values.into_iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let lately = if what == Jumped::Loss { &mut self.losses } else { &mut self.norms };
            let jumped = lately.take(value, share);
            if what == Jumped::Loss {
                self.follow(step, value, jumped.map(|(_, most)| most));
            }
            let is_news = self.told[index].is_none_or(|told| step >= told + QUIET);
            if let Some((usual, _)) = jumped.filter(|_| is_news) {
                self.told[index] = Some(step);
                jumps.push(Jump { what, step, value, usual });
            }
        }
        jumps
    }

    fn follow(&mut self, step: u64, loss: f64, most: Option<f64>) {
        self.high = match self.high {
            Some(high) if loss > high.most => Some(High { count: high.count + 1, ..high }),
            Some(_) => None,
            None => most.map(|most| High { since: step, most, count: 1 }),
        };
        if self.high.is_none() {
            self.good = step;
        }
    }

    /// Once the loss has been high for long enough, since when.
    pub(crate) fn lasting(&self) -> Option<ThrownBack> {
        let high = self.high.filter(|high| high.count >= LASTING)?;
        Some(ThrownBack { since: high.since, good: self.good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(loss: f64, grad_norm: Option<f64>) -> Progress {
        Progress { loss: Some(loss), grad_norm, ..Progress::default() }
    }

    /// A loss that falls from 4 to 2 with noise.
    fn healthy(step: u64) -> f64 {
        2.0 + 2.0 / (1.0 + step as f64 / 10.0) + 0.2 * (step as f64 * 12.9898).sin()
    }

    #[test]
    fn a_noisy_loss_that_falls_has_no_jumps() {
        let mut spikes = Spikes::default();
        for step in 1..1000 {
            let norm = 1.0 + 0.5 * (step as f64 * 7.1).sin().abs();
            assert_eq!(spikes.read(step, &line(healthy(step), Some(norm))), [], "{step}");
        }
        assert_eq!(spikes.lasting(), None);
    }

    #[test]
    fn a_bad_batch_is_told_once_and_a_loss_that_stays_high_lasts() {
        let mut spikes = Spikes::default();
        (1..100).for_each(|step| drop(spikes.read(step, &line(healthy(step), Some(1.0)))));
        let jumps = spikes.read(100, &line(40.0, Some(30.0)));
        assert_eq!(
            jumps.iter().map(|jump| jump.what).collect::<Vec<_>>(),
            [Jumped::Loss, Jumped::GradientNorm]
        );
        assert!((jumps[0].usual - 2.2).abs() < 0.4 && jumps[0].step == 100, "{jumps:?}");
        assert_eq!(spikes.read(101, &line(healthy(101), Some(1.0))), []);
        assert_eq!(spikes.lasting(), None, "it came back");
        for step in 130..133 {
            spikes.read(step, &line(9.0, None));
        }
        assert_eq!(spikes.lasting(), Some(ThrownBack { since: 130, good: 101 }));
    }
}
