//! Amounts of memory.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

use crate::scale::{ParseQuantityError, parse};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

const KNOWN: &str = "B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)";

impl Bytes {
    /// One gibibyte, the unit GPUs are sold in whatever the label says.
    pub const GIB: Self = Self(1 << 30);

    /// The whole bytes of a number; none of a negative one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub fn whole(bytes: f64) -> Self {
        Self(bytes as u64)
    }

    /// What is left, or nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// As a fraction of gibibytes.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / Self::GIB.0 as f64
    }
}

fn factor(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        "tib" => 1_099_511_627_776.0,
        _ => return None,
    })
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, factor, KNOWN).map(Self)
    }
}

/// Three significant digits in binary units: `37.2 GiB`, `512 MiB`, `17 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1023.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let decimals = match value {
            _ if unit == 0 => 0,
            value if value < 9.995 => 2,
            value if value < 99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.decimals$} {}", UNITS[unit]))
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bytes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimal_and_binary_units_are_different() {
        assert_eq!("44GB".parse(), Ok(Bytes(44_000_000_000)));
        assert_eq!("44 GiB".parse(), Ok(Bytes(44 << 30)));
        assert_eq!("1.5gib".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("1e9".parse(), Ok(Bytes(1_000_000_000)));
        assert_eq!("1.1 GB".parse(), Ok(Bytes(1_100_000_000)));
    }

    #[test]
    fn text_that_is_no_amount_is_refused() {
        for text in ["", "GB", "-1 GB", "1 parsec", "1e40 GB", "0.5 B"] {
            assert!(text.parse::<Bytes>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn amounts_show_three_digits() {
        let shown = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (39_943_000_000, "37.2 GiB"),
            (1_073_741_823, "1.00 GiB"),
        ];
        for (bytes, text) in shown {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn shown_amounts_read_back_within_their_digits(bytes in 0_u64..1 << 50) {
            let read: Bytes = Bytes(bytes).to_string().parse().unwrap();
            prop_assert!(read.0.abs_diff(bytes) as f64 <= bytes as f64 * 0.0051 + 0.5);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<Bytes>();
        }
    }
}
