//! `model.safetensors.index.json`: which file holds which tensor.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The name of the index.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// The name of the file of a model that has only one.
pub const SINGLE_FILE: &str = "model.safetensors";

/// More files than any model has.
const MOST_SHARDS: usize = 4096;

/// Why an index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It is no JSON of the right form.
    #[error("the index is malformed: {message}")]
    NotAnIndex {
        /// What the reader says.
        message: String,
    },
    /// It names a file that does not lie beside it.
    #[error("the index names `{0}`, which is not a plain file name")]
    NotAFileName(String),
    /// It names more files than any model has.
    #[error("the index names {0} files, more than the limit of 4096")]
    TooManyShards(usize),
}

#[derive(Deserialize)]
struct Raw {
    weight_map: BTreeMap<String, String>,
}

/// Which file holds which tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardIndex {
    /// From tensor to file.
    pub files: BTreeMap<String, String>,
}

impl ShardIndex {
    /// Reads the text of an index.
    ///
    /// # Errors
    ///
    /// If it is none, or names files elsewhere.
    pub fn parse(text: &str) -> Result<Self, IndexError> {
        let Raw { weight_map } = serde_json::from_str(text)
            .map_err(|error| IndexError::NotAnIndex { message: error.to_string() })?;
        let index = Self { files: weight_map };
        let shards = index.shards();
        if shards.len() > MOST_SHARDS {
            return Err(IndexError::TooManyShards(shards.len()));
        }
        match shards.iter().find(|name| !is_file_name(name)) {
            Some(name) => Err(IndexError::NotAFileName((*name).to_owned())),
            None => Ok(index),
        }
    }

    /// The files, each once, in order.
    pub fn shards(&self) -> BTreeSet<&str> {
        self.files.values().map(String::as_str).collect()
    }
}

/// The index comes from a stranger: it may not lead out of its directory.
fn is_file_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() < 256 && !name.starts_with('.') && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_listed_once() {
        let text = r#"{"metadata": {}, "weight_map": {"a": "m-2.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}}"#;
        let index = ShardIndex::parse(text).unwrap();
        assert_eq!(
            index.shards().into_iter().collect::<Vec<_>>(),
            ["m-1.safetensors", "m-2.safetensors"]
        );
    }

    #[test]
    fn an_index_does_not_lead_out_of_its_directory() {
        for name in ["../x", "/etc/passwd", "a/b", "..", "", "a\\\\b", "C:x"] {
            let text = format!(r#"{{"weight_map": {{"a": "{name}"}}}}"#);
            assert!(matches!(ShardIndex::parse(&text), Err(IndexError::NotAFileName(_))), "{name}");
        }
    }
}
