//! A model of an unknown `model_type`: the known structure that is nearest stands in for it.
//!
//! The keys of the config decide, and the names of its tensors where files are at hand: both tell a mixture, a state
//! space or a block without a gate from a plain decoder. What the stand-in counts as parameters is an estimate unless
//! files were read; what it keeps as activations is off by what [`StandInClass::error`] says.

mod class;
mod error;
mod keys;
mod names;
mod sizes;
mod tree;

use serde_json::{Map, Value};

pub use class::StandInClass;
pub use error::ErrorRange;
pub(crate) use names::TensorNames;
pub use sizes::Sizes;

use crate::config::{ConfigError, TEXT_CONFIG, facts};
use crate::family::Family;
use crate::from_config::{dtype, parse};
use crate::model::{Model, Names, Weights};
use crate::safetensors::StoredModel;

use keys::Keys;

/// Where the parameters of a stand-in come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountedFrom {
    /// The sizes in the config, with the structure of the stand-in: an estimate.
    Config,
    /// The tensors themselves: exact.
    Tensors,
    /// A number of parameters that was asked for.
    Sizes,
}

/// Objects that hold the text model of a config.
const TEXT_CONFIGS: [&str; 4] = [TEXT_CONFIG, "llm_config", "language_config", "thinker_config"];

/// Objects that hold a part which sees or hears.
const OTHER_CONFIGS: [&str; 4] = ["vision_config", "audio_config", "vit_config", "speech_config"];

impl Model {
    /// The model of a config, built as one of this family whatever its `model_type` says.
    ///
    /// The sizes are read under any of the names that configs use for them.
    ///
    /// # Errors
    ///
    /// If the text is no config, a size that the family needs is not in it, or the family sees or hears: nobody can say
    /// what tower another model has.
    pub fn like(family: Family, config: &str) -> Result<Self, ConfigError> {
        if let Some(key) = other_part(family) {
            return Err(ConfigError::NotModelled { key: key.to_owned() });
        }
        let whole = parse(config)?;
        let (class, names) = (StandInClass::of(family), TensorNames::default());
        let text = text_object(&whole);
        let keys = Keys::read(text, class)?;
        let object = tree::object(&keys, text, family, class, &names);
        let model = Self::build(family.model_type(), &object, Weights::Checkpoint)?;
        model.likened(&whole, class)
    }

    /// Whether another structure stands in for its own, and of which class it is.
    pub fn stand_in(&self) -> Option<StandInClass> {
        match &self.names {
            Names::Likeness { class, .. } => Some(*class),
            _ => None,
        }
    }

    /// The model of an object whose `model_type` is not known, from its keys and the names of its tensors.
    pub(crate) fn of_unknown_type(
        object: &Map<String, Value>,
        names: &TensorNames,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        let text = text_object(object);
        let known =
            text.get("model_type").and_then(Value::as_str).and_then(Family::from_model_type);
        let (class, model) = match known.filter(|family| other_part(*family).is_none()) {
            // The language model of an unknown whole may well be known.
            Some(family) => {
                let mut text = text.clone();
                text.remove("architectures");
                (StandInClass::of(family), Self::build(family.model_type(), &text, weights)?)
            }
            None => {
                let class = StandInClass::seen_in(text, names);
                let keys = Keys::read(text, class)?;
                let family = tree::family(&keys, text, class, names);
                let text = tree::object(&keys, text, family, class, names);
                (class, Self::build(family.model_type(), &text, weights)?)
            }
        };
        model.likened(object, class)
    }

    /// The model as a likeness of the one that a config describes.
    fn likened(
        mut self,
        config: &Map<String, Value>,
        class: StandInClass,
    ) -> Result<Self, ConfigError> {
        let has_other =
            OTHER_CONFIGS.iter().any(|key| config.get(*key).is_some_and(Value::is_object));
        let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
        self.dtype = dtype(config)?.or(self.dtype);
        self.names = Names::Likeness {
            of: model_type.to_owned(),
            class,
            counted: CountedFrom::Config,
            is_language_only: has_other || !Keys::has_width(config),
        };
        Ok(self)
    }

    /// The model with the parameters of its files, and everything else of the one that stands in for it.
    pub(crate) fn with_tensors_of(&self, stored: &StoredModel) -> Option<Self> {
        let Names::Likeness { of, class, is_language_only, .. } = &self.names else { return None };
        let is_tied = self.has_tied_output() || names::has_no_output(stored);
        let (root, output) = names::tree(stored, is_tied);
        let count = root.count().ok()?;
        Some(Self {
            root,
            count,
            output,
            // Files do not tell the order of registration.
            last: None,
            dtype: self.dtype.or_else(|| stored.main_dtype()),
            names: Names::Likeness {
                of: of.clone(),
                class: *class,
                counted: CountedFrom::Tensors,
                is_language_only: *is_language_only,
            },
            ..self.clone()
        })
    }
}

/// The config of the text model, which is the whole config where that has a width.
fn text_object(object: &Map<String, Value>) -> &Map<String, Value> {
    if Keys::has_width(object) {
        return object;
    }
    let inner = TEXT_CONFIGS.iter().find_map(|key| object.get(*key).and_then(Value::as_object));
    inner.map_or(object, text_object)
}

/// The key of a part of a family that sees or hears.
fn other_part(family: Family) -> Option<&'static str> {
    let sections = &facts().families.get(family.model_type())?.config.sections;
    sections.keys().map(String::as_str).find(|key| *key != TEXT_CONFIG)
}
