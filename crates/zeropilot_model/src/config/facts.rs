//! What transformers and PEFT know about each family, embedded.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Everything in `knowledge/models/families.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Facts {
    /// By `model_type`.
    pub(crate) families: BTreeMap<String, FamilyFacts>,
    /// Classes of sub-configs that are no family, by `model_type`.
    pub(crate) parts: BTreeMap<String, ConfigFacts>,
    /// By the style of naming experts.
    pub(crate) lora_expert_names: BTreeMap<String, ExpertNames>,
}

/// What a config class fills in and renames.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct ConfigFacts {
    /// Defaults of its keys.
    pub(crate) defaults: BTreeMap<String, Value>,
    /// Other names of keys, and the key each stands for.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Its sub-configs.
    #[serde(default)]
    pub(crate) sections: BTreeMap<String, SectionFacts>,
}

/// A sub-config.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct SectionFacts {
    /// The class it is read with.
    pub(crate) model_type: String,
    /// Whether its own `model_type` can name another class.
    pub(crate) replaceable: bool,
    /// Whether its keys are at the top of a file that leaves it out.
    pub(crate) flat: bool,
    /// Its keys where the file leaves it out.
    pub(crate) left_out: Map<String, Value>,
}

/// One family.
#[derive(Debug, Deserialize)]
pub(crate) struct FamilyFacts {
    /// The class with the family's language-model head.
    pub(crate) language_model_class: String,
    /// The class that classifies sequences, if there is one.
    pub(crate) classifier_class: Option<String>,
    /// The class without any head, as embedding models use it.
    pub(crate) base_class: Option<String>,
    /// Its config class.
    #[serde(flatten)]
    pub(crate) config: ConfigFacts,
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
    serde_json::from_str(const { zeropilot_knowledge::text("models/families.json") })
        .expect("the embedded facts are generated in this form")
});

/// The embedded facts.
pub(crate) fn facts() -> &'static Facts {
    &FACTS
}

impl Facts {
    /// The config class of a `model_type`, be it a family or a part of one.
    pub(crate) fn config(&self, model_type: &str) -> Option<&ConfigFacts> {
        let family = self.families.get(model_type).map(|family| &family.config);
        family.or_else(|| self.parts.get(model_type))
    }
}
