//! A whole section against its model.

use super::checks;
use super::coerce::{coerce, within_bounds};
use crate::judge::{Judge, Place, get, member};
use crate::nearest::nearest;
use crate::problem::{Expected, ProblemKind};
use crate::python::{PyValue, is_auto, is_true};
use crate::schema::{Dialect, Field, FieldType, Model};
use crate::syntax::{Member, Node, Value};

/// A top-level section, handed to the model as keyword arguments: only an object will do.
pub(crate) fn read_section(
    judge: &mut Judge<'_>,
    model: &Model,
    node: &Node,
    place: &Place<'_>,
) -> Option<PyValue> {
    let members = judge.section(node, place)?;
    read_members(judge, model, members, node, place)
}

/// A nested section, which pydantic itself turns into the model.
pub(crate) fn read_model(
    judge: &mut Judge<'_>,
    model: &Model,
    node: &Node,
    place: &Place<'_>,
) -> Option<PyValue> {
    if let Value::Object(members) = &node.value {
        return read_members(judge, model, members, node, place);
    }
    if checks::takes_null(model) && matches!(node.value, Value::Null) {
        return read_members(judge, model, &[], node, place);
    }
    if judge.schema.dialect == Dialect::Pydantic1
        && let Some(pairs) = as_pairs(&node.value)
        && pairs.is_empty()
    {
        return read_members(judge, model, &[], node, place);
    }
    judge.wrong(Expected::Section, node, place);
    None
}

/// `dict(value)` for a value that is not an object: a sequence of pairs.
pub(super) fn as_pairs(value: &Value) -> Option<Vec<(String, PyValue)>> {
    match value {
        Value::Array(items) => items.iter().map(pair).collect(),
        Value::Str(text) if text.is_empty() => Some(Vec::new()),
        _ => None,
    }
}

fn pair(node: &Node) -> Option<(String, PyValue)> {
    match &node.value {
        Value::Array(items) if items.len() == 2 => match &items[0].value {
            Value::Str(key) => Some((key.clone(), (&items[1]).into())),
            _ => None,
        },
        Value::Str(text) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next(), characters.next()) {
                (Some(key), Some(value), None) => {
                    Some((key.to_string(), PyValue::Str(value.to_string())))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn read_members(
    judge: &mut Judge<'_>,
    model: &Model,
    members: &[Member],
    node: &Node,
    place: &Place<'_>,
) -> Option<PyValue> {
    let before = judge.problems.len();
    let keep_auto =
        !model.drops_auto || get(members, "strict").is_some_and(|node| is_true(&node.value));
    let counts = |member: &Member| {
        keep_auto || !is_auto(&member.value.value) || member.key == "replace_method"
    };
    if model.drops_auto
        && let Some(this) = member(members, "self")
    {
        // The model's constructor already has an argument of that name.
        judge.report(
            ProblemKind::UnknownKey { nearest: None },
            &place.child("self"),
            this.key_span,
        );
    }

    let mut fields = Vec::with_capacity(model.fields.len());
    let mut given = Vec::new();
    for field in &model.fields {
        let written = [Some(field.key()), field.alias.as_ref().map(|_| field.name.as_str())];
        let found = written
            .into_iter()
            .flatten()
            .find_map(|key| member(members, key).filter(|m| counts(m)));
        let value = match found {
            Some(member) => {
                given.push((field, member));
                read_field(judge, model, field, member, place)
            }
            None => Some(default_field(judge, field)),
        };
        if let Some(value) = value {
            fields.push((field.name.clone(), value));
        }
    }
    unknown_keys(judge, model, members, &given, counts, place);
    if judge.problems.len() > before {
        return None;
    }
    let mut section = PyValue::Dict(fields);
    checks::after(judge, model, &mut section, &given, node, place);
    move_deprecated(judge, model, &mut section, &given, place);
    (judge.problems.len() == before).then_some(section)
}

fn read_field(
    judge: &mut Judge<'_>,
    model: &Model,
    field: &Field,
    member: &Member,
    place: &Place<'_>,
) -> Option<PyValue> {
    let place = place.child(&member.key);
    if !checks::before(judge, model, field, &member.value, &place) {
        return None;
    }
    let replaced = checks::replaced(model, field, &member.value);
    let node = replaced.as_ref().unwrap_or(&member.value);
    let value = coerce(judge, &field.kind, node, &place)?;
    within_bounds(judge, &field.bounds, &value, node, &place).then_some(value)
}

fn unknown_keys(
    judge: &mut Judge<'_>,
    model: &Model,
    members: &[Member],
    given: &[(&Field, &Member)],
    counts: impl Fn(&Member) -> bool,
    place: &Place<'_>,
) {
    for member in members {
        let reserved = model.drops_auto && (member.key == "strict" || member.key == "self");
        if reserved || !counts(member) || given.iter().any(|(_, used)| std::ptr::eq(*used, member))
        {
            continue;
        }
        let kind = match model.field_for_key(&member.key) {
            Some(field) => ProblemKind::SpeltTwice { used: field.key().to_owned() },
            None => {
                let keys =
                    model.fields.iter().filter(|field| field.deprecated.is_none()).map(Field::key);
                ProblemKind::UnknownKey { nearest: nearest(&member.key, keys) }
            }
        };
        judge.report(kind, &place.child(&member.key), member.key_span);
    }
}

/// A deprecated key gives its value to the key that replaced it and disappears.
fn move_deprecated(
    judge: &mut Judge<'_>,
    model: &Model,
    section: &mut PyValue,
    given: &[(&Field, &Member)],
    place: &Place<'_>,
) {
    for field in &model.fields {
        let Some(deprecation) = field.deprecated.as_ref().filter(|deprecation| deprecation.moves)
        else {
            continue;
        };
        let Some((_, member)) = given.iter().find(|(used, _)| used.name == field.name) else {
            continue;
        };
        let Some(old) = section.remove(&field.name) else { continue };
        let Some(target) = model.field(&deprecation.new) else { continue };
        if given.iter().any(|(used, _)| used.name == target.name) {
            let kind = ProblemKind::DeprecatedTogether { new: target.key().to_owned() };
            judge.report(kind, &place.child(&member.key), member.key_span);
            continue;
        }
        let value = if deprecation.converts { offload_to_cpu(judge, target, &old) } else { old };
        section.set(&target.name, value);
    }
}

/// What `cpu_offload: true` used to mean.
fn offload_to_cpu(judge: &Judge<'_>, target: &Field, old: &PyValue) -> PyValue {
    let FieldType::Optional(inner) = &target.kind else { return PyValue::None };
    let FieldType::Model(name) = inner.as_ref() else { return PyValue::None };
    match judge.schema.models.get(name) {
        Some(model) if old.is_true() => {
            let mut offload = default_of(judge, model);
            offload.set("device", PyValue::str("cpu"));
            offload
        }
        _ => PyValue::None,
    }
}

/// The section when nothing is written in it.
fn default_of(judge: &Judge<'_>, model: &Model) -> PyValue {
    let fields = model.fields.iter().map(|field| (field.name.clone(), default_field(judge, field)));
    let mut section = PyValue::Dict(fields.collect());
    checks::derive(model, &mut section);
    section
}

fn default_field(judge: &Judge<'_>, field: &Field) -> PyValue {
    match (&field.kind, &field.default) {
        (FieldType::Model(name), _) => match judge.schema.models.get(name) {
            Some(model) => default_of(judge, model),
            None => PyValue::None,
        },
        // Defaults are validated too: a whole number becomes a float where one is declared.
        (FieldType::Float, serde_json::Value::Number(number)) => {
            PyValue::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        (_, default) => default.into(),
    }
}
