//! Number formats that the config sets apart from the model's own.

use zeropilot_units::ElementSize;

use crate::python::PyValue;
use crate::resolve::ResolvedConfig;

/// A number format of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 32-bit float.
    Fp32,
    /// IEEE half.
    Fp16,
    /// Brain float.
    Bf16,
}

impl DataType {
    /// Bytes per element.
    pub fn element_size(self) -> ElementSize {
        match self {
            Self::Fp32 => ElementSize::Four,
            Self::Fp16 | Self::Bf16 => ElementSize::Two,
        }
    }

    /// By any of the names the engine takes for it.
    fn from_name(name: &str) -> Option<Self> {
        match name.trim_start_matches("torch.") {
            "fp32" | "float32" | "float" => Some(Self::Fp32),
            "fp16" | "float16" | "half" => Some(Self::Fp16),
            "bf16" | "bfloat16" => Some(Self::Bf16),
            _ => None,
        }
    }
}

impl ResolvedConfig {
    /// `data_types.grad_accum_dtype`: what gradients are added up in; unset means the model's own.
    pub fn gradient_accumulation_type(&self) -> Option<DataType> {
        named(self.attribute("grad_accum_dtype"))
    }

    /// `communication_data_type`: what gradients are sent in; unset means the model's own.
    pub fn communication_type(&self) -> Option<DataType> {
        named(self.attribute("communication_data_type"))
    }

    /// What gradients are sent in where ranks share sequences.
    pub fn sequence_communication_type(&self) -> Option<DataType> {
        named(self.attribute("seq_parallel_communication_data_type"))
    }
}

fn named(value: PyValue) -> Option<DataType> {
    match value {
        PyValue::Str(name) => DataType::from_name(&name),
        _ => None,
    }
}
