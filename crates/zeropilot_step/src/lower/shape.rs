//! From a model to the dimensions and switches of a program.
//!
//! Which keys of a transformers config decide a program is known here and nowhere else. A family without a program of
//! its own is lent the one that is nearest in structure.

use zeropilot_model::{Dimensions, Family as ModelFamily, Model, Settings};

use super::tower;
use crate::family::Family;
use crate::shape::{Shape, Switches};

/// The program for a model, and whether it is the model's own.
pub(super) fn program(model: &Model) -> (Family, bool) {
    let Some(family) = model.language_family() else { return (Family::Llama, false) };
    let (program, is_own) = of_language(family, model);
    (program, is_own && tower::is_own(model))
}

/// The program for a language model.
fn of_language(family: ModelFamily, model: &Model) -> (Family, bool) {
    use ModelFamily as M;
    match family {
        M::Llama => (Family::Llama, true),
        M::Mistral => (Family::Mistral, true),
        M::Qwen2 => (Family::Qwen2, true),
        M::Qwen3 => (Family::Qwen3, true),
        M::Gemma2 => (Family::Gemma2, true),
        M::Gemma3Text => (Family::Gemma3, true),
        M::Phi3 => (Family::Phi3, true),
        M::Gpt2 => (Family::Gpt2, true),
        M::GptNeoX => (Family::GptNeoX, true),
        M::Opt => (Family::Opt, true),
        M::Bloom => (Family::Bloom, true),
        M::Falcon => (Family::Falcon, true),
        M::T5 | M::Mt5 => (Family::T5, true),
        M::Bert if model.class().ends_with("ForSequenceClassification") => {
            (Family::BertClassifier, true)
        }
        M::Bert => (Family::Bert, true),
        M::Mixtral => (Family::Mixtral, true),
        M::Qwen2Moe => (Family::Qwen2Moe, true),
        M::Qwen3Moe => (Family::Qwen3Moe, true),
        M::DeepseekV3 => (Family::DeepseekV3, true),
        M::DeepseekV2 => (Family::DeepseekV3, false),
        M::Gemma | M::Glm | M::Glm4 => (Family::Gemma3, false),
        M::Dots1 | M::Glm4Moe | M::MinimaxM2 | M::Olmoe => (Family::Qwen3Moe, false),
        M::GptBigCode | M::GptNeo => (Family::Gpt2, false),
        M::GptJ | M::Nemotron | M::Phi | M::Starcoder2 => (Family::GptNeoX, false),
        M::GraniteMoeHybrid if model.dimensions().is_some_and(|it| it.experts.is_some()) => {
            (Family::Mixtral, false)
        }
        M::GptOss | M::GraniteMoe | M::Llama4Text | M::Phimoe => (Family::Mixtral, false),
        M::ModernBert | M::Roberta | M::XlmRoberta => (Family::Bert, false),
        M::Apertus | M::Exaone4 | M::HunyuanV1Dense | M::Lfm2 | M::Olmo2 | M::Olmo3 => {
            (Family::Qwen3, false)
        }
        M::Ernie45Moe | M::Qwen35MoeText | M::Qwen3Next => (Family::Qwen2Moe, false),
        M::Qwen35Text => (Family::Qwen3, false),
        M::Whisper => (Family::Whisper, true),
        _ => (Family::Llama, false),
    }
}

/// The dimensions of a program.
pub(super) fn shape(model: &Model) -> Shape {
    let Some((dimensions, settings)) = model.dimensions().zip(model.language_settings()) else {
        return of_a_plain_model(model);
    };
    let settings = &settings;
    let number = |key: &str| settings.number(key).unwrap_or(0);
    let mut shape = Shape {
        hidden: dimensions.hidden_size,
        heads: dimensions.heads.max(1),
        kv_heads: dimensions.kv_heads.max(1),
        head_width: dimensions.head_dim,
        intermediate: dimensions.intermediate_size,
        vocabulary: dimensions.vocab_size,
        layers: dimensions.layers,
        positions: dimensions.max_positions.unwrap_or(0),
        query_latent: number("q_lora_rank"),
        kv_latent: number("kv_lora_rank"),
        nope_width: number("qk_nope_head_dim"),
        rope_width: number("qk_rope_head_dim"),
        value_width: number("v_head_dim"),
        expert_groups: number("n_group").max(1),
        groups_per_token: number("topk_group").max(1),
        ..Shape::default()
    };
    experts(dimensions, settings, &mut shape);
    if model.family() == Some(ModelFamily::Whisper) {
        // The tower describes the encoder.
        shape.layers = dimensions.decoder_layers.unwrap_or(0);
        shape.heads = number("decoder_attention_heads").max(1);
        shape.intermediate = number("decoder_ffn_dim");
    }
    shape
}

fn experts(dimensions: &Dimensions, settings: &Settings, shape: &mut Shape) {
    let Some(experts) = dimensions.experts else { return };
    shape.experts = experts.count;
    shape.experts_per_token = experts.per_token;
    shape.expert_intermediate = experts.intermediate_size;
    shape.shared_intermediate = experts.shared_intermediate_size;
    shape.shared_experts = settings.number("n_shared_experts").unwrap_or(0);
    shape.dense_layers = dimensions.layers.saturating_sub(experts.layers);
}

/// A model known only by its files: the shape of a Llama with as many elements, as far as names tell.
fn of_a_plain_model(model: &Model) -> Shape {
    let widest = model.parameters().filter(|entry| entry.parameter.shape.len() == 2);
    let embedding = widest.max_by_key(|entry| entry.parameter.shape[0]);
    let (vocabulary, hidden) =
        embedding.map_or((1, 1), |e| (e.parameter.shape[0], e.parameter.shape[1]));
    let layers = layers_by_name(model).max(1);
    let rest = model.elements().0.saturating_sub(2 * vocabulary * hidden) / layers;
    let attention = 4 * hidden * hidden;
    let intermediate = rest.saturating_sub(attention) / (3 * hidden).max(1);
    let head_width = hidden.min(128);
    let heads = (hidden / head_width).max(1);
    Shape {
        hidden,
        heads,
        kv_heads: heads,
        head_width,
        intermediate: intermediate.max(1),
        vocabulary,
        layers,
        ..Shape::default()
    }
}

/// One more than the highest number that stands in a name.
fn layers_by_name(model: &Model) -> u64 {
    let number = |name: &str| name.split('.').find_map(|part| part.parse::<u64>().ok());
    model.parameters().filter_map(|entry| number(&entry.name)).max().map_or(1, |last| last + 1)
}

/// The switches of a program, apart from those of the training recipe.
pub(super) fn switches(model: &Model, family: Family) -> Switches {
    let Some(settings) = model.language_settings() else { return Switches::NONE };
    let drops = |key: &str| settings.is_above_zero(key);
    let (embedding, residual, attention) = match family {
        Family::Gpt2 => (drops("embd_pdrop"), drops("resid_pdrop"), drops("attn_pdrop")),
        Family::Opt => (false, drops("dropout"), drops("attention_dropout")),
        Family::GptNeoX => {
            (drops("hidden_dropout"), drops("hidden_dropout"), drops("attention_dropout"))
        }
        Family::Bloom => (false, drops("hidden_dropout"), drops("attention_dropout")),
        Family::T5 => (drops("dropout_rate"), drops("dropout_rate"), drops("dropout_rate")),
        Family::Whisper => (false, drops("dropout"), drops("attention_dropout")),
        Family::Bert | Family::BertClassifier => (
            drops("hidden_dropout_prob"),
            drops("hidden_dropout_prob"),
            drops("attention_probs_dropout_prob"),
        ),
        _ => (false, false, false),
    };
    Switches {
        embedding_dropout: embedding,
        residual_dropout: residual,
        attention_dropout: attention,
        sliding_window: sliding_window(&settings),
        is_gated: settings.word("feed_forward_proj").is_some_and(|word| word.starts_with("gated")),
        tied: Some(model.has_tied_output()),
        normalise_top_k: settings.has("norm_topk_prob").then(|| settings.flag("norm_topk_prob")),
        ..Switches::NONE
    }
}

/// The window, where the config does not switch it off.
fn sliding_window(settings: &Settings) -> Option<u64> {
    let is_off = settings.has("use_sliding_window") && !settings.flag("use_sliding_window");
    settings.number("sliding_window").filter(|_| !is_off)
}
