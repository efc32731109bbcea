//! A base whose weights are stored in a smaller format, as the `quantization_config` of its config says.
//!
//! The sizes follow the formats' layouts and are computed, not measured; what can be trained is what the quantizers of
//! transformers 5.22 say.

use std::fmt;

use serde_json::{Map, Value};
use zeropilot_units::{Bytes, Elements};

use crate::architecture::{ModuleKind, ParameterEntry};
use crate::config::{ConfigError, ValueKind};
use crate::from_config::parse;
use crate::model::Model;

use super::{ScaleStorage, StoredSize, is_replaced};

/// Rows and columns of the block of FP8 weights that shares a scale, if the config names none.
const FP8_BLOCK: [u64; 2] = [128, 128];

/// Weights of GPTQ and AWQ that share a scale, if the config names none.
pub const GROUP: u64 = 128;

/// What PEFT puts before the names of a model.
const ADAPTED: &str = "base_model.model.";

/// Weights of MXFP4 that share a scale of one byte.
const MXFP4_BLOCK: u64 = 32;

/// How weights are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseFormat {
    /// bitsandbytes, NF4 or FP4.
    FourBit(ScaleStorage),
    /// bitsandbytes, eight bits with a scale for every row.
    Int8,
    /// GPTQ.
    Gptq {
        /// Bits of a weight.
        bits: u64,
        /// Weights that share a scale; `None` for a whole column.
        group: Option<u64>,
    },
    /// AWQ.
    Awq {
        /// Bits of a weight.
        bits: u64,
        /// Weights that share a scale; `None` for a whole column.
        group: Option<u64>,
    },
    /// FP8 with a scale for every block.
    Fp8 {
        /// Rows and columns of a block.
        block: [u64; 2],
    },
    /// MXFP4, of experts alone.
    Mxfp4,
    /// Another method, whose layout is not known here.
    Other(String),
}

impl BaseFormat {
    /// Bytes of the parameter that a matrix becomes: none where the method keeps buffers instead.
    pub fn parameter(&self, elements: Elements) -> Bytes {
        Bytes(match self {
            Self::FourBit(_) | Self::Mxfp4 => elements.0.div_ceil(2),
            Self::Int8 | Self::Fp8 { .. } => elements.0,
            Self::Gptq { .. } | Self::Awq { .. } => 0,
            Self::Other(_) => elements.0.saturating_mul(2),
        })
    }
}

impl fmt::Display for BaseFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FourBit(ScaleStorage::DoubleQuantized) => formatter.write_str("NF4"),
            Self::FourBit(ScaleStorage::Plain) => formatter.write_str("NF4 with fp32 scales"),
            Self::Int8 => formatter.write_str("int8"),
            Self::Gptq { bits, .. } => write!(formatter, "{bits}-bit GPTQ"),
            Self::Awq { bits, .. } => write!(formatter, "{bits}-bit AWQ"),
            Self::Fp8 { .. } => formatter.write_str("FP8"),
            Self::Mxfp4 => formatter.write_str("MXFP4"),
            Self::Other(method) => formatter.write_str(method),
        }
    }
}

/// Whether adapters can be trained on a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adapters {
    /// Yes.
    Trainable,
    /// Only with this package.
    NeedPackage(&'static str),
    /// Only if it is loaded in 16 bits, with `dequantize=True`.
    NeedDequantized,
    /// No.
    NotTrainable,
    /// Nothing is known about the method.
    Unknown,
}

/// A base in a smaller format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizedBase {
    /// The format.
    pub format: BaseFormat,
    /// Modules that keep their format; `None` for those the method leaves out by itself.
    pub skipped: Option<Vec<String>>,
}

/// What a base takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BaseSize {
    /// Elements in the smaller format.
    pub quantized: Elements,
    /// What those take.
    pub stored: StoredSize,
    /// Elements that keep their format.
    pub kept: Elements,
}

impl From<BaseFormat> for QuantizedBase {
    /// With the modules left out that the method leaves out by itself.
    fn from(format: BaseFormat) -> Self {
        Self { format, skipped: None }
    }
}

impl QuantizedBase {
    /// What QLoRA means where nobody says more: NF4 with double quantization.
    pub fn nf4() -> Self {
        BaseFormat::FourBit(ScaleStorage::DoubleQuantized).into()
    }

    /// What the config says; `None` if its weights have their own format.
    ///
    /// # Errors
    ///
    /// If the text is no config, or `quantization_config` is not understood.
    pub fn from_config(text: &str) -> Result<Option<Self>, ConfigError> {
        Self::from_object(&parse(text)?)
    }

    pub(crate) fn from_object(object: &Map<String, Value>) -> Result<Option<Self>, ConfigError> {
        match object.get("quantization_config") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(section)) => Self::of(section).map(Some),
            Some(other) => Err(wrong_kind("quantization_config", ValueKind::Object, other)),
        }
    }

    fn of(section: &Map<String, Value>) -> Result<Self, ConfigError> {
        let flag = |key: &str| section.get(key).and_then(Value::as_bool).unwrap_or(false);
        let method = section.get("quant_method").and_then(Value::as_str).unwrap_or("bitsandbytes");
        let bits = || number(section, "bits").map(|bits| bits.unwrap_or(4));
        let format = match method {
            "bitsandbytes" if flag("load_in_8bit") => BaseFormat::Int8,
            "bitsandbytes" if flag("bnb_4bit_use_double_quant") => {
                BaseFormat::FourBit(ScaleStorage::DoubleQuantized)
            }
            "bitsandbytes" => BaseFormat::FourBit(ScaleStorage::Plain),
            "gptq" => BaseFormat::Gptq { bits: bits()?, group: group(section)? },
            "awq" => BaseFormat::Awq { bits: bits()?, group: group(section)? },
            "fp8" => BaseFormat::Fp8 { block: block(section)? },
            "mxfp4" => BaseFormat::Mxfp4,
            other => BaseFormat::Other(other.to_owned()),
        };
        let skipped = ["llm_int8_skip_modules", "modules_to_not_convert"];
        let skipped = skipped.iter().find_map(|key| section.get(*key)?.as_array()).map(|list| {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        });
        Ok(Self { format, skipped })
    }

    /// Whether the kernels of bitsandbytes multiply with it, whose memory was recorded.
    pub fn is_of_bitsandbytes(&self) -> bool {
        matches!(self.format, BaseFormat::FourBit(_) | BaseFormat::Int8)
    }

    /// Whether adapters can be trained on it.
    pub fn adapters(&self) -> Adapters {
        match &self.format {
            BaseFormat::FourBit(_) | BaseFormat::Int8 => Adapters::Trainable,
            BaseFormat::Gptq { .. } | BaseFormat::Fp8 { .. } => Adapters::Trainable,
            BaseFormat::Awq { .. } => Adapters::NeedPackage("gptqmodel>=5.0.0"),
            BaseFormat::Mxfp4 => Adapters::NeedDequantized,
            BaseFormat::Other(method) => match method.as_str() {
                "hqq" => Adapters::Trainable,
                "fbgemm_fp8" => Adapters::NotTrainable,
                _ => Adapters::Unknown,
            },
        }
    }

    /// Whether the layout of its method is known here.
    pub fn is_sized(&self) -> bool {
        !matches!(self.format, BaseFormat::Other(_))
    }

    /// What it takes at rest; `None` if the layout of its method is not known here.
    pub fn size(&self, model: &Model) -> Option<BaseSize> {
        let mut size = BaseSize::default();
        for entry in model.parameters() {
            let elements = entry.parameter.elements().unwrap_or(u64::MAX);
            let sum = if self.includes(model, &entry) {
                let mut shape = entry.parameter.shape.clone();
                if entry.module.kind == ModuleKind::TransposedLinear {
                    shape.reverse();
                }
                size.stored = size.stored.plus(self.stored(&shape)?);
                &mut size.quantized
            } else {
                &mut size.kept
            };
            *sum = Elements(sum.0.saturating_add(elements));
        }
        Some(size)
    }

    /// Whether its own list of modules leaves one as it is; `None` if it has no list.
    pub fn skips(&self, module: &str) -> Option<bool> {
        let before = module.strip_prefix(ADAPTED).unwrap_or(module);
        let own = before.strip_suffix(".base_layer").unwrap_or(before);
        let patterns = self.skipped.as_ref()?;
        Some(patterns.iter().any(|pattern| is_named(own, pattern)))
    }

    /// Whether a parameter is in the smaller format.
    pub fn includes(&self, model: &Model, entry: &ParameterEntry<'_>) -> bool {
        let is_expert = matches!(entry.module.kind, ModuleKind::Experts { .. });
        // Stacked biases have two dimensions.
        let is_stack = entry.parameter.shape.len() == 3;
        let is_of_kind = match self.format {
            BaseFormat::Mxfp4 => is_expert && is_stack,
            BaseFormat::Fp8 { .. } if is_expert => is_stack,
            _ => entry.parameter.name == "weight" && is_replaced(entry.module),
        };
        let name = entry.module_name();
        let is_kept = || self.skips(name).unwrap_or_else(|| model.is_left_out(name));
        // Adapters come later and stay as they are made.
        is_of_kind && !name.contains(".lora_") && !is_kept()
    }

    /// What one matrix takes, or a stack of them; `None` if the layout of its method is not known here.
    pub fn stored(&self, shape: &[u64]) -> Option<StoredSize> {
        let [stack @ .., outputs, inputs] = shape else { return None };
        let (outputs, inputs) = (*outputs, *inputs);
        let elements = outputs.saturating_mul(inputs);
        let packed = |bits: u64, group: Option<u64>| {
            let groups = outputs.saturating_mul(inputs.div_ceil(group.unwrap_or(inputs).max(1)));
            let bits_of = |count: u64| count.saturating_mul(bits).div_ceil(8);
            // A 16-bit scale and a packed zero for every group.
            bits_of(elements) + 2 * groups + bits_of(groups)
        };
        let beside = match &self.format {
            BaseFormat::FourBit(scales) => scales.bytes(elements),
            BaseFormat::Int8 => 4 * outputs,
            // Its order of inputs is stored with it.
            BaseFormat::Gptq { bits, group } => packed(*bits, *group).saturating_add(4 * inputs),
            BaseFormat::Awq { bits, group } => packed(*bits, *group),
            BaseFormat::Fp8 { block: [rows, columns] } => {
                4 * outputs.div_ceil(*rows).saturating_mul(inputs.div_ceil(*columns))
            }
            BaseFormat::Mxfp4 => elements.div_ceil(MXFP4_BLOCK),
            BaseFormat::Other(_) => return None,
        };
        let parameter = self.format.parameter(Elements(elements));
        let one = StoredSize { parameter, beside: Bytes(beside) };
        Some(stack.iter().fold(one, |size, count| size.times(*count)))
    }
}

/// Whether a pattern matches from the start of a name to the end of a part, or the end of the name.
fn is_named(name: &str, pattern: &str) -> bool {
    let from_start = name
        .strip_prefix(pattern)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || pattern.ends_with('.'));
    from_start || name.ends_with(pattern)
}

/// `group_size`; -1 stands for a whole column.
fn group(section: &Map<String, Value>) -> Result<Option<u64>, ConfigError> {
    match section.get("group_size") {
        Some(value) if value.as_i64() == Some(-1) => Ok(None),
        _ => Ok(Some(number(section, "group_size")?.unwrap_or(GROUP))),
    }
}

fn block(section: &Map<String, Value>) -> Result<[u64; 2], ConfigError> {
    let Some(value) = section.get("weight_block_size").filter(|value| !value.is_null()) else {
        return Ok(FP8_BLOCK);
    };
    let sizes = value.as_array().map(|list| list.iter().map(Value::as_u64).collect::<Vec<_>>());
    match sizes.as_deref() {
        Some([Some(rows @ 1..), Some(columns @ 1..)]) => Ok([*rows, *columns]),
        _ => Err(wrong_kind("weight_block_size", ValueKind::ListOfIntegers, value)),
    }
}

/// A whole number above zero that no format exceeds.
fn number(section: &Map<String, Value>, key: &str) -> Result<Option<u64>, ConfigError> {
    let most = 1 << 20;
    let Some(value) = section.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_u64() {
        Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
        Some(number) => Err(ConfigError::OutOfRange {
            key: key.to_owned(),
            value: number.to_string(),
            least: 1,
            most,
        }),
        None => Err(wrong_kind(key, ValueKind::Integer, value)),
    }
}

fn wrong_kind(key: &str, expected: ValueKind, found: &Value) -> ConfigError {
    ConfigError::WrongKind { key: key.to_owned(), expected, found: found.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn base(section: &str) -> QuantizedBase {
        let text = format!(r#"{{"model_type": "llama", "quantization_config": {section}}}"#);
        QuantizedBase::from_config(&text).expect("a section").expect("a format")
    }

    #[test]
    fn the_section_says_the_format() {
        let nf4 = base(
            r#"{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_use_double_quant": true}"#,
        );
        assert_eq!(nf4.format, BaseFormat::FourBit(ScaleStorage::DoubleQuantized));
        assert_eq!(base(r#"{"load_in_8bit": true}"#).format, BaseFormat::Int8);
        let gptq = base(r#"{"quant_method": "gptq", "bits": 4, "group_size": -1}"#);
        assert_eq!(gptq.format, BaseFormat::Gptq { bits: 4, group: None });
        let fp8 = base(r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#);
        assert_eq!(fp8.format, BaseFormat::Fp8 { block: FP8_BLOCK });
        assert_eq!(base(r#"{"quant_method": "mxfp4"}"#).adapters(), Adapters::NeedDequantized);
        assert_eq!(base(r#"{"quant_method": "fbgemm_fp8"}"#).adapters(), Adapters::NotTrainable);
        for broken in [
            r#"{"quant_method": "gptq", "bits": "4"}"#,
            r#"{"quant_method": "fp8", "weight_block_size": [0, 1]}"#,
        ] {
            let text = format!(r#"{{"quantization_config": {broken}}}"#);
            assert!(QuantizedBase::from_config(&text).is_err(), "{broken}");
        }
        assert_eq!(QuantizedBase::from_config("{}"), Ok(None));
    }

    #[test]
    fn bytes_of_a_parameter_are_those_of_the_layout() {
        let shape = [4096, 4096];
        let per_element = |section: &str| {
            base(section).stored(&shape).expect("a layout").total().0 as f64 / (4096.0 * 4096.0)
        };
        let near = |left: f64, right: f64| (left - right).abs() < 1e-4;
        assert!(near(per_element(r#"{"load_in_8bit": true}"#), 1.0 + 4.0 / 4096.0));
        assert!(near(per_element(r#"{"quant_method": "awq"}"#), 0.519_53));
        let order = 4.0 / 4096.0;
        assert!(near(per_element(r#"{"quant_method": "gptq"}"#), 0.519_53 + order));
        assert!(near(per_element(r#"{"quant_method": "fp8"}"#), 1.0 + 4.0 / 16_384.0));
    }

    #[test]
    fn a_list_of_modules_replaces_what_is_left_out_by_itself() {
        let model = catalogue::find("qwen2.5-7b").expect("a model").model().expect("a model");
        let four = base(r#"{"load_in_4bit": true, "bnb_4bit_use_double_quant": true}"#);
        let size = four.size(&model).expect("a layout");
        // Recorded with bitsandbytes 0.50.2.
        assert_eq!((size.quantized.0, size.stored.total().0), (6_525_288_448, 3_366_408_976));
        let none = base(r#"{"load_in_4bit": true, "llm_int8_skip_modules": []}"#);
        assert!(none.size(&model).expect("a layout").quantized > size.quantized);
        let some =
            base(r#"{"load_in_4bit": true, "llm_int8_skip_modules": ["lm_head", "down_proj"]}"#);
        assert!(some.size(&model).expect("a layout").quantized < size.quantized);
    }

    #[test]
    fn experts_alone_are_mxfp4() {
        let model = catalogue::find("gpt-oss-20b").expect("a model").model().expect("a model");
        let size = base(r#"{"quant_method": "mxfp4"}"#).size(&model).expect("a layout");
        assert!(size.quantized.0 > 19_000_000_000 && size.kept.0 < 2_000_000_000, "{size:?}");
    }
}
