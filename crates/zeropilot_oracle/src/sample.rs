//! A part of many slow questions, another one in every build.

use crate::environment::is_thorough;
use crate::random::{Random, seed};

/// One of so many; which ones is decided by [`seed`]. With `ZEROPILOT_THOROUGH=1` it is all of them.
pub fn part_of<T>(all: Vec<T>, every: usize) -> Vec<T> {
    if is_thorough() {
        return all;
    }
    // Every part has something in it.
    let first = Random::new(seed()).below(every.min(all.len()));
    part_from(all, every, first)
}

fn part_from<T>(all: Vec<T>, every: usize, first: usize) -> Vec<T> {
    all.into_iter().skip(first).step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::part_from;

    #[test]
    fn all_parts_together_are_everything_once() {
        let mut together: Vec<u32> =
            (0..4).flat_map(|first| part_from((0..10).collect(), 4, first)).collect();
        together.sort_unstable();
        assert_eq!(together, (0..10).collect::<Vec<_>>());
    }
}
