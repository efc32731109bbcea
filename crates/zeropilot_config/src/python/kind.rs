//! The kinds of value, and what plain Python code finds out about a value in a config tree.

use num_traits::Zero;

use crate::syntax::Value;

/// The kinds of value a config can hold, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number with a fraction, or a very large one.
    Float,
    /// Text.
    Str,
    /// A list.
    List,
    /// An object.
    Dict,
}

impl Kind {
    /// Its name in messages and in the schema's `accepts` lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::List => "list",
            Self::Dict => "dict",
        }
    }

    /// The name Python has for the type.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            other => other.name(),
        }
    }
}

/// What kind of value this is.
pub fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Int(_) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Str(_) => Kind::Str,
        Value::Array(_) => Kind::List,
        Value::Object(_) => Kind::Dict,
    }
}

/// The name of the type Python gives the value.
pub fn python_type(value: &Value) -> &'static str {
    kind_of(value).type_name()
}

/// Whether Python's `bool()` of it is true.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Int(value) => !value.is_zero(),
        Value::Float(value) => *value != 0.0,
        Value::Str(value) => !value.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Whether it is the placeholder that front ends fill.
pub fn is_auto(value: &Value) -> bool {
    matches!(value, Value::Str(text) if text == "auto")
}

/// Whether `str(value).lower()` is `"true"`.
pub fn reads_as_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Str(text) => text.to_lowercase() == "true",
        _ => false,
    }
}

/// Whether the value may be an element of a Python set.
pub fn is_hashable(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}
