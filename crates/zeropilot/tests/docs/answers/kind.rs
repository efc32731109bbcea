//! Types of answers, read from their JSON Schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Any,
    Boolean,
    Integer,
    Number,
    Text,
    /// One of these texts.
    OneOf(Vec<String>),
    Named(String),
    List(Box<Kind>),
    Table(Box<Kind>),
    Nullable(Box<Kind>),
}

/// A member of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether it is always there.
    pub(crate) is_required: bool,
}

/// A type that has a name.
#[derive(Debug)]
pub(crate) enum Definition {
    Object(Vec<Field>),
    Alias(Kind),
}

fn texts(all: &[Value], key: Option<&str>) -> Option<Vec<String>> {
    let text = |one: &Value| key.map_or(Some(one), |key| one.get(key))?.as_str().map(str::to_owned);
    all.iter().map(text).collect()
}

impl Kind {
    pub(crate) fn of(schema: &Value) -> Self {
        let Some(schema) = schema.as_object() else { return Self::Any };
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return Self::Named(name.rsplit('/').next().unwrap_or_default().to_owned());
        }
        if let Some([one, null]) = list("anyOf").map(Vec::as_slice)
            && null["type"] == "null"
        {
            return Self::Nullable(Box::new(Self::of(one)));
        }
        if let Some(words) = list("enum").and_then(|all| texts(all, None)) {
            return Self::OneOf(words);
        }
        if let Some(words) = list("oneOf").and_then(|all| texts(all, Some("const"))) {
            return Self::OneOf(words);
        }
        match &schema.get("type") {
            None => Self::Any,
            Some(Value::Array(types)) => {
                let mut inner = schema.clone();
                inner.insert("type".to_owned(), types[0].clone());
                assert_eq!(types[1..], [Value::from("null")], "{types:?}");
                Self::Nullable(Box::new(Self::of(&Value::Object(inner))))
            }
            Some(Value::String(name)) => Self::plain(name, schema),
            Some(other) => panic!("a type {other}"),
        }
    }

    fn plain(name: &str, schema: &Map<String, Value>) -> Self {
        let of = |key: &str| Box::new(schema.get(key).map_or(Self::Any, Self::of));
        match name {
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::Text,
            "array" => Self::List(of("items")),
            "object" => Self::Table(of("additionalProperties")),
            other => panic!("a type {other}"),
        }
    }

    /// The name inside lists, tables and what may be missing.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::List(kind) | Self::Table(kind) | Self::Nullable(kind) => kind.name(),
            _ => None,
        }
    }
}

impl Definition {
    pub(crate) fn of(schema: &Value) -> Self {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Self::Alias(Kind::of(schema));
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            kind: Kind::of(schema),
            is_required: is_required(name),
        };
        Self::Object(properties.iter().map(field).collect())
    }
}

/// What a type is for, in a sentence.
pub(crate) fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// The names of all types that these need, in the order of the types.
pub(crate) fn reachable(roots: &[&str], types: &Map<String, Value>) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
    while let Some(name) = open.pop() {
        let definition = Definition::of(&types[&name]);
        if found.insert(name)
            && let Definition::Object(fields) = definition
        {
            open.extend(fields.iter().filter_map(|field| field.kind.name()).map(str::to_owned));
        }
    }
    types.keys().filter(|name| found.contains(*name)).cloned().collect()
}
