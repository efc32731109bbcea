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
}
