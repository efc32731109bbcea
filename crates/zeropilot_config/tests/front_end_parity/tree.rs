//! Config trees without places: made from JSON, changed by dotted keys, written as text.

use num_bigint::BigInt;
use serde_json::{Value as Json, json};
use zeropilot_config::syntax::{Member, Node, Span, Value};

/// A tree of the JSON value.
pub(crate) fn node(json: &Json) -> Node {
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.to_string().parse::<BigInt>() {
            Ok(int) => Value::Int(int),
            Err(_) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Str(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(node).collect()),
        Json::Object(members) => Value::Object(
            members.iter().map(|(key, value)| new_member(key, node(value).value)).collect(),
        ),
    };
    Node { span: Span::default(), value }
}

fn new_member(key: &str, value: Value) -> Member {
    Member {
        key: key.to_owned(),
        key_span: Span::default(),
        value: Node { span: Span::default(), value },
    }
}

pub(crate) fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

/// The value under a dotted key.
pub(crate) fn lookup<'a>(root: &'a Node, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(root, |node, part| match &node.value {
            Value::Object(members) => {
                members.iter().rev().find(|member| member.key == part).map(|member| &member.value)
            }
            _ => None,
        })
        .map(|node| &node.value)
}

/// Sets or removes a dotted key, making the sections it needs out of whatever is there.
pub(crate) fn set(config: &mut Node, path: &str, value: Option<Value>) {
    let Value::Object(members) = &mut config.value else { return };
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let position = members.iter().position(|member| member.key == key);
    match (rest, value, position) {
        (None, None, Some(position)) => {
            members.remove(position);
        }
        (None, Some(value), Some(position)) => members[position].value.value = value,
        (None, Some(value), None) => members.push(new_member(key, value)),
        (Some(rest), value, Some(position)) => set(&mut members[position].value, rest, value),
        (Some(rest), Some(value), None) => {
            let mut section = Node { span: Span::default(), value: Value::Object(Vec::new()) };
            set(&mut section, rest, Some(value));
            members.push(new_member(key, section.value));
        }
        (_, None, None) => {}
    }
}

/// Adds a key at the root, whether it is there already or not, dots and all.
pub(crate) fn push(config: &mut Node, key: &str, value: Value) {
    if let Value::Object(members) = &mut config.value {
        members.push(new_member(key, value));
    }
}

/// The tree with one member less, for every member.
pub(crate) fn smaller(node: &Node) -> Vec<Node> {
    let Value::Object(members) = &node.value else { return Vec::new() };
    let with = |members: Vec<Member>| Node { span: node.span, value: Value::Object(members) };
    let mut trees = Vec::new();
    for index in 0..members.len() {
        let mut fewer = members.clone();
        fewer.remove(index);
        trees.push(with(fewer));
        for inner in smaller(&members[index].value) {
            let mut changed = members.clone();
            changed[index].value = inner;
            trees.push(with(changed));
        }
    }
    trees
}

/// A tree as JSON text, duplicates included.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "NaN".to_owned(),
        Value::Float(value) if value.is_infinite() => {
            if *value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Value::Float(value) => format!("{value:?}"),
        Value::Str(value) => json!(value).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| text_of(&item.value)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|member| format!("{}:{}", json!(member.key), text_of(&member.value.value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}
