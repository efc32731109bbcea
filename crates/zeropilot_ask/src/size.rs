//! Quantities as programs hand them over: a number, or a text with a unit.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use zeropilot_units::Bytes;

/// A quantity, as written.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Number(u64),
    Text(String),
}

/// Bytes: `549755813888` or `"512GiB"`.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let written = Option::<Written>::deserialize(from)?;
    written
        .map(|written| match written {
            Written::Number(bytes) => Ok(Bytes(bytes)),
            Written::Text(text) => text.parse().map_err(D::Error::custom),
        })
        .transpose()
}

/// A word that its own type reads.
pub(crate) fn word<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let word = Option::<String>::deserialize(from)?;
    word.map(|word| word.parse().map_err(D::Error::custom)).transpose()
}

/// A list, where `null` is as good as none.
pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
