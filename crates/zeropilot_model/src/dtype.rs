//! Number formats of weights.

use std::fmt;

use zeropilot_units::ElementSize;

/// How one element is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// `bool`.
    Bool,
    /// Four bits, two to a byte.
    F4,
    /// `uint8`.
    U8,
    /// `int8`.
    I8,
    /// `float8_e4m3fn` and its relatives.
    F8,
    /// `uint16`.
    U16,
    /// `int16`.
    I16,
    /// `float16`.
    F16,
    /// `bfloat16`.
    Bf16,
    /// `uint32`.
    U32,
    /// `int32`.
    I32,
    /// `float32`.
    F32,
    /// `uint64`.
    U64,
    /// `int64`.
    I64,
    /// `float64`.
    F64,
    /// `complex64`.
    C64,
}

impl Dtype {
    /// Bits of one element.
    pub fn bits(self) -> u64 {
        match self {
            Self::F4 => 4,
            Self::Bool | Self::U8 | Self::I8 | Self::F8 => 8,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 64,
        }
    }

    /// The size of one element, for formats that weights are trained or loaded in.
    pub fn element_size(self) -> Option<ElementSize> {
        match self.bits() {
            8 => Some(ElementSize::One),
            16 => Some(ElementSize::Two),
            32 => Some(ElementSize::Four),
            _ => None,
        }
    }

    /// By the name PyTorch gives it, as `config.json` does.
    pub fn from_torch(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("torch.").unwrap_or(name) {
            "bool" => Self::Bool,
            "uint8" => Self::U8,
            "int8" => Self::I8,
            "float8_e4m3fn" | "float8_e4m3fnuz" | "float8_e5m2" | "float8_e5m2fnuz"
            | "float8_e8m0fnu" => Self::F8,
            "uint16" => Self::U16,
            "int16" | "short" => Self::I16,
            "float16" | "half" => Self::F16,
            "bfloat16" => Self::Bf16,
            "uint32" => Self::U32,
            "int32" | "int" => Self::I32,
            "float32" | "float" => Self::F32,
            "uint64" => Self::U64,
            "int64" | "long" => Self::I64,
            "float64" | "double" => Self::F64,
            "complex64" => Self::C64,
            _ => return None,
        })
    }

    /// By the name it has in a safetensors header.
    pub fn from_safetensors(name: &str) -> Option<Self> {
        Some(match name {
            "BOOL" => Self::Bool,
            "F4" => Self::F4,
            "U8" => Self::U8,
            "I8" => Self::I8,
            "F8_E4M3" | "F8_E5M2" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => Self::F8,
            "U16" => Self::U16,
            "I16" => Self::I16,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "U32" => Self::U32,
            "I32" => Self::I32,
            "F32" => Self::F32,
            "U64" => Self::U64,
            "I64" => Self::I64,
            "F64" => Self::F64,
            "C64" => Self::C64,
            _ => return None,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bool => "bool",
            Self::F4 => "fp4",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::F8 => "fp8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::F16 => "fp16",
            Self::Bf16 => "bf16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::F32 => "fp32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::F64 => "fp64",
            Self::C64 => "complex64",
        })
    }
}
