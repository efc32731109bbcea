//! Llama and the dense decoders that follow it.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::parts::{Bias, gated_mlp, layer_norm, layer_norm_with, linear, norm};

type Built = Result<Blueprint, ConfigError>;

/// With one switch for all biases of the attention and one for those of the feed-forward block.
fn switched(decoder: &Decoder<'_>) -> Built {
    let bias = decoder.bias("attention_bias")?;
    let layer =
        decoder.layer(decoder.attention(bias, bias), decoder.mlp(decoder.bias("mlp_bias")?));
    decoder.finish(layer)
}

/// Without any bias.
fn plain(decoder: &Decoder<'_>) -> Built {
    let attention = decoder.attention(Bias::No, Bias::No);
    decoder.finish(decoder.layer(attention, decoder.mlp(Bias::No)))
}

pub(super) fn llama(context: &Context<'_>) -> Built {
    switched(&Decoder::new(context, "Llama")?.with_whole_heads()?)
}

pub(super) fn granite(context: &Context<'_>) -> Built {
    switched(&Decoder::new(context, "Granite")?)
}

pub(super) fn smollm3(context: &Context<'_>) -> Built {
    switched(&Decoder::new(context, "SmolLM3")?)
}

pub(super) fn mistral(context: &Context<'_>) -> Built {
    plain(&Decoder::new(context, "Mistral")?)
}

pub(super) fn ministral3(context: &Context<'_>) -> Built {
    plain(&Decoder::new(context, "Ministral3")?)
}

/// Query, key and value have a bias that no key switches.
pub(super) fn qwen2(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Qwen2")?;
    let attention = decoder.attention(Bias::Yes, Bias::No);
    decoder.finish(decoder.layer(attention, decoder.mlp(Bias::No)))
}

/// The language model of Qwen2-VL and Qwen2.5-VL, whose heads share the hidden size.
pub(super) fn qwen2_vl_text(context: &Context<'_>, prefix: &'static str) -> Built {
    let decoder = Decoder::new(context, prefix)?.with_whole_heads()?;
    let head_dim = decoder.hidden_per_head()?;
    let decoder = decoder.with_head_dim(head_dim).with_model_class(format!("{prefix}TextModel"));
    let Dimensions { hidden_size, intermediate_size, .. } = decoder.sizes;
    let mlp = gated_mlp("Qwen2MLP".to_owned(), hidden_size, intermediate_size, Bias::No);
    decoder.finish(decoder.layer(decoder.attention(Bias::Yes, Bias::No), mlp))
}

/// Attention with a norm over each head of queries and keys.
pub(super) fn attention_with_head_norms(decoder: &Decoder<'_>, qkv: Bias, output: Bias) -> Module {
    let head_dim = decoder.sizes.head_dim;
    decoder
        .attention(qkv, output)
        .with("q_norm", decoder.rms_norm_over(head_dim))
        .with("k_norm", decoder.rms_norm_over(head_dim))
}

pub(super) fn qwen3(context: &Context<'_>) -> Built {
    qwen3_of(context, "Qwen3")
}

/// Qwen 3 with classes of another name.
pub(super) fn qwen3_of(context: &Context<'_>, prefix: &'static str) -> Built {
    let decoder = Decoder::new(context, prefix)?;
    let bias = decoder.bias("attention_bias")?;
    let attention = attention_with_head_norms(&decoder, bias, bias);
    decoder.finish(decoder.layer(attention, decoder.mlp(Bias::No)))
}

pub(super) fn gemma(context: &Context<'_>) -> Built {
    let decoder =
        Decoder::new(context, "Gemma")?.with_embedding_class("GemmaTextScaledWordEmbedding");
    let bias = decoder.bias("attention_bias")?;
    decoder.finish(decoder.layer(decoder.attention(bias, bias), decoder.mlp(Bias::No)))
}

fn with_feedforward_norms(decoder: &Decoder<'_>, layer: Module) -> Module {
    layer
        .with("pre_feedforward_layernorm", decoder.rms_norm())
        .with("post_feedforward_layernorm", decoder.rms_norm())
}

pub(super) fn gemma2(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Gemma2")?
        .with_whole_heads()?
        .with_embedding_class("Gemma2TextScaledWordEmbedding");
    let bias = decoder.bias("attention_bias")?;
    let layer = decoder.layer(decoder.attention(bias, bias), decoder.mlp(Bias::No));
    decoder.finish(with_feedforward_norms(&decoder, layer))
}

pub(super) fn gemma3(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Gemma3")?
        .with_whole_heads()?
        .with_model_class("Gemma3TextModel")
        .with_embedding_class("Gemma3TextScaledWordEmbedding");
    let bias = decoder.bias("attention_bias")?;
    let attention = attention_with_head_norms(&decoder, bias, bias);
    let layer = decoder.layer(attention, decoder.mlp(Bias::No));
    decoder.finish(with_feedforward_norms(&decoder, layer))
}

/// Gate and up projection in one matrix.
fn fused_mlp(decoder: &Decoder<'_>) -> Module {
    let Dimensions { hidden_size, intermediate_size, .. } = decoder.sizes;
    Module::new(decoder.class("MLP"))
        .with("gate_up_proj", linear(hidden_size, 2 * intermediate_size, Bias::No))
        .with("down_proj", linear(intermediate_size, hidden_size, Bias::No))
}

pub(super) fn phi3(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Phi3")?;
    let Dimensions { hidden_size, heads, kv_heads, head_dim, .. } = decoder.sizes;
    // The output projection is registered first.
    let attention = Module::new("Phi3Attention")
        .with("o_proj", linear(heads * head_dim, hidden_size, Bias::No))
        .with("qkv_proj", linear(hidden_size, (heads + 2 * kv_heads) * head_dim, Bias::No));
    decoder.finish(decoder.layer(attention, fused_mlp(&decoder)))
}

pub(super) fn glm(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Glm")?;
    let attention = decoder.attention(decoder.bias("attention_bias")?, Bias::No);
    decoder.finish(decoder.layer(attention, fused_mlp(&decoder)))
}

pub(super) fn glm4(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Glm4")?;
    let bias = decoder.bias("attention_bias")?;
    glm4_of(&decoder, bias)
}

/// The language model of GLM-4.1V, whose heads share the hidden size.
pub(super) fn glm4v_text(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Glm4vText")?.with_norm_class("Glm4vRMSNorm");
    let head_dim = decoder.hidden_per_head()?;
    glm4_of(&decoder.with_head_dim(head_dim), Bias::Yes)
}

fn glm4_of(decoder: &Decoder<'_>, qkv: Bias) -> Built {
    let layer = decoder
        .layer(decoder.attention(qkv, Bias::No), fused_mlp(decoder))
        .with("post_self_attn_layernorm", decoder.rms_norm())
        .with("post_mlp_layernorm", decoder.rms_norm());
    decoder.finish(layer)
}

/// Its norms have no parameters at all.
pub(super) fn olmo(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Olmo")?;
    let bias = decoder.bias("attention_bias")?;
    let layer = decoder.bare_layer(decoder.attention(bias, bias), decoder.mlp(Bias::No));
    decoder.finish_with(Module::repeated(decoder.sizes.layers, layer), "norm", None)
}

pub(super) fn olmo2(context: &Context<'_>) -> Built {
    norms_after(&Decoder::new(context, "Olmo2")?)
}

pub(super) fn olmo3(context: &Context<'_>) -> Built {
    norms_after(&Decoder::new(context, "Olmo3")?)
}

/// Norms behind the blocks, and over all heads of queries and keys at once.
fn norms_after(decoder: &Decoder<'_>) -> Built {
    let Dimensions { heads, kv_heads, head_dim, .. } = decoder.sizes;
    let bias = decoder.bias("attention_bias")?;
    let attention = decoder
        .attention(bias, bias)
        .with("q_norm", decoder.rms_norm_over(heads * head_dim))
        .with("k_norm", decoder.rms_norm_over(kv_heads * head_dim));
    let layer = decoder
        .bare_layer(attention, decoder.mlp(Bias::No))
        .with("post_attention_layernorm", decoder.rms_norm())
        .with("post_feedforward_layernorm", decoder.rms_norm());
    decoder.finish(layer)
}

pub(super) fn cohere(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Cohere")?;
    let Dimensions { heads, kv_heads, head_dim, .. } = decoder.sizes;
    let bias = decoder.bias("attention_bias")?;
    let mut attention = decoder.attention(bias, bias);
    if context.reader.flag("use_qk_norm")? {
        attention = attention
            .with("q_norm", norm("CohereLayerNorm", [heads, head_dim]))
            .with("k_norm", norm("CohereLayerNorm", [kv_heads, head_dim]));
    }
    one_norm(&decoder, attention)
}

pub(super) fn cohere2(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Cohere2")?;
    let bias = decoder.bias("attention_bias")?;
    one_norm(&decoder, decoder.attention(bias, bias))
}

/// Attention and feed-forward block side by side behind one norm.
fn one_norm(decoder: &Decoder<'_>, attention: Module) -> Built {
    let norm = || norm(decoder.class("LayerNorm"), [decoder.sizes.hidden_size]);
    let layer =
        decoder.bare_layer(attention, decoder.mlp(Bias::No)).with("input_layernorm", norm());
    decoder.finish_with(Module::repeated(decoder.sizes.layers, layer), "norm", Some(norm()))
}

/// Its class takes the head width from the hidden size alone.
pub(super) fn stablelm(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "StableLm")?.with_whole_heads()?;
    let head_dim = decoder.hidden_per_head()?;
    let decoder = decoder.with_head_dim(head_dim);
    let Dimensions { hidden_size, heads, kv_heads, layers, .. } = decoder.sizes;
    let mut attention = decoder.attention(decoder.bias("use_qkv_bias")?, Bias::No);
    if context.reader.flag("qk_layernorm")? {
        let per_head = |heads| {
            let norms = Module::repeated(heads, layer_norm_with(head_dim, Bias::No));
            Module::new("StableLmLayerNormPerHead").with("norms", norms)
        };
        attention =
            attention.with("q_layernorm", per_head(heads)).with("k_layernorm", per_head(kv_heads));
    }
    let parallel = context.reader.flag("use_parallel_residual")?;
    let layer = decoder
        .bare_layer(attention, decoder.mlp(Bias::No))
        .with("input_layernorm", layer_norm(hidden_size))
        .with_some("post_attention_layernorm", (!parallel).then(|| layer_norm(hidden_size)));
    decoder.finish_with(Module::repeated(layers, layer), "norm", Some(layer_norm(hidden_size)))
}

pub(super) fn starcoder2(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Starcoder2")?;
    let Dimensions { hidden_size, intermediate_size, layers, .. } = decoder.sizes;
    let bias = decoder.bias("use_bias")?;
    let mlp = Module::new("Starcoder2MLP")
        .with("c_fc", linear(hidden_size, intermediate_size, bias))
        .with("c_proj", linear(intermediate_size, hidden_size, bias));
    let layer = decoder
        .bare_layer(decoder.attention(bias, bias), mlp)
        .with("input_layernorm", layer_norm(hidden_size))
        .with("post_attention_layernorm", layer_norm(hidden_size));
    decoder.finish_with(Module::repeated(layers, layer), "norm", Some(layer_norm(hidden_size)))
}

/// One switch for every bias.
pub(super) fn ernie4_5(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Ernie4_5")?;
    let bias = decoder.bias("use_bias")?;
    decoder.finish(decoder.layer(decoder.attention(bias, bias), decoder.mlp(bias)))
}

pub(super) fn hunyuan_v1_dense(context: &Context<'_>) -> Built {
    // Its attention does not fall back to the hidden size.
    context.reader.size("head_dim")?;
    let decoder = Decoder::new(context, "HunYuanDenseV1")?;
    let head_dim = decoder.sizes.head_dim;
    let bias = decoder.bias("attention_bias")?;
    let attention = decoder
        .attention(bias, bias)
        .with("query_layernorm", decoder.rms_norm_over(head_dim))
        .with("key_layernorm", decoder.rms_norm_over(head_dim));
    decoder.finish(decoder.layer(attention, decoder.mlp(Bias::No)))
}

pub(super) fn exaone4(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Exaone4")?;
    let attention = attention_with_head_norms(&decoder, Bias::No, Bias::No);
    let layer = decoder
        .bare_layer(attention, decoder.mlp(Bias::No))
        .with("post_attention_layernorm", decoder.rms_norm())
        .with("post_feedforward_layernorm", decoder.rms_norm());
    decoder.finish(layer)
}

pub(super) fn seed_oss(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "SeedOss")?;
    let (qkv, output) = (decoder.bias("attention_bias")?, decoder.bias("attention_out_bias")?);
    let mlp = decoder.mlp(decoder.bias("mlp_bias")?);
    decoder.finish(decoder.layer(decoder.attention(qkv, output), mlp))
}

/// The output projection is square, whatever `head_dim` says.
pub(super) fn helium(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Helium")?;
    let Dimensions { hidden_size, heads, kv_heads, head_dim, .. } = decoder.sizes;
    let bias = decoder.bias("attention_bias")?;
    let attention = Module::new("HeliumAttention")
        .with("q_proj", linear(hidden_size, heads * head_dim, bias))
        .with("k_proj", linear(hidden_size, kv_heads * head_dim, bias))
        .with("v_proj", linear(hidden_size, kv_heads * head_dim, bias))
        .with("o_proj", linear(hidden_size, hidden_size, Bias::No));
    decoder.finish(decoder.layer(attention, decoder.mlp(decoder.bias("mlp_bias")?)))
}
