//! Typed access to the keys of a config object.

use serde_json::{Map, Value};

use super::error::{ConfigError, ValueKind};
use super::facts::{ConfigFacts, facts};

/// No dimension of a real model comes near; products of two of them fit 64 bits.
pub(crate) const MOST: u64 = 1 << 30;

/// No real model has a tenth of it; a tree of so many different layers is still small.
const MOST_LAYERS: u64 = 1 << 14;

/// No image and no patch is larger; the square of it times a dimension fits 64 bits.
const MOST_SIDE: u64 = 1 << 15;

/// The sub-config of the language model.
pub(crate) const TEXT_CONFIG: &str = "text_config";

/// A config object, read with the defaults and other names of its class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    object: &'a Map<String, Value>,
    facts: &'static ConfigFacts,
}

/// A sub-config, and the class it is read with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) model_type: &'a str,
    pub(crate) reader: Reader<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>, facts: &'static ConfigFacts) -> Self {
        Self { object, facts }
    }

    /// The config object itself.
    pub(crate) fn object(&self) -> &'a Map<String, Value> {
        self.object
    }

    /// Its class.
    pub(crate) fn facts(&self) -> &'static ConfigFacts {
        self.facts
    }

    /// The sub-config under this key.
    pub(crate) fn section(&self, key: &str) -> Result<Section<'a>, ConfigError> {
        let section = self.facts.sections.get(key).ok_or_else(|| missing(key))?;
        let object = match self.object.get(key) {
            Some(Value::Object(object)) => object,
            // Qwen2-VL and Qwen2.5-VL were released with the keys of the text model at the top.
            None | Some(Value::Null) if section.flat => self.object,
            None | Some(Value::Null) => &section.left_out,
            Some(other) => return Err(wrong_kind(key, ValueKind::Object, other)),
        };
        let named = object.get("model_type").filter(|_| section.replaceable);
        let model_type = match named {
            None => &section.model_type,
            Some(Value::String(model_type)) => model_type,
            Some(other) => return Err(wrong_kind("model_type", ValueKind::Text, other)),
        };
        let facts = facts().config(model_type).ok_or_else(|| ConfigError::UnknownPart {
            key: key.to_owned(),
            model_type: model_type.clone(),
        })?;
        Ok(Section { model_type, reader: Self { object, facts } })
    }

    /// The value of a key: as written, by another name of it, or its default.
    ///
    /// A config class takes its own fields first and sets all other keys afterwards, so a name that is
    /// no field wins over the field it stands for.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        let canonical = self.facts.aliases.get(key).map_or(key, String::as_str);
        let aliases = self.facts.aliases.iter().filter(|(_, target)| *target == canonical);
        let names = || aliases.clone().map(|(alias, _)| alias.as_str()).chain([canonical]);
        let is_field = |name: &str| self.facts.defaults.contains_key(name);
        let written = |field: bool| {
            let mut names = names().filter(|name| is_field(name) == field);
            names.find_map(|name| self.object.get(name))
        };
        written(false)
            .or_else(|| written(true))
            .or_else(|| names().find_map(|name| self.facts.defaults.get(name)))
            .filter(|value| !value.is_null())
    }

    /// The value of a field as the class sees it before it sets the keys that are no fields.
    fn field(&self, key: &str) -> Option<&'a Value> {
        let value = self.object.get(key).or_else(|| self.facts.defaults.get(key));
        value.filter(|value| !value.is_null())
    }

    fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, ConfigError> {
        self.value(key).map(|value| whole(key, value, least, most)).transpose()
    }

    /// A dimension that may be left open.
    pub(crate) fn optional_size(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        self.integer(key, 1, MOST)
    }

    /// A dimension.
    pub(crate) fn size(&self, key: &str) -> Result<u64, ConfigError> {
        self.optional_size(key)?.ok_or_else(|| missing(key))
    }

    /// The side of an image or of a patch, or a number of neighbours to merge in each direction.
    pub(crate) fn side(&self, key: &str) -> Result<u64, ConfigError> {
        self.integer(key, 1, MOST_SIDE)?.ok_or_else(|| missing(key))
    }

    /// A number that may be zero.
    pub(crate) fn number(&self, key: &str) -> Result<u64, ConfigError> {
        self.integer(key, 0, MOST)?.ok_or_else(|| missing(key))
    }

    /// A number for which -1 says that it is left open.
    pub(crate) fn number_or_minus_one(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        if self.value(key).and_then(Value::as_i64) == Some(-1) {
            return Ok(None);
        }
        self.integer(key, 0, MOST)
    }

    /// A number of layers.
    pub(crate) fn layers(&self, key: &str) -> Result<u64, ConfigError> {
        self.optional_layers(key)?.ok_or_else(|| missing(key))
    }

    /// A number of layers that may be left open.
    pub(crate) fn optional_layers(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        self.integer(key, 0, MOST_LAYERS)
    }

    /// A number of layers by its own name alone.
    pub(crate) fn layers_of_field(&self, key: &str) -> Result<u64, ConfigError> {
        whole(key, self.field(key).ok_or_else(|| missing(key))?, 0, MOST_LAYERS)
    }

    /// A switch; one that is not there and has no default is off.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match self.value(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong_kind(key, ValueKind::Bool, other)),
        }
    }

    /// Whether the key itself stands in the file with a value.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.object.get(key).is_some_and(|value| !value.is_null())
    }

    /// A word.
    pub(crate) fn word(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(word)) => Ok(Some(word)),
            Some(other) => Err(wrong_kind(key, ValueKind::Text, other)),
        }
    }

    /// A factor above zero that may be left open.
    pub(crate) fn factor(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let factor = value.as_f64().filter(|factor| (0.0..=1e6).contains(factor));
        factor.map(Some).ok_or_else(|| wrong_kind(key, ValueKind::Number, value))
    }

    /// A list of layer numbers.
    pub(crate) fn layer_numbers(&self, key: &str) -> Result<Option<Vec<u64>>, ConfigError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let numbers = value.as_array().and_then(|list| list.iter().map(Value::as_u64).collect());
        numbers.map(Some).ok_or_else(|| wrong_kind(key, ValueKind::ListOfIntegers, value))
    }

    /// Height and width: one number for both, or a list of two.
    pub(crate) fn height_and_width(&self, key: &str) -> Result<[u64; 2], ConfigError> {
        match self.value(key) {
            Some(Value::Array(list)) => match list.as_slice() {
                [height, width] => {
                    Ok([whole(key, height, 1, MOST_SIDE)?, whole(key, width, 1, MOST_SIDE)?])
                }
                _ => Err(ConfigError::NotModelled { key: key.to_owned() }),
            },
            _ => self.side(key).map(|side| [side, side]),
        }
    }

    /// How often a fraction such as 0.5 goes into one.
    pub(crate) fn inverse(&self, key: &str) -> Result<u64, ConfigError> {
        let value = self.value(key).ok_or_else(|| missing(key))?;
        let number = value.as_f64().ok_or_else(|| wrong_kind(key, ValueKind::Number, value))?;
        let times = (1.0 / number) as u64;
        let found = (1..=MOST_SIDE).contains(&times).then_some(times);
        let value = value.to_string();
        found.ok_or(ConfigError::OutOfRange { key: key.to_owned(), value, least: 0, most: 1 })
    }

    /// How many labels a classifier tells apart.
    pub(crate) fn labels(&self) -> Result<u64, ConfigError> {
        match self.object.get("id2label") {
            Some(Value::Object(labels)) => Ok(labels.len() as u64),
            None | Some(Value::Null) => Ok(self.optional_size("num_labels")?.unwrap_or(2)),
            Some(other) => Err(wrong_kind("id2label", ValueKind::Object, other)),
        }
    }

    /// Refuses a config in which one of these is switched on.
    pub(crate) fn refuse(&self, keys: &[&str]) -> Result<(), ConfigError> {
        for key in keys {
            let off = matches!(self.value(key), None | Some(Value::Bool(false)));
            if !off {
                return Err(ConfigError::NotModelled { key: (*key).to_owned() });
            }
        }
        Ok(())
    }

    /// The kind of every layer as `layer_types` names them; `None` if it is not given.
    pub(crate) fn layer_kinds(&self, layers: u64) -> Result<Option<Vec<&'a str>>, ConfigError> {
        self.check_layer_types(layers)?;
        let Some(value) = self.value("layer_types") else { return Ok(None) };
        let words = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        words.map(Some).ok_or_else(|| wrong_kind("layer_types", ValueKind::List, value))
    }

    /// Refuses a `layer_types` that does not name every layer.
    pub(crate) fn check_layer_types(&self, layers: u64) -> Result<(), ConfigError> {
        match self.value("layer_types") {
            None => Ok(()),
            Some(Value::Array(list)) if list.len() as u64 == layers => Ok(()),
            Some(Value::Array(list)) => Err(ConfigError::WrongLength {
                key: "layer_types".to_owned(),
                expected: layers,
                found: list.len() as u64,
            }),
            Some(other) => Err(wrong_kind("layer_types", ValueKind::List, other)),
        }
    }

    /// `value / divisor` for two keys, where the class insists on a whole number.
    pub(crate) fn quotient(&self, key: &str, of: &str) -> Result<u64, ConfigError> {
        let (value, divisor) = (self.size(key)?, self.size(of)?);
        if value.is_multiple_of(divisor) {
            return Ok(value / divisor);
        }
        Err(ConfigError::NotAMultiple { key: key.to_owned(), value, of: of.to_owned(), divisor })
    }
}

fn whole(key: &str, value: &Value, least: u64, most: u64) -> Result<u64, ConfigError> {
    if ValueKind::from(value) != ValueKind::Integer {
        return Err(wrong_kind(key, ValueKind::Integer, value));
    }
    let number = value.as_u64().filter(|number| (least..=most).contains(number));
    let out_of_range =
        || ConfigError::OutOfRange { key: key.to_owned(), value: value.to_string(), least, most };
    number.ok_or_else(out_of_range)
}

fn missing(key: &str) -> ConfigError {
    ConfigError::MissingKey { key: key.to_owned() }
}

fn wrong_kind(key: &str, expected: ValueKind, found: &Value) -> ConfigError {
    ConfigError::WrongKind { key: key.to_owned(), expected, found: found.into() }
}
