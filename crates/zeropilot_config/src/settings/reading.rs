//! Single values out of a resolved section.
//!
//! A resolved section has been converted by the engine's own rules, so a field that is there has the
//! type the schema promises; a field that is not there is one this version does not have.

use num_traits::ToPrimitive;
use zeropilot_units::Elements;

use crate::python::PyValue;

pub(super) fn flag(section: &PyValue, key: &str) -> bool {
    section.get(key).is_some_and(PyValue::is_true)
}

/// A switch that is on where this version does not have it, or leaves it open.
pub(super) fn flag_or_on(section: &PyValue, key: &str) -> bool {
    section.get(key).is_none_or(|value| *value == PyValue::None || value.is_true())
}

pub(super) fn count(section: &PyValue, key: &str, absent: u64) -> u64 {
    match section.get(key) {
        // More than 64 bits is as good as unlimited.
        Some(PyValue::Int(value)) => value.to_u64().unwrap_or(u64::MAX),
        _ => absent,
    }
}

pub(super) fn elements(section: &PyValue, key: &str) -> Elements {
    Elements(count(section, key, 0))
}

pub(super) fn strings(section: &PyValue, key: &str) -> Vec<String> {
    let Some(PyValue::List(items)) = section.get(key) else { return Vec::new() };
    let text = |item: &PyValue| match item {
        PyValue::Str(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

pub(super) fn ratio(section: &PyValue, key: &str, absent: f64) -> f64 {
    match section.get(key) {
        Some(PyValue::Float(value)) => *value,
        _ => absent,
    }
}
