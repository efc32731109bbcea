//! From a `config.json` to a model: which family builds it, and from which keys.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::architecture::TooManyElements;
use crate::config::{ConfigError, Reader, ValueKind, facts};
use crate::dtype::Dtype;
use crate::family::{Context, Family, Head};
use crate::model::{Coverage, Model, Names, Weights};
use crate::nearest::nearest;
use crate::settings::Settings;

/// A model whose code is not part of transformers, and the family with the same shapes.
struct StandIn {
    model_type: &'static str,
    family: &'static str,
    /// Its own names of keys, and those of the family.
    keys: &'static [(&'static str, &'static str)],
}

const STAND_INS: &[StandIn] = &[
    StandIn { model_type: "baichuan", family: "llama", keys: &[] },
    StandIn {
        model_type: "chatglm",
        family: "glm",
        keys: &[
            ("ffn_hidden_size", "intermediate_size"),
            ("num_layers", "num_hidden_layers"),
            ("multi_query_group_num", "num_key_value_heads"),
            ("kv_channels", "head_dim"),
            ("padded_vocab_size", "vocab_size"),
            ("seq_length", "max_position_embeddings"),
            ("add_qkv_bias", "attention_bias"),
        ],
    },
    StandIn { model_type: "internlm2", family: "llama", keys: &[] },
    StandIn { model_type: "internlm3", family: "llama", keys: &[] },
    StandIn { model_type: "kimi_k2", family: "deepseek_v3", keys: &[] },
    StandIn { model_type: "minicpm", family: "llama", keys: &[] },
];

/// Whose `tie_word_embeddings` counts for a text model inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tying {
    /// That of the whole, on if it is not given.
    Outer,
    /// Either of them switches it on.
    Either,
    /// That of the text config.
    Inner,
}

/// A model with a text model inside.
struct WithTextPart {
    model_type: &'static str,
    /// The `model_type` of the text model if its config does not say.
    text: &'static str,
    tying: Tying,
}

const WITH_TEXT_PART: &[WithTextPart] = &[
    WithTextPart { model_type: "gemma3", text: "gemma3_text", tying: Tying::Outer },
    WithTextPart { model_type: "llama4", text: "llama4_text", tying: Tying::Inner },
    WithTextPart { model_type: "mistral3", text: "mistral", tying: Tying::Outer },
    WithTextPart { model_type: "qwen2_vl", text: "qwen2_vl_text", tying: Tying::Either },
    WithTextPart { model_type: "qwen2_5_vl", text: "qwen2_5_vl_text", tying: Tying::Either },
];

/// Text models inside others that have the shapes of a family under their own `model_type`.
const TEXT_TYPES: &[(&str, Family)] =
    &[("qwen2_vl_text", Family::Qwen2), ("qwen2_5_vl_text", Family::Qwen2)];

impl Model {
    /// The model that a `config.json` describes, with the weights of its checkpoint.
    ///
    /// # Errors
    ///
    /// If the text is no config, names a family that is not known, or describes an impossible model.
    pub fn from_config(text: &str) -> Result<Self, ConfigError> {
        Self::from_config_with(text, Weights::Checkpoint)
    }

    /// As [`Model::from_config`], with weights from where they are said to come.
    ///
    /// # Errors
    ///
    /// As [`Model::from_config`].
    pub fn from_config_with(text: &str, weights: Weights) -> Result<Self, ConfigError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ConfigError::NotJson { message: error.to_string() })?;
        match value {
            Value::Object(object) => Self::from_object(&object, weights),
            other => Err(ConfigError::NotAnObject { found: ValueKind::from(&other) }),
        }
    }

    pub(crate) fn from_object(
        object: &Map<String, Value>,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        let model_type = match object.get("model_type") {
            Some(Value::String(model_type)) => model_type.as_str(),
            _ => return Err(ConfigError::NoModelType),
        };
        if let Some(known) = STAND_INS.iter().find(|known| known.model_type == model_type) {
            let mut model = Self::build(known.family, &renamed(object, known.keys), weights)?;
            model.names = Names::StandIn { of: model_type.to_owned() };
            return Ok(model);
        }
        if let Some(known) = WITH_TEXT_PART.iter().find(|known| known.model_type == model_type) {
            let mut model = Self::text_part(known, object, weights)?;
            model.coverage = Coverage::TextPart { of: model_type.to_owned() };
            return Ok(model);
        }
        Self::build(model_type, object, weights)
    }

    /// The text model of a config that holds it under `text_config`, or, in older files, as its own keys.
    fn text_part(
        whole: &WithTextPart,
        object: &Map<String, Value>,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        let Some(Value::Object(text)) = object.get("text_config") else {
            return Self::build(whole.text, object, weights);
        };
        let said = text.get("model_type").and_then(Value::as_str);
        let model_type = said.filter(|said| family(said).is_some()).unwrap_or(whole.text);
        let mut text = text.clone();
        let tied = "tie_word_embeddings";
        let (outer, inner) = (object.get(tied), text.get(tied));
        let tying = match whole.tying {
            Tying::Outer => outer.cloned().or(Some(Value::Bool(true))),
            Tying::Either if outer == Some(&Value::Bool(true)) => outer.cloned(),
            Tying::Either | Tying::Inner => inner.cloned(),
        };
        text.extend(tying.map(|tying| (tied.to_owned(), tying)));
        for key in ["torch_dtype", "dtype"] {
            if let (false, Some(value)) = (text.contains_key(key), object.get(key)) {
                text.insert(key.to_owned(), value.clone());
            }
        }
        // They name the class of the whole, or none.
        text.remove("architectures");
        Self::build(model_type, &text, weights)
    }

    fn build(
        model_type: &str,
        object: &Map<String, Value>,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        let known = family(model_type).zip(facts().families.get(model_type));
        let (family, facts) = known.ok_or_else(|| ConfigError::UnknownFamily {
            model_type: model_type.to_owned(),
            nearest: nearest_family(model_type),
        })?;
        let reader = Reader::new(object, facts);
        reader.refuse(&["per_layer_config"])?;
        let head = head(object, family)?;
        let context = Context { reader, facts, head, weights };
        let blueprint = family.build(&context)?;
        let count = blueprint.root.count().map_err(|TooManyElements| ConfigError::TooLarge)?;
        Ok(Self {
            family: Some(family),
            root: blueprint.root,
            dimensions: Some(blueprint.dimensions),
            dtype: dtype(object)?,
            settings: Some(Arc::new(Settings::new(model_type, object))),
            coverage: Coverage::Whole,
            names: Names::Real,
            output: blueprint.output.map(str::to_owned),
            count,
        })
    }
}

/// The family of a `model_type`, or of a text model that has its shapes.
fn family(model_type: &str) -> Option<Family> {
    let part = TEXT_TYPES.iter().find(|(name, _)| *name == model_type).map(|(_, family)| *family);
    part.or_else(|| Family::from_model_type(model_type))
}

fn renamed(object: &Map<String, Value>, keys: &[(&str, &str)]) -> Map<String, Value> {
    let name =
        |key: &str| keys.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new).to_owned();
    object.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

fn nearest_family(model_type: &str) -> Option<&'static str> {
    let names = Family::ALL.iter().map(|family| family.model_type());
    nearest(model_type, names, 1).first().copied()
}

/// Ends of the names of classes with a language-model head.
const ENDINGS: [&str; 4] =
    ["ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM"];

/// What the first of `architectures` has on top.
fn head(object: &Map<String, Value>, family: Family) -> Result<Head, ConfigError> {
    let first = object.get("architectures").and_then(|list| list.get(0)).and_then(Value::as_str);
    let Some(architecture) = first else { return Ok(Head::LanguageModel) };
    let unknown = || ConfigError::UnknownArchitecture {
        architecture: architecture.to_owned(),
        model_type: family.model_type(),
    };
    let facts = facts().families.get(family.model_type()).ok_or_else(unknown)?;
    if architecture.ends_with("ForSequenceClassification") {
        return facts.classifier_class.as_ref().map(|_| Head::Classifier).ok_or_else(unknown);
    }
    let ending = |class: &str| ENDINGS.into_iter().find(|ending| class.ends_with(ending));
    match (ending(architecture), ending(&facts.language_model_class)) {
        (Some(own), Some(known)) if own == known => Ok(Head::LanguageModel),
        // The class of a whole whose text model this is.
        (Some("ForConditionalGeneration"), Some(_)) => Ok(Head::LanguageModel),
        (Some("ForCausalLM" | "LMHeadModel"), Some("ForCausalLM" | "LMHeadModel")) => {
            Ok(Head::LanguageModel)
        }
        _ => Err(unknown()),
    }
}

fn dtype(object: &Map<String, Value>) -> Result<Option<Dtype>, ConfigError> {
    for key in ["dtype", "torch_dtype"] {
        match object.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) => {
                let unknown =
                    || ConfigError::UnknownWord { key: key.to_owned(), value: name.clone() };
                return Dtype::from_torch(name).map(Some).ok_or_else(unknown);
            }
            Some(other) => {
                return Err(ConfigError::WrongKind {
                    key: key.to_owned(),
                    expected: ValueKind::Text,
                    found: other.into(),
                });
            }
        }
    }
    Ok(None)
}
