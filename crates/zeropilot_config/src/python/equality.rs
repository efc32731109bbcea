//! When two values are equal to Python, and when they are the same to a careful reader.

use super::{Number, PyValue};
use crate::syntax::{Member, Value};

/// Python's `==`: numbers and booleans compare by value across their types, texts never equal
/// numbers, lists compare element by element and objects without regard to order.
pub fn python_equal(left: &Value, right: &Value) -> bool {
    if let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) {
        return left.equals(&right);
    }
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| python_equal(&left.value, &right.value))
        }
        (Value::Object(left), Value::Object(right)) => objects_equal(left, right),
        _ => false,
    }
}

fn objects_equal(left: &[Member], right: &[Member]) -> bool {
    left.len() == right.len()
        && left.iter().all(|member| {
            right
                .iter()
                .find(|other| other.key == member.key)
                .is_some_and(|other| python_equal(&member.value.value, &other.value.value))
        })
}

/// Whether two resolved values are the same to a reader who tells `1`, `1.0` and `True` apart.
///
/// NaN is the same as NaN here, which Python's `==` denies.
pub fn same(left: &PyValue, right: &PyValue) -> bool {
    match (left, right) {
        (PyValue::Float(a), PyValue::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        (PyValue::List(a), PyValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y))
        }
        (PyValue::Dict(a), PyValue::Dict(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse_json;

    fn equal(left: &str, right: &str) -> bool {
        let value = |text| parse_json(text).unwrap().root().value.clone();
        python_equal(&value(left), &value(right))
    }

    #[test]
    fn numbers_and_booleans_are_equal_by_value() {
        assert!(equal("1", "true") && equal("0.0", "false") && equal("8", "8.0"));
        assert!(!equal("\"8\"", "8") && !equal("null", "false") && !equal("\"\"", "0"));
        assert!(!equal("NaN", "NaN") && !equal("1", "Infinity"));
    }

    #[test]
    fn collections_are_equal_by_their_elements() {
        assert!(equal("[0.9, 1]", "[0.9, 1.0]") && !equal("[0.9]", "[0.9, 1]"));
        assert!(equal(r#"{"a": 1, "b": 2}"#, r#"{"b": 2.0, "a": true}"#));
    }

    #[test]
    fn a_large_integer_is_not_its_nearest_float() {
        // 2^53 + 1 has no float of its own.
        assert!(!equal("9007199254740993", "9007199254740992.0"));
    }

    #[test]
    fn the_same_tells_types_apart_but_not_one_nan_from_another() {
        assert!(!same(&PyValue::from(1), &PyValue::Float(1.0)));
        assert!(same(&PyValue::Float(f64::NAN), &PyValue::Float(f64::NAN)));
    }
}
