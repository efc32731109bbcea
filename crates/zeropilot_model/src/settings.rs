//! The values of a `config.json` as the config class sees them, for whoever needs more than the dimensions.

use serde_json::{Map, Value};

use crate::config::{Reader, facts};

/// A config with the defaults and other names of its family.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    object: Map<String, Value>,
    model_type: String,
}

impl Settings {
    pub(crate) fn new(model_type: &str, object: &Map<String, Value>) -> Self {
        Self { object: object.clone(), model_type: model_type.to_owned() }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let facts = facts().families.get(&self.model_type)?;
        Reader::new(&self.object, facts).value(key)
    }

    /// Whether the key has a value.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// A whole number; `None` where there is none.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.value(key)?.as_u64()
    }

    /// A switch; one that is not there is off.
    pub fn flag(&self, key: &str) -> bool {
        self.value(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A word.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_str()
    }

    /// Whether a rate, such as one of dropout, is above zero.
    pub fn is_above_zero(&self, key: &str) -> bool {
        self.value(key).and_then(Value::as_f64).is_some_and(|rate| rate > 0.0)
    }

    /// A list of words.
    pub fn words(&self, key: &str) -> Vec<&str> {
        let list = self.value(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}
