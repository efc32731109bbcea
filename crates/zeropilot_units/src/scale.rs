//! Numbers with a unit behind them: `1.5e9`, `500M`, `44 GiB`.

/// Text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// No number at the start.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// A unit that is not known here.
    #[error("`{unit}` is not a unit; known units are {known}")]
    UnknownUnit {
        /// What was written.
        unit: String,
        /// What may be written.
        known: &'static str,
    },
    /// Below zero, not whole, or too large for 64 bits.
    #[error("`{0}` is not a whole number of units between 0 and 2^63")]
    OutOfRange(String),
}

/// A whole number of what `factor` makes of the unit; `known` lists the units for the error.
pub(crate) fn parse(
    text: &str,
    factor: impl Fn(&str) -> Option<f64>,
    known: &'static str,
) -> Result<u64, ParseQuantityError> {
    let (number, unit) = split(text)?;
    let unknown = || ParseQuantityError::UnknownUnit { unit: unit.to_owned(), known };
    whole(number, factor(unit).ok_or_else(unknown)?, text)
}

/// Splits `1.5 GiB` into 1.5 and `GiB`. Underscores may group digits.
fn split(text: &str) -> Result<(f64, &str), ParseQuantityError> {
    let text = text.trim();
    let number_end = number_length(text);
    let digits = text[..number_end].replace('_', "");
    let number = digits.parse().map_err(|_| ParseQuantityError::NoNumber(text.to_owned()))?;
    Ok((number, text[number_end..].trim()))
}

/// Length of the longest prefix that reads as a decimal number; an `e` belongs to it only if digits follow.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut index: usize| {
        while bytes.get(index).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
            index += 1;
        }
        index
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    end
}

/// `number × factor` as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "range and fraction are checked"
)]
fn whole(number: f64, factor: f64, text: &str) -> Result<u64, ParseQuantityError> {
    let value = number * factor;
    // Tenths of a unit are common (`1.1 GB`) and rarely exact in binary.
    let rounded = value.round();
    let near = (value - rounded).abs() <= 1e-6 * factor.max(1.0);
    if near && (0.0..9.2e18).contains(&rounded) {
        Ok(rounded as u64)
    } else {
        Err(ParseQuantityError::OutOfRange(text.to_owned()))
    }
}
