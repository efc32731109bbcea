//! Llama 3.2 Vision and Llama 4.

use serde_json::Value;

use crate::architecture::Module;
use crate::config::{ConfigError, Reader, ValueKind};
use crate::dimensions::Dimensions;
use crate::family::Family;
use crate::family::blueprint::{Blueprint, Context, Language};
use crate::family::composite::Tying;
use crate::family::decoder::Decoder;
use crate::family::mixture;
use crate::family::parts::{Bias, convolution, embedding, layer_norm, linear};
use crate::family::vision::{VISION_CONFIG, feed_forward};
use crate::part::{PartKind, PartPath};

type Built = Result<Blueprint, ConfigError>;

/// The patches of a tile and the class token.
fn positions(reader: &Reader<'_>) -> Result<u64, ConfigError> {
    let side = reader.side("image_size")? / reader.side("patch_size")?;
    Ok(side * side + 1)
}

fn layer(
    reader: &Reader<'_>,
    prefix: &str,
    heads: &str,
    bias: Bias,
) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let heads = reader.size(heads)?;
    // Rounded down, as the class does.
    let width = hidden / heads * heads;
    let attention = Module::new(format!("{prefix}VisionAttention"))
        .with("q_proj", linear(hidden, width, bias))
        .with("k_proj", linear(hidden, width, bias))
        .with("v_proj", linear(hidden, width, bias))
        .with("o_proj", linear(width, hidden, bias));
    Ok(Module::new(format!("{prefix}VisionEncoderLayer"))
        .with("self_attn", attention)
        .with("mlp", feed_forward(format!("{prefix}VisionMLP"), hidden, inner))
        .with("input_layernorm", layer_norm(hidden))
        .with("post_attention_layernorm", layer_norm(hidden)))
}

const MLLAMA_PARTS: &[PartPath] = &[
    (PartKind::Vision, "model.vision_model"),
    (PartKind::Projector, "model.multi_modal_projector"),
];

/// Layers that attend to the image, if the config names none.
const CROSS_ATTENTION_LAYERS: [u64; 8] = [3, 8, 13, 18, 23, 28, 33, 38];

/// Ways to lay out the tiles of an image, if the config names none.
const ASPECT_RATIOS: u64 = 8;

/// Rows of the embedding beyond the vocabulary of the output.
const EXTRA_TOKENS: u64 = 8;

pub(super) fn mllama(context: &Context<'_>) -> Built {
    let reader = context.reader.section(VISION_CONFIG)?.reader;
    let tower = mllama_tower(&reader)?;
    let language = context.language_model(Tying::Never, Language::Other, mllama_text)?;
    let hidden = language.dimensions.hidden_size;
    let projector = linear(reader.size("vision_output_dim")?, hidden, Bias::Yes);
    // Here the projector is registered last.
    let model = Module::new("MllamaModel")
        .with("vision_model", tower)
        .with("language_model", language.module.clone())
        .with("multi_modal_projector", projector);
    Ok(context.with_output(model, &language, MLLAMA_PARTS))
}

fn mllama_tower(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let hidden = reader.size("hidden_size")?;
    let tiles = reader.side("max_num_tiles")?;
    let (positions, ratios) = (positions(reader)?, aspect_ratios(reader)? + 1);
    let tiled = tiles * hidden;
    let tile_embedding = embedding(ratios, tiled.saturating_mul(positions));
    let gated_positions = Module::new("MllamaPrecomputedPositionEmbedding")
        .parameter("gate", [1])
        .parameter("embedding", [positions, hidden])
        .with("tile_embedding", tile_embedding);
    let of_tile = || {
        Module::new("MllamaPrecomputedAspectRatioEmbedding")
            .parameter("gate", [1])
            .with("embedding", embedding(ratios, tiled))
    };
    let layer = layer(reader, "Mllama", "attention_heads", Bias::No)?;
    let gated = layer.clone().parameter("gate_attn", [1]).parameter("gate_ffn", [1]);
    let encoder = |layers: u64, layer: Module| {
        Module::new("MllamaVisionEncoder").with("layers", Module::repeated(layers, layer))
    };
    let (channels, patch) = (reader.size("num_channels")?, reader.side("patch_size")?);
    Ok(Module::new("MllamaVisionModel")
        .parameter("class_embedding", [hidden])
        .with("patch_embedding", convolution(channels, hidden, [patch, patch], Bias::No))
        .with("gated_positional_embedding", gated_positions)
        .with("pre_tile_positional_embedding", of_tile())
        .with("post_tile_positional_embedding", of_tile())
        .with("layernorm_pre", layer_norm(hidden))
        .with("layernorm_post", layer_norm(hidden))
        .with("transformer", encoder(reader.layers("num_hidden_layers")?, layer))
        .with("global_transformer", encoder(reader.layers("num_global_layers")?, gated)))
}

fn aspect_ratios(reader: &Reader<'_>) -> Result<u64, ConfigError> {
    let key = "supported_aspect_ratios";
    match reader.value(key) {
        None => Ok(ASPECT_RATIOS),
        Some(Value::Array(list)) => Ok(list.len() as u64),
        Some(other) => Err(ConfigError::WrongKind {
            key: key.to_owned(),
            expected: ValueKind::List,
            found: other.into(),
        }),
    }
}

/// Some of its layers attend to the image instead of the text.
fn mllama_text(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "MllamaText")?;
    let head_dim = decoder.hidden_per_head()?;
    let decoder = decoder.with_head_dim(head_dim).with_extra_tokens(EXTRA_TOKENS);
    let named = context.reader.layer_numbers("cross_attention_layers")?;
    let crossed = named.unwrap_or_else(|| CROSS_ATTENTION_LAYERS.to_vec());
    let attention = |class: &'static str| {
        let mut attention = decoder.attention(Bias::No, Bias::No);
        attention.class = class.into();
        attention
    };
    let Dimensions { layers, .. } = decoder.sizes;
    let layers = Module::list(
        layers,
        |layer| crossed.contains(&layer),
        |crossed| {
            let mlp = decoder.mlp(Bias::No);
            if crossed {
                let attention = attention("MllamaTextCrossAttention")
                    .with("q_norm", decoder.rms_norm_over(head_dim))
                    .with("k_norm", decoder.rms_norm_over(head_dim));
                Module::new("MllamaCrossAttentionDecoderLayer")
                    .parameter("cross_attn_attn_gate", [1])
                    .parameter("cross_attn_mlp_gate", [1])
                    .with("cross_attn", attention)
                    .with("input_layernorm", decoder.rms_norm())
                    .with("mlp", mlp)
                    .with("post_attention_layernorm", decoder.rms_norm())
            } else {
                Module::new("MllamaSelfAttentionDecoderLayer")
                    .with("self_attn", attention("MllamaTextSelfAttention"))
                    .with("mlp", mlp)
                    .with("input_layernorm", decoder.rms_norm())
                    .with("post_attention_layernorm", decoder.rms_norm())
            }
        },
    );
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

const LLAMA4_PARTS: &[PartPath] =
    &[(PartKind::Vision, "vision_model"), (PartKind::Projector, "multi_modal_projector")];

/// Holds a whole language model with its output.
pub(super) fn llama4(context: &Context<'_>) -> Built {
    let reader = context.reader.section(VISION_CONFIG)?.reader;
    let Blueprint { root: mut language, dimensions, .. } =
        mixture::llama4(&context.text(Tying::Inner)?)?;
    language.class = "Llama4ForCausalLM".into();
    let output = reader.size("vision_output_dim")?;
    let projector = Module::new("Llama4MultiModalProjector")
        .with("linear_1", linear(output, dimensions.hidden_size, Bias::No));
    let root = Module::new(context.class())
        .with("vision_model", llama4_tower(&reader)?)
        .with("multi_modal_projector", projector)
        .with("language_model", language);
    Ok(Blueprint {
        root,
        dimensions,
        output: Some("language_model.lm_head"),
        parts: LLAMA4_PARTS,
        language: Language::Of(Family::Llama4Text),
    })
}

fn llama4_tower(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let [height, width] = reader.height_and_width("patch_size")?;
    let pixels = (height * width).saturating_mul(reader.size("num_channels")?);
    let patches =
        Module::new("Llama4UnfoldConvolution").with("linear", linear(pixels, hidden, Bias::No));
    let layer = layer(reader, "Llama4", "num_attention_heads", Bias::Yes)?;
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer);
    let (input, output) =
        (reader.size("projector_input_dim")?, reader.size("projector_output_dim")?);
    let mlp = Module::new("Llama4VisionMLP2")
        .with("fc1", linear(inner, input, Bias::No))
        .with("fc2", linear(output, output, Bias::No));
    Ok(Module::new("Llama4VisionModel")
        .parameter("class_embedding", [hidden])
        .parameter("positional_embedding_vlm", [positions(reader)?, hidden])
        .with("patch_embedding", patches)
        .with("layernorm_pre", layer_norm(hidden))
        .with("layernorm_post", layer_norm(hidden))
        .with("model", Module::new("Llama4VisionEncoder").with("layers", layers))
        .with("vision_adapter", Module::new("Llama4VisionPixelShuffleMLP").with("mlp", mlp)))
}
