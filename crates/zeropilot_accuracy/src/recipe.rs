//! Who ran a loop and with what software, as far as it changes what a GPU holds: `recipes` of
//! `knowledge/field/reading.json`.

use serde::{Deserialize, Deserializer, de};
use zeropilot_config::schema::EngineVersion;
use zeropilot_step::head::LossHead;
use zeropilot_step::primitive::QuantizedProduct;
use zeropilot_step::tape::{Autocast, LayerKernels};
use zeropilot_step::task::Scores;
use zeropilot_step::zero::Engine;

use crate::reading::READING;
use crate::row::Row;

/// How runs of a source were made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipeReading {
    source: String,
    /// Part of what the row says about its framework, model, precision or task.
    framework: Option<String>,
    model: Option<String>,
    precision: Option<String>,
    task: Option<String>,
    software: Software,
    #[serde(rename = "why")]
    _why: String,
}

impl RecipeReading {
    fn is_of(&self, row: &Row) -> bool {
        let has = |part: &Option<String>, text: &Option<String>| {
            let text = text.as_deref().unwrap_or("").to_lowercase();
            part.as_ref().is_none_or(|part| text.contains(&part.to_lowercase()))
        };
        self.source == row.prefix()
            && has(&self.framework, &row.framework)
            && has(&self.model, &Some(row.model.clone()))
            && has(&self.precision, &row.precision)
            && has(&self.task, &row.task)
    }
}

/// The sizes of buckets and of what stage 3 prefetches and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buckets {
    /// DeepSpeed's defaults.
    #[default]
    Default,
    /// Those of ms-swift's configs: `2e8`, and in stage 3 `"auto"`, which transformers fills in by the width of the model.
    Swift,
}

/// How pairs of answers share a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// Every answer is padded to the longest.
    #[default]
    Padded,
    /// All answers of a micro batch in one sequence without padding.
    Joined,
    /// As many pairs as fit in one sequence of the stated length.
    Packed,
}

/// The software of a run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// Whether the model was built before `deepspeed.initialize`, whatever the stage.
    pub is_built_whole: bool,
    /// Whether adapters stay in 32 bits where PEFT makes them so.
    pub adapters_in_fp32: bool,
    /// `overlap_comm`, where the source states it.
    pub overlap_comm: Option<bool>,
    /// Bucket sizes of the config.
    pub buckets: Buckets,
    /// Whether the script brings the optimizer, and the config names none.
    pub brings_optimizer: bool,
    /// How DPO computes log-probabilities.
    pub scores: Scores,
    /// How it puts pairs together.
    pub pairs: Pairs,
    /// Whether a task computes logits of labelled positions only.
    pub keeps_labelled_logits: bool,
    /// Whether GKD is that of ms-swift: it copies the logits of labelled positions, and its teacher has no cache.
    pub is_swift_gkd: bool,
    /// Whether GKD adds the student's own loss.
    pub adds_cross_entropy: bool,
    /// Tokens of a completion, where they are generated.
    pub completion: Option<u64>,
    /// `expandable_segments:True`.
    pub expandable_segments: bool,
    /// The version of DeepSpeed, or the oldest that is known.
    #[serde(deserialize_with = "version")]
    pub deepspeed: EngineVersion,
}

impl Default for Software {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            autocast: Autocast::default(),
            loss: LossHead::default(),
            layer_kernels: LayerKernels::default(),
            quantized_product: QuantizedProduct::default(),
            is_built_whole: false,
            adapters_in_fp32: true,
            overlap_comm: None,
            buckets: Buckets::default(),
            brings_optimizer: false,
            scores: Scores::default(),
            pairs: Pairs::default(),
            keeps_labelled_logits: false,
            is_swift_gkd: false,
            adds_cross_entropy: false,
            completion: None,
            expandable_segments: false,
            deepspeed: EngineVersion::NEWEST,
        }
    }
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<EngineVersion, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

impl Software {
    /// That of a row; nothing if it is not known who ran it.
    pub fn of(row: &Row) -> Option<Self> {
        if let Some(known) = READING.recipes.iter().find(|recipe| recipe.is_of(row)) {
            return Some(known.software);
        }
        let framework = row.framework.as_deref().unwrap_or("");
        let by_deepspeed = framework.contains("DeepSpeed") && !framework.contains("no DeepSpeed");
        by_deepspeed.then(Self::default)
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
