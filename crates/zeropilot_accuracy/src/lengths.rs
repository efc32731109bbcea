//! Sequences as they come: of many lengths, those beyond the longest deleted.

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution as _, Gamma};

use crate::reading::Lengths;

/// Micro steps that are told apart.
const SAMPLES: usize = 24;

/// Orders of samples that are tried; the median is taken.
pub(crate) const DRAWS: u64 = 3;

impl Lengths {
    /// Lengths of a few micro batches with samples of a gamma distribution, in the order drawn. A sample that is too
    /// long is deleted, as ms-swift's `truncation_strategy` does by default; a micro batch is as long as its longest, or
    /// without padding as their mean.
    pub(crate) fn draw(self, longest: u64, batch: Samples, seed: u64) -> Vec<u64> {
        let scale = self.deviation * self.deviation / self.mean;
        let Ok(gamma) = Gamma::new(self.mean / scale, scale) else { return Vec::new() };
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let mut sample = || loop {
            let length = gamma.sample(&mut dice);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
            let length = length as u64;
            if (self.least.min(longest)..=longest).contains(&length) {
                return length;
            }
        };
        let mut micro_batch = || {
            let drawn = (0..batch.count).map(|_| sample());
            match batch.is_padded {
                true => drawn.max().unwrap_or(longest),
                false => drawn.sum::<u64>() / batch.count.max(1),
            }
        };
        (0..SAMPLES).map(|_| micro_batch()).collect()
    }

    /// Tokens of a sequence in the fullest micro batch, whose longest sample has `longest`: all of them are as long, or
    /// without padding the other pairs are as long as usual.
    pub(crate) fn fullest(self, longest: u64, batch: Samples) -> u64 {
        if batch.is_padded {
            return longest;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
        let usual = self.mean as u64;
        let others = batch.count.saturating_sub(2);
        (longest * (batch.count - others) + usual * others) / batch.count.max(1)
    }
}

/// The samples of a micro batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Samples {
    /// How many, each answer of a pair for itself.
    pub(crate) count: u64,
    /// Whether they are padded to the longest.
    pub(crate) is_padded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sample_is_longer_than_the_longest_and_few_are_near_it() {
        let lengths = Lengths { mean: 3234.0, deviation: 2548.0, least: 91, most: None };
        let of = |count| Samples { count, is_padded: true };
        for longest in [512, 2048, 8192] {
            let drawn = lengths.draw(longest, of(1), 1);
            assert!(drawn.iter().all(|length| (91..=longest).contains(length)), "{drawn:?}");
            assert!(drawn.iter().any(|length| *length < longest / 2), "{drawn:?}");
        }
        assert_ne!(lengths.draw(2048, of(1), 1), lengths.draw(2048, of(1), 2));
        let sum = |batch| lengths.draw(8192, batch, 1).iter().sum::<u64>();
        assert!(sum(of(8)) > sum(of(1)));
        assert!(sum(of(8)) > sum(Samples { count: 8, is_padded: false }));
    }

    #[test]
    fn without_padding_one_long_pair_stands_beside_usual_ones() {
        let lengths = Lengths { mean: 334.0, deviation: 162.8, least: 36, most: Some(1801) };
        assert_eq!(lengths.fullest(1801, Samples { count: 8, is_padded: true }), 1801);
        // (2 · 1801 + 6 · 334) / 8 = 700.75
        assert_eq!(lengths.fullest(1801, Samples { count: 8, is_padded: false }), 700);
    }
}
