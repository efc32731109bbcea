//! Samples per optimizer step.

use std::num::NonZeroU64;

/// How many samples one optimizer step takes, and how they come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Samples one rank takes at once.
    pub micro: NonZeroU64,
    /// Micro batches per optimizer step.
    pub accumulation: NonZeroU64,
    /// Ranks, if their number is fixed.
    pub world: Option<NonZeroU64>,
}

impl Batch {
    /// One sample on each rank, which is the least there is.
    pub const LEAST: Self =
        Self { micro: NonZeroU64::MIN, accumulation: NonZeroU64::MIN, world: None };

    /// Samples per optimizer step over all ranks: `train_batch_size`. `None` if the number of ranks is open, or
    /// if there is no such number.
    pub fn global(self) -> Option<u64> {
        let one_rank = self.micro.get().checked_mul(self.accumulation.get())?;
        one_rank.checked_mul(self.world?.get())
    }
}

/// The multiple nearest to a number, but not zero; of two, the smaller.
pub fn nearest_multiple(number: u64, of: u64) -> u64 {
    let beyond = number % of.max(1);
    let below = number - beyond;
    match below.checked_add(of) {
        Some(above) if below == 0 || beyond > of - beyond => above,
        _ => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_includes_the_world() {
        let number = |number| NonZeroU64::new(number).expect("not zero");
        let batch = Batch { micro: number(2), accumulation: number(32), world: Some(number(4)) };
        assert_eq!(batch.global(), Some(256));
        assert_eq!(Batch { world: None, ..batch }.global(), None);
        assert_eq!(Batch { micro: number(u64::MAX), ..batch }.global(), None);
    }

    #[test]
    fn the_nearest_multiple_may_be_the_one_above() {
        let on_16_ranks =
            [1, 15, 16, 23, 24, 25, 30, 33, 100].map(|batch| nearest_multiple(batch, 16));
        assert_eq!(on_16_ranks, [16, 16, 16, 16, 16, 32, 32, 32, 96]);
        assert_eq!(nearest_multiple(u64::MAX, 16), u64::MAX - 15);
    }
}
