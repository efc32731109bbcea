//! From a `config.json` to a model: which family builds it, and from which keys.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::architecture::TooManyElements;
use crate::config::{ConfigError, Reader, TEXT_CONFIG, ValueKind, facts};
use crate::dtype::Dtype;
use crate::family::{Context, Family, Head};
use crate::likeness::TensorNames;
use crate::model::{Model, Names, Weights};
use crate::nearest::nearest_family;
use crate::quantization::QuantizedBase;
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

/// Text models inside others that have the shapes of a family under their own `model_type`.
const TEXT_TYPES: &[(&str, Family)] = &[
    ("qwen2_vl_text", Family::Qwen2),
    ("qwen2_5_vl_text", Family::Qwen2),
    ("qwen3_vl_text", Family::Qwen3),
    ("qwen3_vl_moe_text", Family::Qwen3Moe),
];

impl Model {
    /// The model that a `config.json` describes, with the weights of its checkpoint.
    ///
    /// # Errors
    ///
    /// If the text is no config, describes an impossible model, or names a family that is not known and lacks the sizes
    /// that a similar one needs to stand in for it.
    pub fn from_config(text: &str) -> Result<Self, ConfigError> {
        Self::from_config_with(text, Weights::Checkpoint)
    }

    /// As [`Model::from_config`], with weights from where they are said to come.
    ///
    /// # Errors
    ///
    /// As [`Model::from_config`].
    pub fn from_config_with(text: &str, weights: Weights) -> Result<Self, ConfigError> {
        Self::from_object(&parse(text)?, weights)
    }

    /// As [`Model::from_config_with`]; the names of its tensors help where the `model_type` is not known.
    pub(crate) fn from_config_and_names(
        text: &str,
        names: &TensorNames,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        Self::from_object_and_names(&parse(text)?, names, weights)
    }

    pub(crate) fn from_object(
        object: &Map<String, Value>,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        Self::from_object_and_names(object, &TensorNames::default(), weights)
    }

    /// As [`Model::from_object`]; the names of its tensors help where the `model_type` is not known.
    pub(crate) fn from_object_and_names(
        object: &Map<String, Value>,
        names: &TensorNames,
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
        if family(model_type).is_none() {
            return Self::of_unknown_type(object, names, weights);
        }
        Self::build(model_type, object, weights)
    }

    pub(crate) fn build(
        model_type: &str,
        object: &Map<String, Value>,
        weights: Weights,
    ) -> Result<Self, ConfigError> {
        let known = family(model_type).zip(facts().families.get(model_type));
        let (family, facts) = known.ok_or_else(|| ConfigError::UnknownFamily {
            model_type: model_type.to_owned(),
            nearest: nearest_family(model_type),
            missing: Vec::new(),
        })?;
        let reader = Reader::new(object, &facts.config);
        reader.refuse(&["per_layer_config"])?;
        let head = head(object, family)?;
        let context = Context { reader, facts, head, weights, tied: None };
        let blueprint = family.build(&context)?;
        let count = blueprint.root.count().map_err(|TooManyElements| ConfigError::TooLarge)?;
        Ok(Self {
            family: Some(family),
            last: blueprint.root.module_of_last_weight(),
            root: blueprint.root,
            dimensions: Some(blueprint.dimensions),
            dtype: dtype(object)?,
            settings: Some(Arc::new(Settings::new(&reader))),
            language: blueprint.language.of(family),
            parts: blueprint.parts.iter().map(|(kind, path)| (*kind, (*path).to_owned())).collect(),
            names: Names::Real,
            output: blueprint.output.map(str::to_owned),
            quantized_base: QuantizedBase::from_object(object)?,
            count,
        })
    }
}

/// The object that a config is.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, ConfigError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ConfigError::NotJson { message: error.to_string() })?;
    match value {
        Value::Object(object) => Ok(object),
        other => Err(ConfigError::NotAnObject { found: ValueKind::from(&other) }),
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
    if facts.base_class.as_deref() == Some(architecture) {
        return Ok(Head::None);
    }
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

/// The format of the whole, or else that of the language model.
pub(crate) fn dtype(object: &Map<String, Value>) -> Result<Option<Dtype>, ConfigError> {
    let text = object.get(TEXT_CONFIG).and_then(Value::as_object);
    match named_dtype(object)? {
        None => text.map_or(Ok(None), named_dtype),
        found => Ok(found),
    }
}

fn named_dtype(object: &Map<String, Value>) -> Result<Option<Dtype>, ConfigError> {
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
