//! Why a `config.json` gives no model.

use std::fmt;

use serde_json::Value;

/// Kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// Another number.
    Number,
    /// Text.
    Text,
    /// A list.
    List,
    /// A list of whole numbers.
    ListOfIntegers,
    /// An object.
    Object,
}

impl From<&Value> for ValueKind {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() || number.is_u64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::ListOfIntegers => "a list of whole numbers",
            Self::Object => "an object",
        })
    }
}

/// Why a `config.json` gives no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not JSON.
    #[error("the config is not JSON: {message}")]
    NotJson {
        /// What the reader says.
        message: String,
    },
    /// The text is JSON, but no object.
    #[error("the config is {found}, not an object")]
    NotAnObject {
        /// What it is.
        found: ValueKind,
    },
    /// No `model_type` says what the model is.
    #[error("`model_type` is missing, so the model's family is unknown")]
    NoModelType,
    /// A family that is not known here, in a config without the sizes that a similar one would need.
    #[error(
        "zeropilot does not support the family `{model_type}`. Add {} to the config to use a similar model, name a \
         similar family with `--like`, or give `--params`, `--layers` and `--hidden`",
        listed(missing)
    )]
    UnknownFamily {
        /// What `model_type` says.
        model_type: String,
        /// The nearest known family.
        nearest: Option<&'static str>,
        /// The keys that are missing, by their usual names.
        missing: Vec<&'static str>,
    },
    /// A number of parameters below what the other sizes already make.
    #[error(
        "{params} parameters are too few: at this width and depth, embedding and attention alone have {least}. Use \
         fewer layers, a smaller width or a smaller vocabulary"
    )]
    TooFewParameters {
        /// What was asked for.
        params: u64,
        /// What the other sizes make.
        least: u64,
    },
    /// A part of a model that is not known here.
    #[error("`{key}` has the `model_type` `{model_type}`, which zeropilot does not support there")]
    UnknownPart {
        /// The key of its config.
        key: String,
        /// What `model_type` says there.
        model_type: String,
    },
    /// A class whose parameters are not known here.
    #[error("zeropilot does not support the class `{architecture}` of the family `{model_type}`")]
    UnknownArchitecture {
        /// What `architectures` says.
        architecture: String,
        /// The family.
        model_type: &'static str,
    },
    /// A key that must be given, because its class has no default or because it is null.
    #[error("`{key}` is missing")]
    MissingKey {
        /// Which.
        key: String,
    },
    /// A value of the wrong kind.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongKind {
        /// Whose value.
        key: String,
        /// What it must be.
        expected: ValueKind,
        /// What it is.
        found: ValueKind,
    },
    /// A number no model has.
    #[error("`{key}` is {value}; it must be between {least} and {most}")]
    OutOfRange {
        /// Whose value.
        key: String,
        /// The value as written.
        value: String,
        /// The least possible one.
        least: u64,
        /// The largest one.
        most: u64,
    },
    /// A size that must be a multiple of another.
    #[error("`{key}` ({value}) is not a multiple of `{of}` ({divisor})")]
    NotAMultiple {
        /// The key of the size.
        key: String,
        /// The size.
        value: u64,
        /// The key of the other.
        of: String,
        /// The other.
        divisor: u64,
    },
    /// A list whose length contradicts the number of layers.
    #[error("`{key}` has {found} entries for {expected} layers")]
    WrongLength {
        /// Which list.
        key: String,
        /// How many entries it must have.
        expected: u64,
        /// How many it has.
        found: u64,
    },
    /// A word that is not one of those the class understands.
    #[error("`{key}` is `{value}`, which the model class does not support")]
    UnknownWord {
        /// Whose value.
        key: String,
        /// The value.
        value: String,
    },
    /// A setting that changes the parameters in a way that is not known here.
    #[error("`{key}` changes the model in a way that zeropilot does not support")]
    NotModelled {
        /// Which.
        key: String,
    },
    /// Sizes that are possible one by one, and not together.
    #[error("the model has more elements than 64 bits can count")]
    TooLarge,
}

fn listed(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}
