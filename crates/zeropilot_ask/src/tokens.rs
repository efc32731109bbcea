//! Tokens of a sequence as people write them: `4096`, `128k`. Lengths are powers of two, so `k` is 1024.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::size::Written;
use crate::training::MOST_TOKENS;

/// A text that is no number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// Not a number, or with a letter that is no unit.
    #[error("write a positive whole number, such as 4096 or 128k (k = 1024)")]
    NotANumber,
    /// A number that no sequence has.
    #[error("{value} is not between 1 and {MOST_TOKENS}")]
    OutOfRange {
        /// The number.
        value: u64,
    },
}

/// Tokens of a sequence.
///
/// # Errors
///
/// If the text is no number, or one that no sequence has.
pub fn parse(text: &str) -> Result<u64, TokensError> {
    let (number, unit) = match text.trim().strip_suffix(['k', 'K']) {
        Some(number) => (number, 1024),
        None => match text.trim().strip_suffix(['m', 'M']) {
            Some(number) => (number, 1 << 20),
            None => (text.trim(), 1),
        },
    };
    let number: u64 = number.trim().parse().map_err(|_| TokensError::NotANumber)?;
    let value = number.saturating_mul(unit);
    match (1..=MOST_TOKENS).contains(&value) {
        true => Ok(value),
        false => Err(TokensError::OutOfRange { value }),
    }
}

/// A number, or a text with a unit. Whether a number makes sense is said with its name later.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let written = Option::<Written>::deserialize(from)?;
    written
        .map(|written| match written {
            Written::Number(tokens) => Ok(tokens),
            Written::Text(text) => parse(&text).map_err(D::Error::custom),
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("128k"), Ok(131_072));
        assert_eq!(parse("1M"), Ok(1 << 20));
        assert_eq!(parse("0"), Err(TokensError::OutOfRange { value: 0 }));
        assert_eq!(parse("32M"), Err(TokensError::OutOfRange { value: 32 << 20 }));
        assert_eq!(parse("4kb"), Err(TokensError::NotANumber));
        assert_eq!(parse("-1"), Err(TokensError::NotANumber));
    }
}
