//! Whisper.

use crate::architecture::{Module, ModuleKind};
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::parts::{Bias, embedding, embedding_of, layer_norm, linear};

/// Width of both convolutions.
const KERNEL: u64 = 3;

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
        .with("encoder", encoder(context, &sizes)?)
        .with("decoder", decoder(context, &sizes)?);
    let head = linear(hidden, sizes.vocab_size, Bias::No);
    let root = Module::new(context.class())
        .with("model", model)
        .with("proj_out", head.tied("weight", context.embedding_tie()?));
    Ok(Blueprint { root, dimensions: sizes, output: Some("proj_out") })
}

fn encoder(context: &Context<'_>, sizes: &Dimensions) -> Result<Module, ConfigError> {
    let reader = &context.reader;
    let hidden = sizes.hidden_size;
    // A sinusoid that is held as a parameter and never trained.
    let positions = embedding(reader.size("max_source_positions")?, hidden).frozen();
    let layer = Module::new("WhisperEncoderLayer")
        .with("self_attn", attention(hidden))
        .with("self_attn_layer_norm", layer_norm(hidden));
    let layer = feed_forward(layer, hidden, sizes.intermediate_size);
    Ok(Module::new("WhisperEncoder")
        .with("conv1", convolution(reader.size("num_mel_bins")?, hidden))
        .with("conv2", convolution(hidden, hidden))
        .with("embed_positions", positions)
        .with("layers", Module::repeated(sizes.layers, layer))
        .with("layer_norm", layer_norm(hidden)))
}

fn decoder(context: &Context<'_>, sizes: &Dimensions) -> Result<Module, ConfigError> {
    let hidden = sizes.hidden_size;
    let words = embedding(sizes.vocab_size, hidden).tied("weight", context.embedding_tie()?);
    let positions = sizes.max_positions.unwrap_or_default();
    let layer = Module::new("WhisperDecoderLayer")
        .with("self_attn", attention(hidden))
        .with("self_attn_layer_norm", layer_norm(hidden))
        .with("encoder_attn", attention(hidden))
        .with("encoder_attn_layer_norm", layer_norm(hidden));
    let layer = feed_forward(layer, hidden, context.reader.size("decoder_ffn_dim")?);
    Ok(Module::new("WhisperDecoder")
        .with("embed_tokens", words)
        .with("embed_positions", embedding_of("WhisperPositionalEmbedding", positions, hidden))
        .with("layers", Module::repeated(sizes.decoder_layers.unwrap_or_default(), layer))
        .with("layer_norm", layer_norm(hidden)))
}

fn convolution(inputs: u64, outputs: u64) -> Module {
    Module::of_kind("Conv1d", ModuleKind::Convolution)
        .parameter("weight", [outputs, inputs, KERNEL])
        .parameter("bias", [outputs])
}

fn attention(hidden: u64) -> Module {
    Module::new("WhisperAttention")
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
