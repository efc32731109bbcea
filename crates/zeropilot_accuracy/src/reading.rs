//! How names in the rows are understood: `knowledge/field/reading.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_cluster::AttentionKernel;

use crate::recipe::RecipeReading;

/// A model by another name.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ModelName {
    pub(crate) catalogue: String,
    /// What is not the same.
    pub(crate) differs: Option<String>,
}

/// Which fused attention ran.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Attention {
    First,
    #[default]
    Second,
    Latest,
}

impl From<Attention> for AttentionKernel {
    fn from(attention: Attention) -> Self {
        match attention {
            Attention::First => Self::First,
            Attention::Second => Self::Second,
            Attention::Latest => Self::Latest,
        }
    }
}

/// A model that is in no catalogue, as a config.json.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ModelShape {
    pub(crate) config: serde_json::Value,
    pub(crate) differs: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum Word {
    #[serde(rename = "all-linear")]
    AllLinear,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Modules {
    Word(Word),
    Names(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LoraReading {
    pub(crate) targets: Modules,
    #[serde(default)]
    pub(crate) saved: Vec<String>,
}

/// How long the samples of a source or of a dataset are before they are cut.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Lengths {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) least: u64,
    /// The longest, where it is known.
    pub(crate) most: Option<u64>,
}

/// How a source printed bytes.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Unit {
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Reading {
    /// How runs of a source were made; the first that matches a row is its own.
    pub(crate) recipes: Vec<RecipeReading>,
    pub(crate) units: BTreeMap<String, Unit>,
    pub(crate) lengths: BTreeMap<String, Lengths>,
    pub(crate) models: BTreeMap<String, ModelName>,
    pub(crate) lora_targets: BTreeMap<String, LoraReading>,
    pub(crate) shapes: BTreeMap<String, ModelShape>,
    pub(crate) networks: BTreeMap<String, String>,
    pub(crate) cards: BTreeMap<String, String>,
    /// Which attention a source ran, where it was not the usual.
    pub(crate) attention: BTreeMap<String, Attention>,
}

pub(crate) static READING: LazyLock<Reading> = LazyLock::new(|| {
    let text = include_str!("../../../knowledge/field/reading.json");
    serde_json::from_str(text).expect("a test reads the embedded file")
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::rows;

    #[test]
    fn every_reading_is_of_a_row_and_leads_to_the_catalogue() {
        for (name, model) in &READING.models {
            assert!(rows().iter().any(|row| row.model == *name), "{name}");
            let found = zeropilot_model::catalogue::find(&model.catalogue);
            assert_eq!(found.map(|entry| &entry.id), Ok(&model.catalogue));
        }
        for targets in READING.lora_targets.keys() {
            assert!(
                rows().iter().any(|row| row.lora_targets.as_ref() == Some(targets)),
                "{targets}"
            );
        }
    }
}
