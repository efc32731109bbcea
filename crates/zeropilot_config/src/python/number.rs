//! Arithmetic between Python's `int` and `float`, as far as engine and front ends calculate.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};

use crate::syntax::Value;

/// A Python number.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// `int`.
    Int(BigInt),
    /// `float`.
    Float(f64),
}

/// Python would raise: division by zero, or an integer too large for a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArithmeticError;

impl Number {
    /// A small whole number.
    pub fn from_usize(value: usize) -> Self {
        Self::Int(value.into())
    }

    /// The value as a number, booleans counting as 0 and 1.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Int(BigInt::from(*value))),
            Value::Int(value) => Some(Self::Int(value.clone())),
            Value::Float(value) => Some(Self::Float(*value)),
            _ => None,
        }
    }

    fn to_float(&self) -> Result<f64, ArithmeticError> {
        match self {
            Self::Float(value) => Ok(*value),
            Self::Int(value) => {
                value.to_f64().filter(|float| float.is_finite()).ok_or(ArithmeticError)
            }
        }
    }

    /// The nearest float, infinite where there is none.
    pub fn approximate(&self) -> f64 {
        match self {
            Self::Int(value) => value.to_f64().unwrap_or(f64::INFINITY),
            Self::Float(value) => *value,
        }
    }

    /// `self * other`.
    pub fn multiply(&self, other: &Self) -> Result<Self, ArithmeticError> {
        Ok(match (self, other) {
            (Self::Int(a), Self::Int(b)) => Self::Int(a * b),
            _ => Self::Float(self.to_float()? * other.to_float()?),
        })
    }

    /// `self // other`.
    pub fn floor_divide(&self, other: &Self) -> Result<Self, ArithmeticError> {
        match (self, other) {
            (Self::Int(_), Self::Int(b)) if b.is_zero() => Err(ArithmeticError),
            (Self::Int(a), Self::Int(b)) => Ok(Self::Int(a.div_floor(b))),
            _ => float_floor_divide(self.to_float()?, other.to_float()?).map(Self::Float),
        }
    }

    /// `self / other`.
    pub fn true_divide(&self, other: &Self) -> Result<f64, ArithmeticError> {
        if other.is_zero() {
            return Err(ArithmeticError);
        }
        Ok(self.to_float()? / other.to_float()?)
    }

    /// Whether it equals zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Int(value) => value.is_zero(),
            Self::Float(value) => *value == 0.0,
        }
    }

    /// Whether `self > 0`; false for NaN.
    pub fn is_positive(&self) -> bool {
        match self {
            Self::Int(value) => value.is_positive(),
            Self::Float(value) => *value > 0.0,
        }
    }

    /// Python's exact comparison; `None` where NaN is involved.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Float(b)) => compare_int_float(a, *b),
            (Self::Float(a), Self::Int(b)) => compare_int_float(b, *a).map(Ordering::reverse),
        }
    }

    /// `self == other`.
    pub fn equals(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::Float(value) => Self::Float(value),
        }
    }
}

fn compare_int_float(int: &BigInt, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.is_infinite() {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let whole = BigInt::from_f64(float.trunc())?;
    Some(
        int.cmp(&whole)
            .then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)),
    )
}

/// CPython's float floor division: exact where the quotient is whole, never off by one through rounding.
fn float_floor_divide(a: f64, b: f64) -> Result<f64, ArithmeticError> {
    if b == 0.0 {
        return Err(ArithmeticError);
    }
    let remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder != 0.0 && (b < 0.0) != (remainder < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return Ok(0.0_f64.copysign(a / b));
    }
    let floor = quotient.floor();
    Ok(if quotient - floor > 0.5 { floor + 1.0 } else { floor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> Number {
        Number::Int(value.into())
    }

    #[test]
    fn floor_division_rounds_towards_minus_infinity() {
        assert_eq!(int(-7).floor_divide(&int(2)), Ok(int(-4)));
        assert_eq!(Number::Float(-7.0).floor_divide(&int(2)), Ok(Number::Float(-4.0)));
        assert_eq!(Number::Float(6.5).floor_divide(&int(2)), Ok(Number::Float(3.0)));
    }

    #[test]
    fn an_infinity_has_no_floor() {
        for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
            let floor = Number::Float(infinity).floor_divide(&int(1));
            assert!(matches!(floor, Ok(Number::Float(floor)) if floor.is_nan()));
        }
    }

    #[test]
    fn dividing_by_zero_is_an_error_for_every_kind_of_zero() {
        for zero in [int(0), Number::Float(0.0), Number::Float(-0.0)] {
            assert_eq!(int(1).floor_divide(&zero), Err(ArithmeticError));
            assert_eq!(int(1).true_divide(&zero), Err(ArithmeticError));
        }
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        // 2^53 + 1 has no float of its own; Python still tells it from 2^53.
        let odd = Number::Int(BigInt::from(9_007_199_254_740_993_i64));
        assert!(!odd.equals(&Number::Float(9_007_199_254_740_992.0)));
        assert!(int(2).equals(&Number::Float(2.0)));
        assert_eq!(int(2).compare(&Number::Float(2.5)), Some(Ordering::Less));
        assert_eq!(int(-2).compare(&Number::Float(-2.5)), Some(Ordering::Greater));
        assert_eq!(int(2).compare(&Number::Float(f64::NAN)), None);
    }
}
