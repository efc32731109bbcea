//! Whisper, and Qwen2-Audio, which hears with an encoder of its form.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context, Head, Language};
use crate::family::composite::Tying;
use crate::family::parts::{Bias, convolution, embedding, embedding_of, layer_norm, linear};
use crate::part::{PartKind, PartPath};

/// Width of both convolutions.
const KERNEL: u64 = 3;

const PARTS: &[PartPath] = &[(PartKind::Audio, "model.encoder")];
const BASE_PARTS: &[PartPath] = &[(PartKind::Audio, "encoder")];

pub(super) fn whisper(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    let reader = &context.reader;
    let head_dim = reader.quotient("d_model", "encoder_attention_heads")?;
    reader.quotient("d_model", "decoder_attention_heads")?;
    let (hidden, heads) = (reader.size("d_model")?, reader.size("encoder_attention_heads")?);
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: reader.size("encoder_ffn_dim")?,
        layers: reader.layers("encoder_layers")?,
        decoder_layers: Some(reader.layers("decoder_layers")?),
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: Some(reader.size("max_target_positions")?),
        ..Dimensions::default()
    };
    let model = Module::new("WhisperModel")
        .with("encoder", encoder(reader, "Whisper")?)
        .with("decoder", decoder(context, &sizes)?);
    if context.head == Head::None {
        let parts = BASE_PARTS;
        return Ok(Blueprint { parts, ..Blueprint::of_text(model, sizes, None) });
    }
    let head = linear(hidden, sizes.vocab_size, Bias::No);
    let root = Module::new(context.class())
        .with("model", model)
        .with("proj_out", head.tied("weight", context.embedding_tie()?));
    let language = Language::Own;
    Ok(Blueprint { root, dimensions: sizes, output: Some("proj_out"), parts: PARTS, language })
}

const QWEN2_AUDIO_PARTS: &[PartPath] =
    &[(PartKind::Audio, "model.audio_tower"), (PartKind::Projector, "model.multi_modal_projector")];

pub(super) fn qwen2_audio(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    let audio = context.reader.section("audio_config")?.reader;
    audio.quotient("d_model", "encoder_attention_heads")?;
    let language = context.named_language_model(Tying::Never)?;
    let hidden = language.dimensions.hidden_size;
    let projector = Module::new("Qwen2AudioMultiModalProjector")
        .with("linear", linear(audio.size("d_model")?, hidden, Bias::Yes));
    let model = Module::new("Qwen2AudioModel")
        .with("audio_tower", encoder(&audio, "Qwen2Audio")?)
        .with("multi_modal_projector", projector)
        .with("language_model", language.module.clone());
    Ok(context.with_output(model, &language, QWEN2_AUDIO_PARTS))
}

/// An encoder whose classes begin with `prefix`.
fn encoder(reader: &Reader<'_>, prefix: &str) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("d_model")?, reader.size("encoder_ffn_dim")?);
    // A sinusoid that is held as a parameter and never trained.
    let positions = embedding(reader.size("max_source_positions")?, hidden).frozen();
    let layer = Module::new(format!("{prefix}EncoderLayer"))
        .with("self_attn", attention(prefix, hidden))
        .with("self_attn_layer_norm", layer_norm(hidden));
    let layers = reader.layers("encoder_layers")?;
    let bins = reader.size("num_mel_bins")?;
    Ok(Module::new(format!("{prefix}Encoder"))
        .with("conv1", convolution(bins, hidden, [KERNEL], Bias::Yes))
        .with("conv2", convolution(hidden, hidden, [KERNEL], Bias::Yes))
        .with("embed_positions", positions)
        .with("layers", Module::repeated(layers, feed_forward(layer, hidden, inner)))
        .with("layer_norm", layer_norm(hidden)))
}

fn decoder(context: &Context<'_>, sizes: &Dimensions) -> Result<Module, ConfigError> {
    let hidden = sizes.hidden_size;
    let words = embedding(sizes.vocab_size, hidden).tied("weight", context.embedding_tie()?);
    let positions = sizes.max_positions.unwrap_or_default();
    let layer = Module::new("WhisperDecoderLayer")
        .with("self_attn", attention("Whisper", hidden))
        .with("self_attn_layer_norm", layer_norm(hidden))
        .with("encoder_attn", attention("Whisper", hidden))
        .with("encoder_attn_layer_norm", layer_norm(hidden));
    let layer = feed_forward(layer, hidden, context.reader.size("decoder_ffn_dim")?);
    Ok(Module::new("WhisperDecoder")
        .with("embed_tokens", words)
        .with("embed_positions", embedding_of("WhisperPositionalEmbedding", positions, hidden))
        .with("layers", Module::repeated(sizes.decoder_layers.unwrap_or_default(), layer))
        .with("layer_norm", layer_norm(hidden)))
}

fn attention(prefix: &str, hidden: u64) -> Module {
    Module::new(format!("{prefix}Attention"))
        .with("k_proj", linear(hidden, hidden, Bias::No))
        .with("v_proj", linear(hidden, hidden, Bias::Yes))
        .with("q_proj", linear(hidden, hidden, Bias::Yes))
        .with("out_proj", linear(hidden, hidden, Bias::Yes))
}

fn feed_forward(layer: Module, hidden: u64, inner: u64) -> Module {
    layer
        .with("fc1", linear(hidden, inner, Bias::Yes))
        .with("fc2", linear(inner, hidden, Bias::Yes))
        .with("final_layer_norm", layer_norm(hidden))
}
