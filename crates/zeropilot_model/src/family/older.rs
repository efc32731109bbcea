//! Decoders that follow nobody: BLOOM, Falcon, GPT-NeoX, OPT, Phi.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context, Head};
use crate::family::decoder::Decoder;
use crate::family::parts::{Bias, embedding, embedding_of, layer_norm, linear, linear_of};

type Built = Result<Blueprint, ConfigError>;

/// The key that older BLOOM and Falcon configs use, which wins over the newer one.
fn hidden_size(context: &Context<'_>) -> Result<(&'static str, u64), ConfigError> {
    match context.reader.optional_size("n_embed")? {
        Some(size) => Ok(("n_embed", size)),
        None => Ok(("hidden_size", context.reader.size("hidden_size")?)),
    }
}

pub(super) fn bloom(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let (key, hidden) = hidden_size(context)?;
    let head_dim = reader.quotient(key, "n_head")?;
    let heads = reader.size("n_head")?;
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: 4 * hidden,
        layers: reader.layers("n_layer")?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: reader.optional_size("seq_length")?,
        ..Dimensions::default()
    };
    let attention = Module::new("BloomAttention")
        .with("query_key_value", linear(hidden, 3 * hidden, Bias::Yes))
        .with("dense", linear(hidden, hidden, Bias::Yes));
    let mlp = Module::new("BloomMLP")
        .with("dense_h_to_4h", linear(hidden, 4 * hidden, Bias::Yes))
        .with("dense_4h_to_h", linear(4 * hidden, hidden, Bias::Yes));
    let block = Module::new("BloomBlock")
        .with("input_layernorm", layer_norm(hidden))
        .with("self_attention", attention)
        .with("post_attention_layernorm", layer_norm(hidden))
        .with("mlp", mlp);
    let words = embedding(sizes.vocab_size, hidden);
    let model = Module::new("BloomModel")
        .with("word_embeddings", words.tied("weight", context.embedding_tie()?))
        .with("word_embeddings_layernorm", layer_norm(hidden))
        .with("h", Module::repeated(sizes.layers, block))
        .with("ln_f", layer_norm(hidden));
    context.with_head("transformer", model, sizes, Bias::No)
}

pub(super) fn falcon(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let (key, hidden) = hidden_size(context)?;
    let head_dim = reader.quotient(key, "num_attention_heads")?;
    let heads = reader.size("num_attention_heads")?;
    let new = reader.flag("new_decoder_architecture")?;
    let kv_heads = if new {
        reader.optional_size("num_kv_heads")?.unwrap_or(heads)
    } else if reader.flag("multi_query")? {
        1
    } else {
        heads
    };
    let inner = reader.optional_size("ffn_hidden_size")?.unwrap_or(4 * hidden);
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: inner,
        layers: reader.layers("num_hidden_layers")?,
        heads,
        kv_heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: reader.optional_size("max_position_embeddings")?,
        ..Dimensions::default()
    };
    let bias = Bias::from(reader.flag("bias")?);
    let linear = |inputs, outputs| linear_of("FalconLinear", inputs, outputs, bias);
    let attention = Module::new("FalconAttention")
        .with("query_key_value", linear(hidden, (heads + 2 * kv_heads) * head_dim))
        .with("dense", linear(hidden, hidden));
    let mlp = Module::new("FalconMLP")
        .with("dense_h_to_4h", linear(hidden, inner))
        .with("dense_4h_to_h", linear(inner, hidden));
    let layer =
        Module::new("FalconDecoderLayer").with("self_attention", attention).with("mlp", mlp);
    let layer = falcon_norms(context, layer, hidden, new)?;
    let words = embedding(sizes.vocab_size, hidden);
    let model = Module::new("FalconModel")
        .with("word_embeddings", words.tied("weight", context.embedding_tie()?))
        .with("h", Module::repeated(sizes.layers, layer))
        .with("ln_f", layer_norm(hidden));
    context.with_head("transformer", model, sizes, Bias::No)
}

fn falcon_norms(
    context: &Context<'_>,
    layer: Module,
    hidden: u64,
    new: bool,
) -> Result<Module, ConfigError> {
    let reader = &context.reader;
    let in_parallel = reader.optional_size("num_ln_in_parallel_attn")?;
    let norm = || layer_norm(hidden);
    Ok(if !reader.flag("parallel_attn")? {
        layer.with("post_attention_layernorm", norm()).with("input_layernorm", norm())
    } else if in_parallel.unwrap_or(if new { 2 } else { 1 }) == 2 {
        layer.with("ln_attn", norm()).with("ln_mlp", norm())
    } else {
        layer.with("input_layernorm", norm())
    })
}

pub(super) fn gpt_neox(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let head_dim = reader.quotient("hidden_size", "num_attention_heads")?;
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let heads = reader.size("num_attention_heads")?;
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: inner,
        layers: reader.layers("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: reader.optional_size("max_position_embeddings")?,
        ..Dimensions::default()
    };
    let bias = Bias::from(reader.flag("attention_bias")?);
    let attention = Module::new("GPTNeoXAttention")
        .with("query_key_value", linear(hidden, 3 * hidden, bias))
        .with("dense", linear(hidden, hidden, bias));
    let mlp = Module::new("GPTNeoXMLP")
        .with("dense_h_to_4h", linear(hidden, inner, Bias::Yes))
        .with("dense_4h_to_h", linear(inner, hidden, Bias::Yes));
    let layer = Module::new("GPTNeoXLayer")
        .with("input_layernorm", layer_norm(hidden))
        .with("post_attention_layernorm", layer_norm(hidden))
        .with("attention", attention)
        .with("mlp", mlp);
    let words = embedding(sizes.vocab_size, hidden);
    let model = Module::new("GPTNeoXModel")
        .with("embed_in", words.tied("weight", context.embedding_tie()?))
        .with("layers", Module::repeated(sizes.layers, layer))
        .with("final_layer_norm", layer_norm(hidden));
    context.with_head("gpt_neox", model, sizes, Bias::No)
}

/// The table of positions has two rows more than positions.
const OPT_OFFSET: u64 = 2;

pub(super) fn opt(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let head_dim = reader.quotient("hidden_size", "num_attention_heads")?;
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("ffn_dim")?);
    let heads = reader.size("num_attention_heads")?;
    let positions = reader.size("max_position_embeddings")?;
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: inner,
        layers: reader.layers("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: Some(positions),
        ..Dimensions::default()
    };
    let width = reader.optional_size("word_embed_proj_dim")?.unwrap_or(hidden);
    let projected = |from, to| (width != hidden).then(|| linear(from, to, Bias::No));
    let affine = reader.flag("layer_norm_elementwise_affine")?;
    let norm = || affine.then(|| layer_norm(hidden));
    let last_norm =
        reader.flag("do_layer_norm_before")? && !reader.flag("_remove_final_layer_norm")?;
    let bias = Bias::from(reader.flag("enable_bias")?);
    let words = embedding(sizes.vocab_size, width);
    let decoder = Module::new("OPTDecoder")
        .with("embed_tokens", words.tied("weight", context.embedding_tie()?))
        .with(
            "embed_positions",
            embedding_of("OPTLearnedPositionalEmbedding", positions + OPT_OFFSET, hidden),
        )
        .with_some("project_out", projected(hidden, width))
        .with_some("project_in", projected(width, hidden))
        .with_some("final_layer_norm", norm().filter(|_| last_norm))
        .with("layers", Module::repeated(sizes.layers, opt_layer(hidden, inner, bias, &norm)));
    let model = Module::new("OPTModel").with("decoder", decoder);
    if context.head == Head::None {
        return Ok(Blueprint::of_text(model, sizes, None));
    }
    let root = Module::new(context.class()).with("model", model);
    let (root, output) = match context.head {
        Head::LanguageModel => {
            let head = linear(width, sizes.vocab_size, Bias::No);
            (root.with("lm_head", head.tied("weight", context.embedding_tie()?)), Some("lm_head"))
        }
        Head::Classifier => (root.with("score", linear(width, reader.labels()?, Bias::No)), None),
        Head::None => (root, None),
    };
    Ok(Blueprint::of_text(root, sizes, output))
}

fn opt_layer(hidden: u64, inner: u64, bias: Bias, norm: &dyn Fn() -> Option<Module>) -> Module {
    let attention = Module::new("OPTAttention")
        .with("k_proj", linear(hidden, hidden, bias))
        .with("v_proj", linear(hidden, hidden, bias))
        .with("q_proj", linear(hidden, hidden, bias))
        .with("out_proj", linear(hidden, hidden, bias));
    Module::new("OPTDecoderLayer")
        .with("self_attn", attention)
        .with_some("self_attn_layer_norm", norm())
        .with("fc1", linear(hidden, inner, bias))
        .with("fc2", linear(inner, hidden, bias))
        .with_some("final_layer_norm", norm())
}

pub(super) fn phi(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Phi")?.with_head_bias(Bias::Yes);
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = decoder.sizes;
    let Dimensions { heads, kv_heads, head_dim, layers, .. } = decoder.sizes;
    let mut attention = Module::new("PhiAttention")
        .with("q_proj", linear(hidden, heads * head_dim, Bias::Yes))
        .with("k_proj", linear(hidden, kv_heads * head_dim, Bias::Yes))
        .with("v_proj", linear(hidden, kv_heads * head_dim, Bias::Yes))
        .with("dense", linear(heads * head_dim, hidden, Bias::Yes));
    if context.reader.flag("qk_layernorm")? {
        let width = decoder.hidden_per_head()?;
        attention =
            attention.with("q_layernorm", layer_norm(width)).with("k_layernorm", layer_norm(width));
    }
    let mlp = Module::new("PhiMLP")
        .with("fc1", linear(hidden, inner, Bias::Yes))
        .with("fc2", linear(inner, hidden, Bias::Yes));
    let layer = decoder.bare_layer(attention, mlp).with("input_layernorm", layer_norm(hidden));
    let layers = Module::repeated(layers, layer);
    decoder.finish_with(layers, "final_layernorm", Some(layer_norm(hidden)))
}
