//! Scalar conversions of pydantic 2 in its lax mode.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use crate::syntax::{MAX_INT_DIGITS, Value};

/// `bool`: also 0 and 1 as number, and a fixed list of words.
pub(super) fn bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Int(value) => match value.to_u8() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::Float(value) if *value == 0.0 => Some(false),
        Value::Float(value) if *value == 1.0 => Some(true),
        Value::Str(text) => word(text),
        _ => None,
    }
}

/// The words for true and false, without regard to case.
pub(super) fn word(text: &str) -> Option<bool> {
    // The longest is "false"; anything longer cannot be one of them.
    if text.len() > 5 {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
        "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
        _ => None,
    }
}

/// `int`: also booleans, floats without fraction, and text that spells a whole number.
pub(super) fn int(value: &Value) -> Option<BigInt> {
    match value {
        Value::Bool(value) => Some(BigInt::from(*value)),
        Value::Int(value) => Some(value.clone()),
        Value::Float(value) if value.is_finite() && value.fract() == 0.0 => whole_float(*value),
        Value::Str(text) => text_int(text),
        _ => None,
    }
}

/// Floats beyond 64 bits are refused, integers of any size are not.
fn whole_float(value: f64) -> Option<BigInt> {
    let limit = 9_223_372_036_854_775_808.0;
    if value > -limit && value < limit { BigInt::from_f64(value) } else { None }
}

fn text_int(text: &str) -> Option<BigInt> {
    let text = text.trim();
    if text.len() > MAX_INT_DIGITS {
        return None;
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = strip_zero_fraction(digits);
    let digits = strip_underscores(digits)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: BigInt = digits.parse().ok()?;
    Some(if negative { -value } else { value })
}

/// `12.000` counts as 12.
fn strip_zero_fraction(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction))
            if fraction.bytes().all(|byte| byte == b'0') && !fraction.is_empty() =>
        {
            whole
        }
        _ => text,
    }
}

fn strip_underscores(text: &str) -> Option<String> {
    if text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    Some(text.replace('_', ""))
}

/// `float`: also booleans, integers, and text that spells a number.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => value.to_f64().filter(|float| float.is_finite()),
        Value::Float(value) => Some(*value),
        Value::Str(text) => text_float(text),
        _ => None,
    }
}

fn text_float(text: &str) -> Option<f64> {
    // Either white space around the number or underscores in it, not both.
    text.trim().parse().ok().or_else(|| strip_underscores(text)?.parse().ok())
}

/// `str`: nothing else becomes text.
pub(super) fn str(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => Some(text.clone()),
        _ => None,
    }
}

/// An enumeration of whole numbers.
pub(super) fn int_enum(value: &Value, values: &[i64]) -> Option<i64> {
    let number = int(value)?.to_i64()?;
    values.contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of pydantic 2.14.
    #[test]
    fn floats_in_text_may_have_space_or_underscores_but_not_both() {
        assert_eq!(text_float(" 10"), Some(10.0));
        assert_eq!(text_float("1_0"), Some(10.0));
        assert_eq!(text_float(" 1_0"), None);
        assert_eq!(text_int(" 1_0"), Some(10.into()));
    }
}
