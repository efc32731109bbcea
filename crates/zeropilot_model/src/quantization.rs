//! Base weights in four bits, as QLoRA keeps them.
//!
//! The sizes follow the layout that bitsandbytes documents and that transformers' integration applies.
//! They are computed, not measured: what the allocator adds is not in them.

use zeropilot_units::{Bytes, Elements};

use crate::architecture::{Module, ModuleKind, ParameterEntry};
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

/// What one NF4 weight takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nf4Size {
    /// Two weights to a byte.
    pub weights: Bytes,
    /// The scales of the blocks, and theirs.
    pub scales: Bytes,
    /// Tables that every quantized weight carries.
    pub tables: Bytes,
}

impl Nf4Size {
    /// The size of a weight of so many elements.
    pub fn of(elements: Elements, scales: ScaleStorage) -> Self {
        let blocks = elements.0.div_ceil(BLOCK);
        let (scales, tables) = match scales {
            ScaleStorage::Plain => (blocks.saturating_mul(4), VALUES_TABLE),
            ScaleStorage::DoubleQuantized => {
                let second = blocks.div_ceil(SCALE_BLOCK).saturating_mul(4);
                (blocks.saturating_add(second), VALUES_TABLE + SCALES_TABLE)
            }
        };
        Self {
            weights: Bytes(elements.0.div_ceil(2)),
            scales: Bytes(scales),
            tables: Bytes(tables),
        }
    }

    /// All of it.
    pub fn total(self) -> Bytes {
        Bytes(self.weights.0.saturating_add(self.scales.0).saturating_add(self.tables.0))
    }
}

/// A model whose linear weights are quantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuantizedModel {
    /// Elements of quantized weights.
    pub quantized: Elements,
    /// What those take.
    pub size: Nf4Size,
    /// Elements that keep their number format: embeddings, norms, biases, stacked experts, the output.
    pub kept: Elements,
}

impl Model {
    /// What `load_in_4bit` quantizes of this model, and what that takes.
    ///
    /// It replaces modules whose class is `nn.Linear` itself, or `Conv1D`, but not the output and not what
    /// is tied to it; a subclass such as Falcon's linear module, and stacked experts, stay as they are.
    pub fn quantized(&self, scales: ScaleStorage) -> QuantizedModel {
        let mut sum = QuantizedModel::default();
        for entry in self.parameters() {
            let elements = Elements(entry.parameter.elements().unwrap_or(u64::MAX));
            if self.is_quantized(&entry) {
                let size = Nf4Size::of(elements, scales);
                sum.quantized = plus(sum.quantized, elements);
                sum.size.weights = Bytes(sum.size.weights.0.saturating_add(size.weights.0));
                sum.size.scales = Bytes(sum.size.scales.0.saturating_add(size.scales.0));
                sum.size.tables = Bytes(sum.size.tables.0.saturating_add(size.tables.0));
            } else {
                sum.kept = plus(sum.kept, elements);
            }
        }
        sum
    }

    /// Whether `load_in_4bit` quantizes a parameter; adapters come later and stay as they are made.
    pub fn is_quantized(&self, entry: &ParameterEntry<'_>) -> bool {
        let name = entry.module_name();
        // PEFT keeps what it wraps or copies below the module's own name.
        let is_output = self.output.as_deref().is_some_and(|output| {
            name.strip_prefix(output).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let is_adapter = name.contains(".lora_");
        entry.parameter.name == "weight" && is_replaced(entry.module) && !is_output && !is_adapter
    }
}

fn plus(sum: Elements, elements: Elements) -> Elements {
    Elements(sum.0.saturating_add(elements.0))
}

fn is_replaced(module: &Module) -> bool {
    match module.kind {
        ModuleKind::Linear => module.class == "Linear",
        ModuleKind::TransposedLinear => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::lora::Lora;

    #[test]
    fn double_quantization_takes_an_eighth_of_a_bit_per_weight() {
        let elements = Elements(4096 * 4096);
        let plain = Nf4Size::of(elements, ScaleStorage::Plain);
        assert_eq!(plain.weights, Bytes(8_388_608));
        assert_eq!(plain.scales, Bytes(1_048_576));
        let double = Nf4Size::of(elements, ScaleStorage::DoubleQuantized);
        assert_eq!(double.scales, Bytes(262_144 + 4_096));
        assert_eq!(double.tables, Bytes(64 + 1_028));
    }

    #[test]
    fn embedding_and_output_keep_their_format() {
        let model = catalogue::find("llama-3.1-8b").unwrap().model().unwrap();
        let quantized = model.quantized(ScaleStorage::DoubleQuantized);
        assert_eq!(quantized.quantized + quantized.kept, model.elements());
        // 32 layers of seven linear weights.
        assert_eq!(
            quantized.quantized,
            Elements(32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336))
        );
    }

    /// Recorded with bitsandbytes 0.50.2: 6,525,288,448 elements in 196 matrices, the output in 16 bits also below adapters.
    #[test]
    fn the_output_keeps_its_format_below_adapters_too() {
        let model = catalogue::find("qwen2.5-7b").unwrap().model().unwrap();
        for lora in [Lora::new(16).on_all_linear(), Lora::new(16).on(&["q_proj"])] {
            let quantized = lora.apply(&model).unwrap().quantized(ScaleStorage::DoubleQuantized);
            assert_eq!(quantized.quantized, Elements(6_525_288_448));
            // Weights, scales with theirs, and the tables of 196 matrices.
            assert_eq!(
                [quantized.size.weights.0, quantized.size.scales.0, quantized.size.tables.0],
                [3_262_644_224, 101_957_632 + 1_593_088, 214_032]
            );
        }
    }

    #[test]
    fn stacked_experts_are_not_quantized() {
        let model = catalogue::find("mixtral-8x7b").unwrap().model().unwrap();
        let quantized = model.quantized(ScaleStorage::Plain);
        assert!(quantized.kept > model.count().routed);
    }
}
