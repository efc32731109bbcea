//! A DeepSpeed config that someone wrote as YAML.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};

use crate::kind::DEEPSPEED_KEYS;

/// Nested deeper than any config.
const DEEPEST: usize = 32;

/// The config as JSON; `None` if the text is no YAML with the keys of a config.
pub(super) fn as_json(text: &str) -> Option<String> {
    let documents = Yaml::load_from_str(text).ok()?;
    let Value::Object(members) = value(documents.first()?, 0)? else { return None };
    let is_config =
        |members: &Map<String, Value>| DEEPSPEED_KEYS.iter().any(|key| members.contains_key(*key));
    // Frameworks take the same under a key of their own.
    let inner = ["deepspeed", "deepspeed_config"].iter().find_map(|key| members.get(*key));
    let config = match inner {
        _ if is_config(&members) => &members,
        Some(Value::Object(inner)) if is_config(inner) => inner,
        _ => return None,
    };
    let text = serde_json::to_string_pretty(config).ok()?;
    Some(format!("{text}\n"))
}

fn value(node: &Yaml<'_>, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    Some(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(on)) => Value::Bool(*on),
        Yaml::Value(Scalar::Integer(number)) => Value::Number((*number).into()),
        Yaml::Value(Scalar::FloatingPoint(number)) => Value::Number(Number::from_f64(**number)?),
        Yaml::Value(Scalar::String(text)) => Value::String(text.to_string()),
        Yaml::Sequence(items) => {
            Value::Array(items.iter().map(|item| value(item, depth + 1)).collect::<Option<_>>()?)
        }
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (key, member) in members {
                let Yaml::Value(Scalar::String(key)) = key else { return None };
                object.insert(key.to_string(), value(member, depth + 1)?);
            }
            Value::Object(object)
        }
        _ => return None,
    })
}
