//! Counts of numbers in tensors, which is what DeepSpeed's size keys mean.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use crate::Bytes;
use crate::scale::{ParseQuantityError, parse};

/// A number of tensor elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Elements(pub u64);

/// How many bytes one element takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementSize {
    /// int8, fp8.
    One,
    /// fp16, bf16.
    Two,
    /// fp32.
    Four,
}

const KNOWN: &str = "none, K, M, B and T (thousand, million, billion, trillion)";

impl ElementSize {
    /// As a number.
    pub fn bytes(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

impl Elements {
    /// The memory these elements take.
    pub fn at(self, size: ElementSize) -> Bytes {
        Bytes(self.0.saturating_mul(size.bytes()))
    }
}

fn factor(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "b" => 1e9,
        "t" => 1e12,
        _ => return None,
    })
}

impl FromStr for Elements {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, factor, KNOWN).map(Self)
    }
}

/// Grouped digits: `500,000,000`.
impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

impl Add for Elements {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default `reduce_bucket_size`, which many guides call 500 MB.
    #[test]
    fn half_a_billion_elements_are_a_gigabyte_in_bf16() {
        let bucket: Elements = "5e8".parse().unwrap();
        assert_eq!(bucket.at(ElementSize::Two), Bytes(1_000_000_000));
        assert_eq!(bucket.at(ElementSize::Four), Bytes(2_000_000_000));
        assert_eq!(bucket.to_string(), "500,000,000");
    }

    #[test]
    fn counts_are_written_in_many_ways() {
        for text in ["8B", "8b", "8e9", "8_000_000_000", "8000M", "8000000000.0"] {
            assert_eq!(text.parse(), Ok(Elements(8_000_000_000)), "{text}");
        }
        for text in ["8GB", "eight", "1.5", "-1"] {
            assert!(text.parse::<Elements>().is_err(), "{text}");
        }
    }
}
