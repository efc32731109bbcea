//! Who ran a loop and with what software, as far as it changes what a GPU holds: `recipes` of
//! `knowledge/field/reading.json`.

use serde::Deserialize;
use zeropilot_config::schema::EngineVersion;
use zeropilot_step::head::LossHead;
use zeropilot_step::primitive::QuantizedProduct;
use zeropilot_step::tape::{Autocast, LayerKernels};
use zeropilot_step::zero::{Engine, Loading};
use zeropilot_units::ElementSize;

use crate::reading::READING;
use crate::row::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EngineName {
    #[default]
    Deepspeed,
    Pytorch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AutocastName {
    #[default]
    Off,
    OutputsInFp32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LossName {
    #[default]
    Model,
    ShiftedCopy,
    NarrowShiftedCopy,
    Fused,
    FusedWithCopies,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KernelsName {
    #[default]
    Model,
    Liger,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProductName {
    #[default]
    Weight,
    WeightAndInput,
    WideWeight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LoadingName {
    Whole,
}

fn yes() -> bool {
    true
}

/// How runs of a source were made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipeReading {
    source: String,
    /// Part of what the row says about its framework, model or precision.
    framework: Option<String>,
    model: Option<String>,
    precision: Option<String>,
    #[serde(default)]
    engine: EngineName,
    #[serde(default)]
    autocast: AutocastName,
    #[serde(default)]
    loss: LossName,
    #[serde(default)]
    layer_kernels: KernelsName,
    #[serde(default)]
    quantized_product: ProductName,
    loading: Option<LoadingName>,
    overlap_comm: Option<bool>,
    /// The version of DeepSpeed, or the oldest that is known.
    deepspeed: Option<String>,
    #[serde(default)]
    expandable_segments: bool,
    #[serde(default = "yes")]
    adapters_in_fp32: bool,
    #[serde(rename = "why")]
    _why: String,
}

impl RecipeReading {
    fn version(&self) -> EngineVersion {
        let known = self.deepspeed.as_deref().and_then(|text| EngineVersion::nearest(text).ok());
        known.unwrap_or(EngineVersion::NEWEST)
    }

    fn is_of(&self, row: &Row) -> bool {
        let has = |part: &Option<String>, text: &Option<String>| {
            let text = text.as_deref().unwrap_or("").to_lowercase();
            part.as_ref().is_none_or(|part| text.contains(&part.to_lowercase()))
        };
        self.source == row.prefix()
            && has(&self.framework, &row.framework)
            && has(&self.model, &Some(row.model.clone()))
            && has(&self.precision, &row.precision)
    }
}

/// The software of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Software {
    /// Who kept the states.
    pub engine: Engine,
    /// Whether forward ran under autocast.
    pub autocast: Autocast,
    /// How the loss was computed.
    pub loss: LossHead,
    /// Which kernels norms and activations ran in.
    pub layer_kernels: LayerKernels,
    /// How weights of four bits were multiplied.
    pub quantized_product: QuantizedProduct,
    /// How the model was loaded, where the front end's way is not it.
    pub loading: Option<Loading>,
    /// Whether adapters stay in 32 bits where PEFT makes them so.
    pub adapters_in_fp32: bool,
    /// `overlap_comm`, where the source states it.
    pub overlap_comm: Option<bool>,
    /// `expandable_segments:True`.
    pub expandable_segments: bool,
    /// The version of DeepSpeed.
    pub version: EngineVersion,
}

impl Software {
    /// That of a row; nothing if it is not known who ran it.
    pub fn of(row: &Row) -> Option<Self> {
        let known = READING.recipes.iter().find(|recipe| recipe.is_of(row));
        if let Some(known) = known {
            return Some(Self::from(known));
        }
        let framework = row.framework.as_deref().unwrap_or("");
        let by_deepspeed = framework.contains("DeepSpeed") && !framework.contains("no DeepSpeed");
        by_deepspeed.then_some(Self {
            engine: Engine::DeepSpeed,
            autocast: Autocast::Off,
            loss: LossHead::Model,
            layer_kernels: LayerKernels::Model,
            quantized_product: QuantizedProduct::Weight,
            loading: None,
            adapters_in_fp32: true,
            overlap_comm: None,
            expandable_segments: false,
            version: EngineVersion::NEWEST,
        })
    }
}

impl From<&RecipeReading> for Software {
    fn from(reading: &RecipeReading) -> Self {
        Self {
            engine: match reading.engine {
                EngineName::Deepspeed => Engine::DeepSpeed,
                EngineName::Pytorch => Engine::PyTorch,
            },
            autocast: match reading.autocast {
                AutocastName::Off => Autocast::Off,
                AutocastName::OutputsInFp32 => Autocast::OutputsInFp32,
            },
            loss: match reading.loss {
                LossName::Model => LossHead::Model,
                LossName::ShiftedCopy => LossHead::ShiftedCopy,
                LossName::NarrowShiftedCopy => LossHead::NarrowShiftedCopy,
                LossName::Fused => LossHead::Fused,
                LossName::FusedWithCopies => LossHead::FusedWithCopies,
            },
            layer_kernels: match reading.layer_kernels {
                KernelsName::Model => LayerKernels::Model,
                KernelsName::Liger => LayerKernels::Liger,
            },
            quantized_product: match reading.quantized_product {
                ProductName::Weight => QuantizedProduct::Weight,
                ProductName::WeightAndInput => QuantizedProduct::WeightAndInput,
                ProductName::WideWeight => QuantizedProduct::WideWeight,
            },
            loading: reading.loading.map(|LoadingName::Whole| Loading::Whole(ElementSize::Two)),
            adapters_in_fp32: reading.adapters_in_fp32,
            overlap_comm: reading.overlap_comm,
            expandable_segments: reading.expandable_segments,
            version: reading.version(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::rows;

    #[test]
    fn every_recipe_is_of_a_row() {
        for recipe in &READING.recipes {
            let first = rows().iter().find(|row| {
                READING
                    .recipes
                    .iter()
                    .find(|other| other.is_of(row))
                    .is_some_and(|found| std::ptr::eq(found, recipe))
            });
            assert!(first.is_some(), "{recipe:?}");
        }
    }
}
