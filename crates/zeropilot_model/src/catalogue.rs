//! Published models, by the names people type.
//!
//! The facts are `knowledge/models/catalogue.jsonl`: for each model the config keys that fix its shapes,
//! where they were read, its exact number of parameters and whether a published number confirms it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::ConfigError;
use crate::model::{Model, Weights};
use crate::nearest::nearest;

/// What is published about the size of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// A number of parameters.
    Exact(u64),
    /// A size such as `7B`.
    Size(String),
}

/// A published model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Its repository on the hub.
    #[serde(rename = "hub_id")]
    pub id: String,
    /// Names people type, and repositories with the same shapes.
    pub aliases: Vec<String>,
    /// The `model_type` of its config.
    pub model_type: String,
    /// `decoder`, `encoder` or `encoder-decoder`.
    pub kind: String,
    /// The keys of its config that fix its shapes.
    #[serde(rename = "config")]
    pub keys: Map<String, Value>,
    /// Its parameters, tied ones once.
    pub params_exact: u64,
    /// The parameters of its parts by their names, of a model that sees or hears.
    pub params_by_part: Option<BTreeMap<String, u64>>,
    /// The parameters one token meets, of a mixture.
    pub params_active_exact: Option<u64>,
    /// The parameters of routed experts.
    pub expert_params: Option<u64>,
    /// Parameters that never require a gradient.
    pub frozen_params: Option<u64>,
    /// Whether the output matrix is the embedding.
    pub output_tied: bool,
    /// The size that was published, of the stored tensors where it is the hub's.
    pub params_published: Published,
    /// Where that was read.
    pub params_published_source: Option<String>,
    /// Whether it confirms `params_exact`.
    pub verified: bool,
    /// Why a published count differs.
    pub mismatch: Option<String>,
    /// What else is worth knowing.
    pub note: Option<String>,
    /// Where the config was read.
    pub source: String,
}

impl Entry {
    /// Its config, as a `config.json` would hold it.
    pub fn config(&self) -> Map<String, Value> {
        let mut config = self.keys.clone();
        config.insert("model_type".to_owned(), Value::from(self.model_type.as_str()));
        config
    }

    /// The model, with the weights of its checkpoint.
    ///
    /// # Errors
    ///
    /// Never for the entries of the catalogue; a test builds them all.
    pub fn model(&self) -> Result<Model, ConfigError> {
        Model::from_object(&self.config(), Weights::Checkpoint)
    }

    /// Every name it is found by.
    fn names(&self) -> impl Iterator<Item = &str> {
        let whole = self.aliases.iter().map(String::as_str).chain([self.id.as_str()]);
        whole.flat_map(|name| [name].into_iter().chain(name.split_once('/').map(|(_, bare)| bare)))
    }
}

/// A name that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no built-in model `{name}`")]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
    /// Names that are in it, the nearest first.
    pub nearest: Vec<String>,
}

struct Catalogue {
    entries: Vec<Entry>,
    by_name: BTreeMap<String, usize>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let lines = const { zeropilot_knowledge::text("models/catalogue.jsonl") }.lines();
    let entries: Vec<Entry> = lines
        .map(|line| serde_json::from_str(line).expect("a test reads every embedded line"))
        .collect();
    let mut by_name = BTreeMap::new();
    // A repository's own name wins over the same name as another's alias.
    for (index, entry) in entries.iter().enumerate() {
        by_name.insert(key(&entry.id), index);
    }
    for (index, entry) in entries.iter().enumerate() {
        for name in entry.names() {
            by_name.entry(key(name)).or_insert(index);
        }
    }
    Catalogue { entries, by_name }
});

/// Case and the ways to part words do not matter.
fn key(name: &str) -> String {
    let parted = |c: char| c == '-' || c == '_' || c.is_whitespace();
    name.chars().filter(|c| !parted(*c)).flat_map(char::to_lowercase).collect()
}

/// All models.
pub fn entries() -> &'static [Entry] {
    &CATALOGUE.entries
}

/// The model of this name.
///
/// # Errors
///
/// If there is none; the error names those that are nearest.
pub fn find(name: &str) -> Result<&'static Entry, UnknownModel> {
    let index = CATALOGUE.by_name.get(&key(name.trim()));
    index.and_then(|index| CATALOGUE.entries.get(*index)).ok_or_else(|| {
        let names = CATALOGUE.entries.iter().flat_map(Entry::names);
        let nearest = nearest(name.trim(), names, 3).into_iter().map(str::to_owned).collect();
        UnknownModel { name: name.to_owned(), nearest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_find_models_by_the_names_they_type() {
        let cases = [
            ("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B"),
            ("Llama 3.1 8B", "meta-llama/Meta-Llama-3.1-8B"),
            ("qwen3-8b", "Qwen/Qwen3-8B"),
            ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B"),
            ("QWEN/QWEN3-30B-A3B", "Qwen/Qwen3-30B-A3B"),
            ("gpt2", "openai-community/gpt2"),
        ];
        for (name, id) in cases {
            assert_eq!(find(name).map(|entry| entry.id.as_str()), Ok(id), "{name}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_answered_with_what_was_meant() {
        let error = find("qwen3-8bb").unwrap_err();
        assert_eq!(error.nearest.first().map(String::as_str), Some("Qwen3-8B"), "{error:?}");
        assert_eq!(
            find("no such thing at all, nowhere").unwrap_err().nearest,
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_name_means_one_model() {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for entry in entries() {
            for name in entry.names() {
                let owner = owners.entry(key(name)).or_insert(&entry.id);
                assert_eq!(*owner, entry.id, "{name}");
            }
        }
    }
}
