//! An amount of memory that is not known exactly: `37.2 GiB (36.1–38.9)`.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use crate::Bytes;

/// A likely amount of memory and the bounds it should lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Estimate {
    low: Bytes,
    expected: Bytes,
    high: Bytes,
}

impl Estimate {
    /// Nothing, for certain.
    pub const ZERO: Self = Self::exact(Bytes(0));

    /// An amount without doubt.
    pub const fn exact(bytes: Bytes) -> Self {
        Self { low: bytes, expected: bytes, high: bytes }
    }

    /// An amount with bounds; an expectation outside them widens them.
    pub fn new(low: Bytes, expected: Bytes, high: Bytes) -> Self {
        Self { low: low.min(expected), expected, high: high.max(expected) }
    }

    /// The least it should be.
    pub const fn low(self) -> Bytes {
        self.low
    }

    /// What it most likely is.
    pub const fn expected(self) -> Bytes {
        self.expected
    }

    /// The most it should be.
    pub const fn high(self) -> Bytes {
        self.high
    }

    /// Whether there is no doubt.
    pub fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// Whether an amount lies within the bounds.
    pub fn contains(self, bytes: Bytes) -> bool {
        self.low <= bytes && bytes <= self.high
    }

    /// Whether the upper bound leaves at least a twentieth of what there is free.
    pub fn leaves_headroom(self, capacity: Bytes) -> bool {
        capacity.0.checked_sub(self.high.0).is_some_and(|free| free >= capacity.0 / 20)
    }

    /// So many times the same thing, doubt included.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        let times = |bytes: Bytes| Bytes(bytes.0.saturating_mul(count));
        Self { low: times(self.low), expected: times(self.expected), high: times(self.high) }
    }
}

/// Bounds add up: what is low together is low in every part.
impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            expected: self.expected + other.expected,
            high: self.high + other.high,
        }
    }
}

impl Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

/// The expectation, and the bounds where there is doubt.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            return self.expected.fmt(f);
        }
        let shown = [self.low, self.expected, self.high].map(|bytes| bytes.to_string());
        let [low, expected, high] = &shown;
        let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
        match low.split_once(' ') {
            // The unit is said once where it is the same.
            Some((number, _)) if unit(low) == unit(expected) && unit(high) == unit(expected) => {
                let top = high.split_once(' ').map_or(high.as_str(), |(number, _)| number);
                f.pad(&format!("{expected} ({number}–{top})"))
            }
            _ => f.pad(&format!("{expected} ({low}–{high})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(value: f64) -> Bytes {
        format!("{value} GiB").parse().unwrap()
    }

    #[test]
    fn doubt_is_shown_beside_the_amount() {
        let peak = Estimate::new(gib(36.125), gib(37.25), gib(38.875));
        assert_eq!(peak.to_string(), "37.2 GiB (36.1–38.9)");
        assert_eq!(Estimate::exact(gib(2.0)).to_string(), "2.00 GiB");
        let small = Estimate::new(Bytes(300 << 20), gib(1.0), gib(1.5));
        assert_eq!(small.to_string(), "1.00 GiB (300 MiB–1.50 GiB)");
    }

    #[test]
    fn bounds_never_exclude_the_expectation() {
        let odd = Estimate::new(Bytes(5), Bytes(4), Bytes(3));
        assert!(odd.contains(Bytes(4)) && odd.is_exact());
    }

    #[test]
    fn parts_add_up_bound_by_bound() {
        let part = Estimate::new(Bytes(1), Bytes(2), Bytes(4));
        assert_eq!([part, part, part].into_iter().sum::<Estimate>(), part.times(3));
        assert_eq!(part.times(3), Estimate::new(Bytes(3), Bytes(6), Bytes(12)));
    }
}
