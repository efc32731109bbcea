//! A model that nobody has a config of, by its size.

use serde_json::json;

use crate::config::ConfigError;
use crate::model::{Model, Names, Weights};

use super::{CountedFrom, StandInClass};

/// What is known of a model without a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Parameters it is to have.
    pub params: u64,
    /// Layers.
    pub layers: u64,
    /// Width.
    pub hidden: u64,
    /// Rows of the embedding; Llama 3 has 128,256.
    pub vocab: Option<u64>,
    /// Query heads; 128 wide each if they are not given.
    pub heads: Option<u64>,
    /// Key and value heads; as many as query heads if they are not given.
    pub kv_heads: Option<u64>,
}

const VOCABULARY: u64 = 128_256;

/// The usual widths of a head, the most usual first.
const HEAD_WIDTHS: [u64; 6] = [128, 64, 96, 80, 32, 16];

impl Model {
    /// A model shaped like Llama with as nearly as many parameters as whole widths allow;
    /// [`Model::elements`] says how many it has.
    ///
    /// # Errors
    ///
    /// If embedding and attention alone have more parameters, or a size is impossible.
    pub fn from_sizes(sizes: Sizes) -> Result<Self, ConfigError> {
        let heads = sizes.heads.unwrap_or_else(|| usual_heads(sizes.hidden));
        let build = |inner: u64, is_tied: bool| {
            let config = json!({
                "model_type": "llama",
                "hidden_size": sizes.hidden,
                "num_hidden_layers": sizes.layers,
                "num_attention_heads": heads,
                "num_key_value_heads": sizes.kv_heads.unwrap_or(heads),
                "vocab_size": sizes.vocab.unwrap_or(VOCABULARY),
                "intermediate_size": inner,
                "tie_word_embeddings": is_tied,
            });
            Self::from_config_with(&config.to_string(), Weights::Checkpoint)
        };
        // The rest of a layer is three matrices as long as the model is wide.
        let per_width = 3_u64.saturating_mul(sizes.hidden).saturating_mul(sizes.layers);
        let mut least = u64::MAX;
        for is_tied in [false, true] {
            let smallest = build(1, is_tied)?.elements().0;
            least = least.min(smallest);
            if sizes.params < smallest || per_width == 0 {
                continue;
            }
            let more = sizes.params - smallest;
            let inner = 1 + more / per_width + u64::from(more % per_width > per_width / 2);
            let mut model = build(inner, is_tied)?;
            let (class, counted) = (StandInClass::Gated, CountedFrom::Sizes);
            let of = String::new();
            model.names = Names::Likeness { of, class, counted, is_language_only: false };
            return Ok(model);
        }
        Err(ConfigError::TooFewParameters { params: sizes.params, least })
    }
}

fn usual_heads(hidden: u64) -> u64 {
    let width = HEAD_WIDTHS.into_iter().find(|width| hidden.is_multiple_of(*width));
    width.map_or(1, |width| (hidden / width).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_as_near_as_whole_widths_allow() {
        for (params, layers, hidden) in
            [(8_030_261_248, 32, 4096), (1_500_000_000, 24, 2048), (70_000_000_000, 80, 8192)]
        {
            let sizes = Sizes { params, layers, hidden, ..Sizes::default() };
            let model = Model::from_sizes(sizes).expect("a model");
            let off = model.elements().0.abs_diff(params);
            assert!(off <= 3 * layers * hidden / 2 + 1, "{off} of {params}");
            assert_eq!(model.stand_in(), Some(StandInClass::Gated));
        }
    }

    #[test]
    fn sizes_that_contradict_each_other_are_refused() {
        let sizes = Sizes { params: 1_000_000, layers: 32, hidden: 4096, ..Sizes::default() };
        let error = Model::from_sizes(sizes).unwrap_err();
        assert!(matches!(error, ConfigError::TooFewParameters { params: 1_000_000, .. }));
        let none = Sizes { params: 7, ..Sizes::default() };
        assert!(Model::from_sizes(none).is_err());
    }
}
