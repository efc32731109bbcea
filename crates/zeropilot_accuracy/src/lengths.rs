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
    /// long is deleted, as ms-swift's `truncation_strategy` does by default; a micro batch is as long as its longest.
    pub(crate) fn draw(self, longest: u64, micro_batch: u64, seed: u64) -> Vec<u64> {
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
        (0..SAMPLES).map(|_| (0..micro_batch).map(|_| sample()).max().unwrap_or(longest)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sample_is_longer_than_the_longest_and_few_are_near_it() {
        let lengths = Lengths { mean: 3234.0, deviation: 2548.0, least: 91 };
        for longest in [512, 2048, 8192] {
            let drawn = lengths.draw(longest, 1, 1);
            assert!(drawn.iter().all(|length| (91..=longest).contains(length)), "{drawn:?}");
            assert!(drawn.iter().any(|length| *length < longest / 2), "{drawn:?}");
        }
        assert_ne!(lengths.draw(2048, 1, 1), lengths.draw(2048, 1, 2));
        assert!(
            lengths.draw(8192, 8, 1).iter().sum::<u64>() > lengths.draw(8192, 1, 1).iter().sum()
        );
    }
}
