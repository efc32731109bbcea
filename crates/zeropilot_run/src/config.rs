//! A config as data, from the language the engine reads: Hjson, of which JSON is a part.

use std::fs;
use std::path::Path;

use serde_json::{Map, Number, Value};
use zeropilot_config::syntax::{self, Node, parse_hjson, parse_json};

/// The config in a file; `None` if it cannot be read or is no object.
pub(crate) fn read_config(path: &Path) -> Option<Map<String, Value>> {
    parse(&fs::read_to_string(path).ok()?)
}

fn parse(text: &str) -> Option<Map<String, Value>> {
    let document = parse_json(text).or_else(|_| parse_hjson(text)).ok()?;
    match value(document.root())? {
        Value::Object(config) => Some(config),
        _ => None,
    }
}

/// Numbers that JSON cannot hold have no value here.
fn value(node: &Node) -> Option<Value> {
    Some(match &node.value {
        syntax::Value::Null => Value::Null,
        syntax::Value::Bool(value) => Value::Bool(*value),
        syntax::Value::Int(value) => Value::Number(value.to_string().parse().ok()?),
        syntax::Value::Float(value) => Value::Number(Number::from_f64(*value)?),
        syntax::Value::Str(value) => Value::String(value.clone()),
        syntax::Value::Array(items) => {
            Value::Array(items.iter().map(value).collect::<Option<Vec<_>>>()?)
        }
        syntax::Value::Object(members) => {
            let pair = |member: &syntax::Member| Some((member.key.clone(), value(&member.value)?));
            Value::Object(members.iter().map(pair).collect::<Option<Map<_, _>>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_bare_keys_are_read_as_the_engine_does() {
        let text = "{\n  # of the team\n  train_batch_size: 8\n  zero_optimization: {stage: 2, reduce_bucket_size: 5e8}\n}";
        let config = parse(text).expect("a config");
        assert_eq!(config["train_batch_size"], 8);
        assert_eq!(config["zero_optimization"]["stage"], 2);
        assert_eq!(config["zero_optimization"]["reduce_bucket_size"].as_f64(), Some(5e8));
        assert!(parse("[1]").is_none() && parse("{").is_none());
    }
}
