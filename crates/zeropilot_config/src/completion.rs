//! Keys and values that can be written at a place in a config, however broken its text is.

use crate::constructors::Constructors;
use crate::front_end::fills_auto;
use crate::keys::{self, Facts, Presence, Takes, Unit, presence};
use crate::python::PyValue;
use crate::schema::{EngineVersion, FieldType};
use crate::syntax::{Slot, Span, cursor};

/// What can be written at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The text that is replaced, quotes included.
    pub span: Span,
    /// Where a comma is missing before it.
    pub comma: Option<usize>,
    /// Keys or values.
    pub choices: Vec<Choice>,
}

/// A key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The name of a key, or a value as it is written.
    pub label: String,
    /// The path of a key.
    pub path: Option<String>,
    /// Whether a key is a section.
    pub is_section: bool,
    /// What is written: the key with its quotes and its colon, or the value.
    pub head: String,
    /// What follows the colon, if the colon is written here.
    pub value: Option<Start>,
    /// What follows the value.
    pub tail: &'static str,
}

/// A value to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Keys in braces.
    Section,
    /// One of these, as they are written; the default first. Any, if there is none.
    OneOf(Vec<String>),
}

impl Completion {
    /// Of a byte offset in a text.
    pub fn at(text: &str, offset: usize, version: EngineVersion) -> Self {
        let at = cursor(text, offset);
        let section = at.sections.join(".");
        match at.slot {
            Slot::Key { span, has_colon, comma_before, comma_after, .. } => {
                let names = keys::members(version.schema(), &section).into_iter();
                let names = names.filter(|name| !at.present.contains(name));
                let tail = if comma_after { "," } else { "" };
                let choice = |name| Choice::key(&section, name, version, has_colon, tail);
                Self { span, comma: comma_before, choices: names.map(choice).collect() }
            }
            Slot::Value { key, span } => {
                let values = values(&joined(&section, &key), version).into_iter();
                Self { span, comma: None, choices: values.map(Choice::value).collect() }
            }
            Slot::Other => Self::default(),
        }
    }
}

impl Choice {
    fn key(
        section: &str,
        name: String,
        version: EngineVersion,
        has_colon: bool,
        tail: &'static str,
    ) -> Self {
        let path = joined(section, &name);
        let is_section = is_section(&path, version);
        let value = (!has_colon).then(|| match is_section {
            true => Start::Section,
            false => Start::OneOf(values(&path, version)),
        });
        Self {
            head: if has_colon { format!("\"{name}\"") } else { format!("\"{name}\": ") },
            label: name,
            path: Some(path),
            is_section,
            value,
            tail: if has_colon { "" } else { tail },
        }
    }

    fn value(text: String) -> Self {
        let (label, head) = (text.clone(), text);
        Self { label, path: None, is_section: false, head, value: None, tail: "" }
    }
}

impl Start {
    /// The value where nothing can be chosen; empty if any will do.
    pub fn plain(&self) -> &str {
        match self {
            Self::Section => "{}",
            Self::OneOf(values) => values.first().map_or("", String::as_str),
        }
    }
}

fn joined(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// What a version knows about a key that it reads.
pub fn facts(path: &str, version: EngineVersion) -> Option<Box<Facts<'static>>> {
    match presence(version.schema(), path) {
        Presence::Read(facts) => Some(facts),
        _ => None,
    }
}

fn is_section(path: &str, version: EngineVersion) -> bool {
    !keys::members(version.schema(), path).is_empty()
        || keys::canonical(path)
            .and_then(|path| keys::text(&path))
            .is_some_and(|text| text.unit == Unit::Section)
}

/// The values a key can have, as they are written; the default first.
fn values(path: &str, version: EngineVersion) -> Vec<String> {
    let mut found = Vec::new();
    let facts = facts(path, version);
    let text = keys::canonical(path).and_then(|path| keys::text(&path));
    match facts.as_ref().map(|facts| &facts.takes) {
        Some(Takes::Typed(kind, _)) => typed(kind, &mut found),
        Some(Takes::Words(words)) => found.extend(words.iter().map(|word| format!("\"{word}\""))),
        _ if text.is_some_and(|text| text.unit == Unit::Boolean) => switch(&mut found),
        _ => {}
    }
    let constructors = Constructors::of(version);
    match path {
        "optimizer.type" => {
            found
                .extend(constructors.deepspeed_optimizers.iter().map(|name| format!("\"{name}\"")));
        }
        "scheduler.type" => {
            found.extend(constructors.schedulers.keys().map(|name| format!("\"{name}\"")));
        }
        _ => {}
    }
    let default = facts.and_then(|facts| facts.default.clone());
    if let Some(default) = default.filter(|default| *default != PyValue::None) {
        let default = serde_json::to_string(&default).unwrap_or_default();
        found.retain(|value| *value != default);
        found.insert(0, default);
    }
    if fills_auto(path) {
        found.push("\"auto\"".to_owned());
    }
    found
}

fn typed(kind: &FieldType, found: &mut Vec<String>) {
    match kind {
        FieldType::Bool => switch(found),
        FieldType::IntEnum(values) => found.extend(values.iter().map(i64::to_string)),
        FieldType::StrEnum(words) | FieldType::Literal(words) => {
            found.extend(words.iter().map(|word| format!("\"{word}\"")));
        }
        FieldType::Optional(inner) => typed(inner, found),
        FieldType::Union(kinds) => kinds.iter().for_each(|kind| typed(kind, found)),
        _ => {}
    }
}

fn switch(found: &mut Vec<String>) {
    found.extend(["true".to_owned(), "false".to_owned()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the `|` of a text.
    fn at(marked: &str) -> Completion {
        let offset = marked.find('|').expect("a mark");
        Completion::at(&marked.replacen('|', "", 1), offset, EngineVersion::NEWEST)
    }

    fn labels(marked: &str) -> Vec<String> {
        at(marked).choices.into_iter().map(|choice| choice.label).collect()
    }

    fn choice(marked: &str, label: &str) -> Choice {
        let found = at(marked).choices.into_iter().find(|choice| choice.label == label);
        found.unwrap_or_else(|| panic!("no {label} in {marked}"))
    }

    #[test]
    fn keys_of_the_section_that_are_not_there_yet() {
        let keys = labels("{\"zero_optimization\": {\"stage\": 3, \"red|\n}}");
        assert!(keys.iter().any(|key| key == "reduce_bucket_size"), "{keys:?}");
        assert!(!keys.iter().any(|key| key == "stage" || key == "bf16"), "{keys:?}");
    }

    #[test]
    fn a_key_brings_its_colon_its_value_and_commas() {
        let text = "{\n\"bf16\": {}\n\"fp|\n\"train_batch_size\": 8}";
        let key = choice(text, "fp16");
        assert_eq!(
            (key.head.as_str(), key.value, key.tail),
            ("\"fp16\": ", Some(Start::Section), ",")
        );
        assert_eq!(at(text).comma, Some("{\n\"bf16\": {}".len()));
        let key = choice("{\"zero_optimization\": {\"st|\": 1}}", "stage");
        assert_eq!((key.head.as_str(), key.value, key.tail), ("\"stage\"", None, ""));
    }

    #[test]
    fn values_begin_with_the_default() {
        assert_eq!(labels("{\"zero_optimization\": {\"stage\": |}}"), ["0", "1", "2", "3"]);
        assert_eq!(
            labels("{\"bf16\": {\"enabled\": t|}}").last().map(String::as_str),
            Some("\"auto\"")
        );
        let types = labels("{\"optimizer\": {\"type\": \"|\"}}");
        assert!(types.iter().any(|name| name == "\"AdamW\"" || name == "\"adamw\""), "{types:?}");
        assert!(labels("{\"x\": [|]}").is_empty());
    }
}
