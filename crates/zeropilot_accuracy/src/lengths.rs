//! Sequences as they come: of many lengths, cut at the longest.

use crate::reading::Lengths;

/// Micro steps that are told apart.
const SAMPLES: usize = 24;

impl Lengths {
    /// Lengths of a few micro batches with samples of this distribution, cut at `longest`, in the order drawn. Samples
    /// of text have a long tail: the logarithm of their length is normal. A micro batch is as long as its longest.
    pub(crate) fn draw(self, longest: u64, micro_batch: u64) -> Vec<u64> {
        let ratio = self.deviation / self.mean;
        let variance = (1.0 + ratio * ratio).ln();
        let centre = self.mean.ln() - variance / 2.0;
        let mut normal = Normal(1);
        let mut sample = || {
            let length = (centre + variance.sqrt() * normal.next()).exp();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
            let length = length as u64;
            length.clamp(self.least.min(longest), longest)
        };
        (0..SAMPLES).map(|_| (0..micro_batch).map(|_| sample()).max().unwrap_or(longest)).collect()
    }
}

/// Nearly normal numbers, the same every time: twelve uniform ones added up.
struct Normal(u64);

impl Normal {
    fn next(&mut self) -> f64 {
        let mut uniform = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_samples_of_long_texts_reach_a_short_limit_and_few_a_long_one() {
        let lengths = Lengths { mean: 3234.0, deviation: 2548.0, least: 91 };
        let at_limit =
            |limit| lengths.draw(limit, 1).iter().filter(|length| **length == limit).count();
        // The logarithm has mean 7.84 and deviation 0.69: 99 % of samples exceed 512, 62 % 2048, 5 % 8192.
        assert!(at_limit(512) > 20, "{}", at_limit(512));
        assert!((10..=20).contains(&at_limit(2048)), "{}", at_limit(2048));
        assert!(at_limit(8192) <= 4, "{}", at_limit(8192));
        assert!(lengths.draw(8192, 8).iter().sum::<u64>() > lengths.draw(8192, 1).iter().sum());
    }
}
