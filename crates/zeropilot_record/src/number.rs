//! Numbers that may be none: JSON has no NaN, so that a number that is NaN or infinite is `null` there. One that was not printed
//! is absent.

use serde::{Deserialize, Deserializer};

/// Reads `null` as NaN.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(Option::deserialize(from)?.unwrap_or(f64::NAN)))
}
