//! One value to one field type.

use num_traits::ToPrimitive;

use super::model::{as_pairs, read_model};
use super::{pydantic1, pydantic2};
use crate::judge::{Judge, Place};
use crate::problem::{Bound, Expected, ProblemKind};
use crate::python::PyValue;
use crate::schema::{Bounds, Dialect, FieldType};
use crate::syntax::{Node, Value};

/// Converts `node` to the type, or notes why it cannot be.
pub(super) fn coerce(
    judge: &mut Judge<'_>,
    kind: &FieldType,
    node: &Node,
    place: &Place<'_>,
) -> Option<PyValue> {
    match try_convert(judge, kind, node, place) {
        Converted::Value(value) => Some(value),
        Converted::Reported => None,
        Converted::Not(expected) => {
            judge.wrong(expected, node, place);
            None
        }
    }
}

enum Converted {
    Value(PyValue),
    Not(Expected),
    /// A nested section has already said what is wrong.
    Reported,
}

impl Converted {
    fn or(value: Option<PyValue>, expected: Expected) -> Self {
        value.map_or(Self::Not(expected), Self::Value)
    }
}

fn try_convert(
    judge: &mut Judge<'_>,
    kind: &FieldType,
    node: &Node,
    place: &Place<'_>,
) -> Converted {
    let value = &node.value;
    match kind {
        FieldType::Optional(inner) => match value {
            Value::Null => Converted::Value(PyValue::None),
            _ => try_convert(judge, inner, node, place),
        },
        FieldType::Union(kinds) => union(judge, kinds, node, place),
        FieldType::List(inner) => list(judge, inner, node, place),
        FieldType::Tuple => match value {
            Value::Array(_) => Converted::Value(value.into()),
            _ => Converted::Not(Expected::List),
        },
        FieldType::Dict => dict(judge.schema.dialect, value),
        FieldType::Model(name) => {
            let Some(model) = judge.schema.models.get(name) else {
                return Converted::Not(Expected::Section);
            };
            match read_model(judge, model, node, place) {
                Some(value) => Converted::Value(value),
                None => Converted::Reported,
            }
        }
        FieldType::Any => Converted::Value(value.into()),
        FieldType::Dtype => Converted::Not(Expected::Nothing),
        scalar => convert_scalar(judge.schema.dialect, scalar, value),
    }
}

fn convert_scalar(dialect: Dialect, kind: &FieldType, value: &Value) -> Converted {
    let first = dialect == Dialect::Pydantic1;
    match kind {
        FieldType::Bool => {
            let found = if first { pydantic1::bool(value) } else { pydantic2::bool(value) };
            Converted::or(found.map(PyValue::Bool), Expected::Bool)
        }
        FieldType::Int => {
            let found = if first { pydantic1::int(value) } else { pydantic2::int(value) };
            Converted::or(found.map(PyValue::Int), Expected::Int)
        }
        FieldType::Float => {
            let found = if first { pydantic1::float(value) } else { pydantic2::float(value) };
            Converted::or(found.map(PyValue::Float), Expected::Float)
        }
        FieldType::Str => {
            let found = if first { pydantic1::str(value) } else { pydantic2::str(value) };
            Converted::or(found.map(PyValue::Str), Expected::Str)
        }
        FieldType::Path => Converted::or(path(value), Expected::Str),
        FieldType::IntEnum(values) => {
            let found = if first {
                pydantic1::int_enum(value, values)
            } else {
                pydantic2::int_enum(value, values)
            };
            let allowed = values.iter().map(i64::to_string).collect();
            Converted::or(found.map(PyValue::from), Expected::OneOf(allowed))
        }
        FieldType::StrEnum(values) | FieldType::Literal(values) => {
            let found = match value {
                Value::Str(text) if values.contains(text) => Some(PyValue::str(text)),
                _ => None,
            };
            Converted::or(found, Expected::OneOf(values.clone()))
        }
        _ => Converted::Not(Expected::Nothing),
    }
}

/// `str(pathlib.Path(text))`.
fn path(value: &Value) -> Option<PyValue> {
    let Value::Str(text) = value else { return None };
    let rooted = text.starts_with('/');
    // POSIX gives exactly two leading slashes a meaning of their own, and pathlib keeps them.
    let root = match (text.starts_with("//"), text.starts_with("///")) {
        (true, false) => "//",
        _ if rooted => "/",
        _ => "",
    };
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let joined = format!("{root}{}", parts.join("/"));
    Some(PyValue::Str(if joined.is_empty() { ".".to_owned() } else { joined }))
}

/// Takes the first type that holds the value as it is, else the first that can be made to.
fn union(judge: &mut Judge<'_>, kinds: &[FieldType], node: &Node, place: &Place<'_>) -> Converted {
    let exact = kinds.iter().find(|kind| {
        matches!(
            (kind, &node.value),
            (FieldType::Str, Value::Str(_))
                | (FieldType::Int, Value::Int(_))
                | (FieldType::Float, Value::Float(_))
                | (FieldType::Bool, Value::Bool(_))
        )
    });
    if let Some(kind) = exact {
        return try_convert(judge, kind, node, place);
    }
    for kind in kinds {
        if let Converted::Value(value) = convert_scalar(judge.schema.dialect, kind, &node.value) {
            return Converted::Value(value);
        }
    }
    Converted::Not(Expected::Int)
}

fn list(judge: &mut Judge<'_>, inner: &FieldType, node: &Node, place: &Place<'_>) -> Converted {
    let Value::Array(items) = &node.value else { return Converted::Not(Expected::List) };
    let mut converted = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let name = index.to_string();
        match coerce(judge, inner, item, &place.child(&name)) {
            Some(value) => converted.push(value),
            None => return Converted::Reported,
        }
    }
    Converted::Value(PyValue::List(converted))
}

fn dict(dialect: Dialect, value: &Value) -> Converted {
    match value {
        Value::Object(_) => Converted::Value(value.into()),
        // pydantic 1 tries `dict(value)`, which takes any sequence of pairs.
        _ if dialect == Dialect::Pydantic1 => {
            Converted::or(as_pairs(value).map(PyValue::Dict), Expected::Section)
        }
        _ => Converted::Not(Expected::Section),
    }
}

/// The first limit that the value breaks.
pub(super) fn broken_bound(bounds: &Bounds, value: &PyValue) -> Option<Bound> {
    let number = match value {
        PyValue::Int(value) => value.to_f64()?,
        PyValue::Float(value) => *value,
        _ => return None,
    };
    // Asked as "does it hold", because NaN holds for nothing.
    let broken = |limit: Option<f64>, holds: fn(f64, f64) -> bool, bound: fn(f64) -> Bound| {
        limit.filter(|&limit| !holds(number, limit)).map(bound)
    };
    broken(bounds.gt, |x, limit| x > limit, Bound::Above)
        .or_else(|| broken(bounds.ge, |x, limit| x >= limit, Bound::AtLeast))
        .or_else(|| broken(bounds.lt, |x, limit| x < limit, Bound::Below))
        .or_else(|| broken(bounds.le, |x, limit| x <= limit, Bound::AtMost))
}

/// Notes a broken limit; says whether all is well.
pub(super) fn within_bounds(
    judge: &mut Judge<'_>,
    bounds: &Bounds,
    value: &PyValue,
    node: &Node,
    place: &Place<'_>,
) -> bool {
    match broken_bound(bounds, value) {
        Some(bound) => {
            judge.report(ProblemKind::OutOfBounds(bound), place, node.span);
            false
        }
        None => true,
    }
}
