//! Values without places: what a key resolves to once the text is left behind.

use num_bigint::BigInt;
use num_traits::Zero;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Number;
use crate::syntax::{Member, Node, Value};

/// A Python value as the engine holds it after loading.
#[derive(Debug, Clone, PartialEq)]
pub enum PyValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// `int`.
    Int(BigInt),
    /// `float`.
    Float(f64),
    /// `str`.
    Str(String),
    /// `list`.
    List(Vec<PyValue>),
    /// `dict` with text keys, in insertion order.
    Dict(Vec<(String, PyValue)>),
}

impl PyValue {
    /// Text.
    pub fn str(text: &str) -> Self {
        Self::Str(text.to_owned())
    }

    /// A member of a dictionary.
    pub fn get(&self, key: &str) -> Option<&PyValue> {
        match self {
            Self::Dict(items) => {
                items.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Sets a member of a dictionary; anything else is left alone.
    pub fn set(&mut self, key: &str, value: PyValue) {
        if let Self::Dict(items) = self {
            match items.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => items.push((key.to_owned(), value)),
            }
        }
    }

    /// Removes a member of a dictionary and returns it.
    pub fn remove(&mut self, key: &str) -> Option<PyValue> {
        let Self::Dict(items) = self else { return None };
        let index = items.iter().position(|(name, _)| name == key)?;
        Some(items.remove(index).1)
    }

    /// The value as Python's `bool()` sees it.
    pub fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => !value.is_zero(),
            Self::Float(value) => *value != 0.0,
            Self::Str(value) => !value.is_empty(),
            Self::List(values) => !values.is_empty(),
            Self::Dict(items) => !items.is_empty(),
        }
    }

    /// The value as a number, booleans counting as 0 and 1.
    pub fn number(&self) -> Option<Number> {
        match self {
            Self::Bool(value) => Some(Number::Int(BigInt::from(*value))),
            Self::Int(value) => Some(Number::Int(value.clone())),
            Self::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }
}

impl From<&Value> for PyValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(value.clone()),
            Value::Float(value) => Self::Float(*value),
            Value::Str(value) => Self::Str(value.clone()),
            Value::Array(items) => Self::List(items.iter().map(PyValue::from).collect()),
            Value::Object(members) => {
                let mut dict = Self::Dict(Vec::with_capacity(members.len()));
                for Member { key, value, .. } in members {
                    dict.set(key, value.into());
                }
                dict
            }
        }
    }
}

impl From<&Node> for PyValue {
    fn from(node: &Node) -> Self {
        Self::from(&node.value)
    }
}

impl From<Number> for PyValue {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::Float(value) => Self::Float(value),
        }
    }
}

impl From<i64> for PyValue {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<bool> for PyValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&serde_json::Value> for PyValue {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::None,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value.into()),
                (None, Some(value)) => Self::Int(value.into()),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(value) => Self::Str(value.clone()),
            serde_json::Value::Array(items) => {
                Self::List(items.iter().map(PyValue::from).collect())
            }
            serde_json::Value::Object(members) => {
                Self::Dict(members.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

/// JSON has no NaN, infinities or unbounded integers; they are written as text, as Python prints them.
impl Serialize for PyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(small), _) => serializer.serialize_i64(small),
                (_, Ok(large)) => serializer.serialize_u64(large),
                _ => serializer.collect_str(value),
            },
            Self::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Float(value) => serializer.serialize_str(&super::float_repr(*value)),
            Self::Str(value) => serializer.serialize_str(value),
            Self::List(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| sequence.serialize_element(item))?;
                sequence.end()
            }
            Self::Dict(items) => {
                let mut map = serializer.serialize_map(Some(items.len()))?;
                items.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}
