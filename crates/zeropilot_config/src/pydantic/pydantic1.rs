//! Scalar conversions of pydantic 1: mostly Python's own constructors.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use crate::python::{float_repr, parse_float, parse_int};
use crate::syntax::Value;

/// `bool`: true, false, anything equal to 0 or 1, and a fixed list of words.
pub(super) fn bool(value: &Value) -> Option<bool> {
    match value {
        Value::Str(text) => super::pydantic2::word(text),
        other => super::pydantic2::bool(other),
    }
}

/// `int(value)`: floats lose their fraction.
pub(super) fn int(value: &Value) -> Option<BigInt> {
    match value {
        Value::Bool(value) => Some(BigInt::from(*value)),
        Value::Int(value) => Some(value.clone()),
        Value::Float(value) => BigInt::from_f64(value.trunc()),
        Value::Str(text) => parse_int(text),
        _ => None,
    }
}

/// `float(value)`.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => value.to_f64().filter(|float| float.is_finite()),
        Value::Float(value) => Some(*value),
        Value::Str(text) => parse_float(text),
        _ => None,
    }
}

/// `str`: numbers, and with them booleans, become text.
pub(super) fn str(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => Some(text.clone()),
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(float_repr(*value)),
        _ => None,
    }
}

/// `Enum(value)`: looked up by equality, so `2.0` and `True` find 2 and 1, but `"2"` finds nothing.
pub(super) fn int_enum(value: &Value, values: &[i64]) -> Option<i64> {
    let number = match value {
        Value::Bool(value) => i64::from(*value),
        Value::Int(value) => value.to_i64()?,
        Value::Float(value) if value.fract() == 0.0 => value.to_i64()?,
        _ => return None,
    };
    values.contains(&number).then_some(number)
}
