//! The values of a `config.json` as the config class sees them, for whoever needs more than the dimensions.

use serde_json::{Map, Value};

use crate::config::{ConfigFacts, Reader};

/// A config with the defaults and other names of its class.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    object: Map<String, Value>,
    facts: &'static ConfigFacts,
}

impl Settings {
    pub(crate) fn new(reader: &Reader<'_>) -> Self {
        Self { object: reader.object().clone(), facts: reader.facts() }
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.object, self.facts)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.reader().value(key)
    }

    /// The sub-config under a key such as `vision_config`, with the defaults and other names of its own class.
    ///
    /// Files that keep the keys of the text model at the top have a `text_config` too. `None` if the model has no such
    /// sub-config.
    pub fn section(&self, key: &str) -> Option<Settings> {
        let section = self.reader().section(key).ok()?;
        Some(Settings::new(&section.reader))
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

    /// A list of whole numbers, such as those of layers; empty where there is none.
    pub fn numbers(&self, key: &str) -> Vec<u64> {
        let list = self.value(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// A list of words.
    pub fn words(&self, key: &str) -> Vec<&str> {
        let list = self.value(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}
