//! Random numbers that are the same everywhere for a given seed. `ZEROPILOT_SEED` repeats a run.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::environment::setting;

/// The seed to repeat, or a fresh one; printed, so that a failure can be repeated.
#[expect(clippy::print_stderr, reason = "a failure must be repeatable")]
pub fn seed() -> u64 {
    let seed = setting("ZEROPILOT_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        now.as_nanos() as u64
    });
    eprintln!("ZEROPILOT_SEED={seed}");
    seed
}

/// SplitMix64. Seeds are recorded in tests, so the numbers of a seed stay what they are.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A stream of numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another stream. Its seed is mixed, so that it does not run a few steps behind this one.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below a usize")
    }

    /// From `least` to `most`, both possible.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// True in so many of a hundred times.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// One of several texts.
    pub fn word<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The numbers of the published implementation for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
