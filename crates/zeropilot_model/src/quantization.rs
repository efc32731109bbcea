//! Base weights in a smaller format: four bits, as QLoRA keeps them, and the other formats that configs name.
//!
//! The sizes follow the layout that bitsandbytes documents and that transformers' integration applies.
//! They are computed, not measured: what the allocator adds is not in them.

mod base;

use zeropilot_units::Bytes;

pub use base::{Adapters, BaseFormat, BaseSize, GROUP, QuantizedBase};

use crate::architecture::{Module, ModuleKind};
use crate::family::Family;
use crate::model::Model;

/// Weights that share one scale.
const BLOCK: u64 = 64;

/// Scales that share one scale of their own under double quantization.
const SCALE_BLOCK: u64 = 256;

/// The table of the sixteen values, fp32.
const VALUES_TABLE: u64 = 16 * 4;

/// The table of the 256 values of a scale, and the offset taken off all scales, fp32.
const SCALES_TABLE: u64 = 256 * 4 + 4;

/// Whether the scales are quantized too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleStorage {
    /// fp32: half a bit more per weight.
    #[default]
    Plain,
    /// `bnb_4bit_use_double_quant`: an eighth of a bit more per weight.
    DoubleQuantized,
}

impl ScaleStorage {
    /// Scales and tables of a weight of so many elements.
    fn bytes(self, elements: u64) -> u64 {
        let blocks = elements.div_ceil(BLOCK);
        match self {
            Self::Plain => blocks.saturating_mul(4).saturating_add(VALUES_TABLE),
            Self::DoubleQuantized => {
                let second = blocks.div_ceil(SCALE_BLOCK).saturating_mul(4);
                blocks.saturating_add(second).saturating_add(VALUES_TABLE + SCALES_TABLE)
            }
        }
    }
}

/// What one weight takes in a smaller format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredSize {
    /// The parameter: the packed weights.
    pub parameter: Bytes,
    /// What lies beside it and is no parameter: scales, zeros, tables; all of it where the method keeps buffers.
    pub beside: Bytes,
}

impl StoredSize {
    /// So many of them.
    fn times(self, count: u64) -> Self {
        let times = |bytes: Bytes| Bytes(bytes.0.saturating_mul(count));
        Self { parameter: times(self.parameter), beside: times(self.beside) }
    }

    fn plus(self, other: Self) -> Self {
        let plus = |left: Bytes, right: Bytes| Bytes(left.0.saturating_add(right.0));
        Self {
            parameter: plus(self.parameter, other.parameter),
            beside: plus(self.beside, other.beside),
        }
    }

    /// All of it.
    pub fn total(self) -> Bytes {
        Bytes(self.parameter.0.saturating_add(self.beside.0))
    }
}

impl Model {
    /// Whether quantizers leave a module as it is where no list of modules says otherwise: the output, what is tied to
    /// it, the module of the last parameter, such as a classifier, and T5's `wo`.
    fn is_left_out(&self, name: &str) -> bool {
        // PEFT keeps what it wraps or copies below the module's own name.
        let is_at = |module: &Option<String>| {
            let rest = module.as_deref().and_then(|module| name.strip_prefix(module));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_t5 = matches!(self.family, Some(Family::T5 | Family::Mt5));
        is_at(&self.output)
            || is_at(&self.last)
            || (is_t5 && name.split('.').any(|part| part == "wo"))
    }
}

/// Whether quantizers replace a module: its class is `nn.Linear` itself, or `Conv1D`, those of towers and projectors
/// too. A subclass such as Falcon's linear module, convolutions, and stacked experts stay as they are.
fn is_replaced(module: &Module) -> bool {
    match module.kind {
        ModuleKind::Linear => module.class == "Linear",
        ModuleKind::TransposedLinear => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_units::Elements;

    use super::*;
    use crate::catalogue;
    use crate::lora::Lora;

    #[test]
    fn double_quantization_takes_an_eighth_of_a_bit_per_weight() {
        assert_eq!(ScaleStorage::Plain.bytes(4096 * 4096), 1_048_576 + 64);
        let double = ScaleStorage::DoubleQuantized.bytes(4096 * 4096);
        assert_eq!(double, 262_144 + 4_096 + 64 + 1_028);
    }

    #[test]
    fn embedding_and_output_keep_their_format() {
        let model = catalogue::find("llama-3.1-8b").unwrap().model().unwrap();
        let size = QuantizedBase::nf4().size(&model).unwrap();
        assert_eq!(size.quantized + size.kept, model.elements());
        // 32 layers of seven linear weights.
        assert_eq!(
            size.quantized,
            Elements(32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336))
        );
    }

    /// Recorded with bitsandbytes 0.50.2: 6,525,288,448 elements in 196 matrices, the output in 16 bits also below adapters.
    #[test]
    fn the_output_keeps_its_format_below_adapters_too() {
        let model = catalogue::find("qwen2.5-7b").unwrap().model().unwrap();
        for lora in [Lora::new(16).on_all_linear(), Lora::new(16).on(&["q_proj"])] {
            let size = QuantizedBase::nf4().size(&lora.apply(&model).unwrap()).unwrap();
            assert_eq!(size.quantized, Elements(6_525_288_448));
            // Weights, scales with theirs, and the tables of 196 matrices.
            let beside = 101_957_632 + 1_593_088 + 214_032;
            assert_eq!((size.stored.parameter.0, size.stored.beside.0), (3_262_644_224, beside));
        }
    }

    #[test]
    fn stacked_experts_are_not_quantized() {
        let model = catalogue::find("mixtral-8x7b").unwrap().model().unwrap();
        let size = QuantizedBase::nf4().size(&model).unwrap();
        assert!(size.kept > model.count().routed);
    }
}
