//! Section models: fields with type, bounds, default and what replaced them.

use serde::{Deserialize, Deserializer};

/// A section that the engine reads through a pydantic model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Whether keys whose value is `"auto"` are dropped before anything else.
    pub drops_auto: bool,
    /// Names of the model's own checks.
    pub validators: Vec<String>,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

impl Model {
    /// Whether the model has the named check in this version.
    pub fn has_validator(&self, name: &str) -> bool {
        self.validators.iter().any(|validator| validator == name)
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field a user writes as `key`, by alias or by name.
    pub fn field_for_key(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key() == key || field.name == key)
    }
}

/// One field of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The attribute's name in the engine.
    pub name: String,
    /// The key users write, where it differs from the name.
    #[serde(default)]
    pub alias: Option<String>,
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Its default, before the model's own checks.
    pub default: serde_json::Value,
    /// Limits on the value.
    #[serde(default)]
    pub bounds: Bounds,
    /// Left out when the engine prints the section.
    #[serde(default)]
    pub excluded: bool,
    /// Set if the key is deprecated.
    #[serde(default)]
    pub deprecated: Option<Deprecation>,
}

impl Field {
    /// The key that documentation names: the alias if there is one.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// What replaces a deprecated key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    /// The field that replaces it, or words; may be empty.
    pub new: String,
    /// Whether its value is moved there.
    pub moves: bool,
    /// Whether the value is converted on the way.
    pub converts: bool,
    /// What the engine adds to its warning.
    pub message: String,
}

/// Limits on a number, as pydantic names them.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Greater than.
    #[serde(default)]
    pub gt: Option<f64>,
    /// Greater than or equal.
    #[serde(default)]
    pub ge: Option<f64>,
    /// Less than.
    #[serde(default)]
    pub lt: Option<f64>,
    /// Less than or equal.
    #[serde(default)]
    pub le: Option<f64>,
}

/// What values a field takes.
#[derive(Debug, Clone)]
pub enum FieldType {
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `str`.
    Str,
    /// A file system path.
    Path,
    /// Anything.
    Any,
    /// A PyTorch type object, which no file can hold.
    Dtype,
    /// One of some whole numbers.
    IntEnum(Vec<i64>),
    /// One of some words.
    StrEnum(Vec<String>),
    /// One of some words, compared without conversion.
    Literal(Vec<String>),
    /// The inner type or `null`.
    Optional(Box<FieldType>),
    /// Any of several types.
    Union(Vec<FieldType>),
    /// A list of one type.
    List(Box<FieldType>),
    /// Any object.
    Dict,
    /// A list, kept as a tuple.
    Tuple,
    /// A nested section.
    Model(String),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Written {
    Bool,
    Int,
    Float,
    Str,
    Path,
    Any,
    Dtype,
    Dict,
    Tuple,
    Enum { values: EnumValues },
    Literal { values: Vec<String> },
    Optional { of: Box<FieldType> },
    Union { of: Vec<FieldType> },
    List { of: Box<FieldType> },
    Model { name: String },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EnumValues {
    Ints(Vec<i64>),
    Words(Vec<String>),
}

impl<'de> Deserialize<'de> for FieldType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Bool => Self::Bool,
            Written::Int => Self::Int,
            Written::Float => Self::Float,
            Written::Str => Self::Str,
            Written::Path => Self::Path,
            Written::Any => Self::Any,
            Written::Dtype => Self::Dtype,
            Written::Dict => Self::Dict,
            Written::Tuple => Self::Tuple,
            Written::Enum { values: EnumValues::Ints(values) } => Self::IntEnum(values),
            Written::Enum { values: EnumValues::Words(values) } => Self::StrEnum(values),
            Written::Literal { values } => Self::Literal(values),
            Written::Optional { of } => Self::Optional(of),
            Written::Union { of } => Self::Union(of),
            Written::List { of } => Self::List(of),
            Written::Model { name } => Self::Model(name),
        })
    }
}
