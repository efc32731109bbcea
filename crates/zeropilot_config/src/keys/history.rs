//! What each known engine version says about a key: from the schemas, never from the texts.

use crate::python::PyValue;
use crate::schema::{Bounds, Deprecation, EngineVersion, FieldType, Located, RawKey, Schema};

/// What a key takes.
#[derive(Debug, Clone)]
pub enum Takes<'s> {
    /// A value of a declared type, within bounds.
    Typed(&'s FieldType, &'s Bounds),
    /// One of some words.
    Words(Vec<&'s str>),
    /// Whatever the code that reads it makes of it.
    Anything,
    /// Keys of its own.
    Section,
}

/// A key in a version that reads it.
#[derive(Debug, Clone)]
pub struct Facts<'s> {
    /// What it takes.
    pub takes: Takes<'s>,
    /// What it is if it is not written; `None` where no default is named.
    pub default: Option<PyValue>,
    /// Set if it is deprecated.
    pub deprecated: Option<&'s Deprecation>,
    /// The engine's own name for it, where that can be written too.
    pub other_name: Option<&'s str>,
}

/// A key in one version.
#[derive(Debug, Clone)]
pub enum Presence<'s> {
    /// It is read.
    Read(Box<Facts<'s>>),
    /// Its mere presence ends the run, with this message.
    Refused(&'s str),
    /// Nobody reads it.
    Absent,
}

/// A key in all known versions, oldest first.
pub fn history(path: &str) -> Vec<(EngineVersion, Presence<'static>)> {
    EngineVersion::all().map(|version| (version, presence(version.schema(), path))).collect()
}

/// A key in one version.
pub fn presence<'s>(schema: &'s Schema, path: &str) -> Presence<'s> {
    if let Some(removed) = schema.removed(path) {
        return Presence::Refused(&removed.message);
    }
    match schema.locate(path) {
        Some(located) => Presence::Read(Box::new(facts(schema, path, located))),
        None => Presence::Absent,
    }
}

fn facts<'s>(schema: &'s Schema, path: &str, located: Located<'s>) -> Facts<'s> {
    let mut facts =
        Facts { takes: Takes::Section, default: None, deprecated: None, other_name: None };
    match located {
        Located::Section(_) => {}
        Located::Field(field) => {
            facts.deprecated = field.deprecated.as_ref();
            facts.other_name = field.alias.is_some().then_some(field.name.as_str());
            if schema.model_of(field).is_none() {
                facts.takes = Takes::Typed(&field.kind, &field.bounds);
                facts.default = Some(PyValue::from(&field.default));
            }
        }
        Located::Raw(key) => {
            if !is_section(schema, path) {
                facts.takes = match &key.choices {
                    Some(choices) => Takes::Words(choices.keys().map(String::as_str).collect()),
                    None => Takes::Anything,
                };
                facts.default = raw_default(schema, key);
            }
        }
        Located::HandedOn => facts.takes = Takes::Anything,
    }
    facts
}

fn is_section(schema: &Schema, path: &str) -> bool {
    let below =
        |section: &String| section.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    schema.raw_members(path).next().is_some() || schema.sections.keys().any(below)
}

/// What the loaded config holds if the key is not written.
fn raw_default(schema: &Schema, key: &RawKey) -> Option<PyValue> {
    let resolved = key.attributes.iter().find_map(|attribute| {
        let mut parts = attribute.split('.');
        let first = schema.resolved_defaults.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    });
    resolved.or(key.default.as_ref()).map(PyValue::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default(path: &str, version: &str) -> Option<PyValue> {
        let schema = EngineVersion::nearest(version).expect("a version").schema();
        match presence(schema, path) {
            Presence::Read(facts) => facts.default,
            _ => None,
        }
    }

    /// Expected values: `GRADIENT_CLIPPING_DEFAULT` and the fields of `DeepSpeedZeroConfig` in those releases.
    #[test]
    fn defaults_come_from_the_version_asked_about() {
        assert_eq!(default("gradient_clipping", "0.18.9"), Some(PyValue::Float(0.0)));
        assert_eq!(default("gradient_clipping", "0.19.8"), Some(PyValue::Float(1.0)));
        let pinned = "zero_optimization.offload_optimizer.pin_memory";
        assert_eq!(default(pinned, "0.18.9"), Some(PyValue::Bool(false)));
        assert_eq!(default(pinned, "0.19.8"), Some(PyValue::Bool(true)));
        let live = "zero_optimization.stage3_max_live_parameters";
        assert_eq!(default(live, "0.14.5"), Some(PyValue::Int(1_000_000_000.into())));
    }

    #[test]
    fn removal_absence_and_deprecation_are_told_apart() {
        let of = |path: &str, version: &str| {
            let schema = EngineVersion::nearest(version).expect("a version").schema();
            match presence(schema, path) {
                Presence::Read(facts) if facts.deprecated.is_some() => "deprecated",
                Presence::Read(_) => "read",
                Presence::Refused(_) => "refused",
                Presence::Absent => "absent",
            }
        };
        assert_eq!(of("elasticity", "0.14.5"), "read");
        assert_eq!(of("elasticity", "0.19.8"), "refused");
        assert_eq!(of("zero_optimization.zenflow", "0.14.5"), "absent");
        assert_eq!(of("zero_optimization.cpu_offload", "0.19.8"), "deprecated");
    }
}
