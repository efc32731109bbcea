//! What each engine version reads from a config file: the extracted facts under `knowledge/schema`.
//!
//! The files are written by asking the engine, never by hand, so a new release is a new file and
//! one line in [`KNOWN_VERSIONS`]. How values are judged against a schema is known in
//! [`crate::resolve`].

mod locate;
mod model;
mod version;

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::Deserialize;

pub use locate::Located;
pub use model::{Bounds, Deprecation, Field, FieldType, Model};
pub use version::{EngineVersion, KNOWN_VERSIONS, UnknownVersion};

/// How strictly a version's section models convert values: pydantic 1 and 2 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// pydantic 1, used up to DeepSpeed 0.14.
    Pydantic1,
    /// pydantic 2.
    Pydantic2,
}

/// A key that the engine reads with plain dictionary code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawKey {
    /// Dotted path; `*` stands for a name the user chooses.
    pub path: String,
    /// The default named where the key is read, if one is.
    #[serde(default)]
    pub default: Option<serde_json::Value>,
    /// Where the value stands unchanged in the loaded config object.
    #[serde(default)]
    pub attributes: Vec<String>,
    /// Which kinds of value the loader lets through, where it does not take them all.
    #[serde(default)]
    pub accepts: Option<Vec<String>>,
    /// Which words it takes, where it takes only some, and what each becomes if that differs.
    #[serde(default)]
    pub choices: Option<BTreeMap<String, Option<String>>>,
}

/// What the engine does where no single key shows it, found by trying.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behaviours {
    /// Stages that work with fp16 master weights.
    pub fp16_master_weights_stages: Vec<i64>,
    /// Stages that work with bf16 master weights.
    pub bf16_master_weights_stages: Vec<i64>,
    /// Whether `optimizer.params.max_grad_norm` is set to zero when fp16 is off.
    pub zeroes_max_grad_norm_in_fp32: bool,
    /// Whether `offload_optimizer.ratio` below 1 is refused outside stage 3, as it is meant to be.
    pub partial_offload_needs_stage_3: bool,
    /// Whether `zenflow.update_interval` below 1 is refused.
    pub zenflow_update_interval_at_least_one: bool,
    /// Whether keys of `data_efficiency.data_sampling` that nothing asks for are handed on.
    pub keeps_unknown_data_sampling_keys: bool,
    /// Sparse attention modes, each with the keys it reads and their defaults.
    pub sparse_attention_modes: BTreeMap<String, serde_json::Value>,
}

/// A key whose mere presence ends the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedKey {
    /// Dotted path.
    pub path: String,
    /// What the engine says about it.
    pub message: String,
}

/// Everything one engine version reads from a config.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The version, as the engine names itself.
    pub deepspeed: String,
    /// Which conversion rules its models follow.
    pub dialect: Dialect,
    /// Whether `deepspeed.initialize` turns the file into a dictionary before loading it.
    pub reads_file_first: bool,
    /// Dotted section path to the name of the model that reads it.
    pub sections: BTreeMap<String, String>,
    /// The section models, by class name.
    pub models: HashMap<String, Model>,
    /// Keys read without a model.
    pub keys: Vec<RawKey>,
    /// Keys that are refused when present.
    pub rejected_when_present: Vec<RemovedKey>,
    /// Answers to questions that no single key shows.
    pub behaviours: Behaviours,
    /// Optimizer names the engine knows, in lower case.
    pub optimizers: Vec<String>,
    /// What a config with nothing but a batch size resolves to.
    pub resolved_defaults: serde_json::Map<String, serde_json::Value>,
    #[serde(skip)]
    index: OnceLock<KeyIndex>,
}

/// Where the hand-read keys are in [`Schema::keys`].
#[derive(Debug)]
struct KeyIndex {
    by_path: HashMap<String, usize>,
    /// By the path of the section that holds them.
    by_section: HashMap<String, Vec<usize>>,
}

impl KeyIndex {
    fn new(keys: &[RawKey]) -> Self {
        let mut index = Self { by_path: HashMap::new(), by_section: HashMap::new() };
        for (position, key) in keys.iter().enumerate() {
            index.by_path.insert(key.path.clone(), position);
            if let Some((section, _)) = key.path.rsplit_once('.') {
                index.by_section.entry(section.to_owned()).or_default().push(position);
            }
        }
        index
    }
}

impl Schema {
    /// The model of a section.
    pub fn section_model(&self, section: &str) -> Option<&Model> {
        self.models.get(self.sections.get(section)?)
    }

    /// The hand-read key at a dotted path.
    pub fn raw_key(&self, path: &str) -> Option<&RawKey> {
        self.index().by_path.get(path).map(|&position| &self.keys[position])
    }

    fn index(&self) -> &KeyIndex {
        self.index.get_or_init(|| KeyIndex::new(&self.keys))
    }

    /// Whether the engine asks for this top-level key at all.
    pub fn reads_top_level(&self, key: &str) -> bool {
        self.raw_key(key).is_some()
            || self.sections.contains_key(key)
            || self.removed(key).is_some()
    }

    /// The refusal for a removed key.
    pub fn removed(&self, path: &str) -> Option<&RemovedKey> {
        self.rejected_when_present.iter().find(|removed| removed.path == path)
    }

    /// Names of all top-level keys, for suggestions.
    pub fn top_level_keys(&self) -> impl Iterator<Item = &str> {
        let raw = self.keys.iter().map(|key| key.path.as_str()).filter(|path| !path.contains('.'));
        raw.chain(self.sections.keys().map(String::as_str).filter(|path| !path.contains('.')))
    }

    /// Names of the keys read directly below a hand-read section; `*` if any name is taken.
    pub fn raw_members<'a>(&'a self, section: &str) -> impl Iterator<Item = &'a str> {
        let positions = self.index().by_section.get(section).map_or(&[][..], Vec::as_slice);
        positions.iter().map(|&position| {
            let path = self.keys[position].path.as_str();
            path.rsplit_once('.').map_or(path, |(_, key)| key)
        })
    }
}
