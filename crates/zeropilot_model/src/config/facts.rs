//! What transformers and PEFT know about each family, embedded.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// Everything in `knowledge/models/families.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Facts {
    /// By `model_type`.
    pub(crate) families: BTreeMap<String, FamilyFacts>,
    /// By the style of naming experts.
    pub(crate) lora_expert_names: BTreeMap<String, ExpertNames>,
}

/// One family.
#[derive(Debug, Deserialize)]
pub(crate) struct FamilyFacts {
    /// The class with the family's language-model head.
    pub(crate) language_model_class: String,
    /// The class that classifies sequences, if there is one.
    pub(crate) classifier_class: Option<String>,
    /// Defaults of the config class.
    pub(crate) defaults: BTreeMap<String, Value>,
    /// Other names of keys, and the key each stands for.
    pub(crate) aliases: BTreeMap<String, String>,
    /// What PEFT adapts if nothing is named.
    pub(crate) lora_targets: Option<Vec<String>>,
    /// How PEFT translates the names that experts had before they were stacked.
    pub(crate) lora_expert_names: Option<String>,
}

/// A translation of the names that the parts of experts had before they were stacked.
#[derive(Debug, Deserialize)]
pub(crate) struct ExpertNames {
    /// From the old name of a module to the end of a parameter's name.
    pub(crate) names: BTreeMap<String, String>,
    /// Parameters that hold several old modules, which must be adapted together.
    pub(crate) fused: BTreeMap<String, Vec<String>>,
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../knowledge/models/families.json"))
        .expect("the embedded facts are generated in this form")
});

/// The embedded facts.
pub(crate) fn facts() -> &'static Facts {
    &FACTS
}
