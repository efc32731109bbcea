//! Mixtures of experts with the attention of Llama or Qwen.

use crate::architecture::{Module, ModuleKind};
use crate::config::ConfigError;
use crate::dimensions::{Dimensions, Experts};
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::llama::attention_with_head_norms;
use crate::family::parts::{Bias, experts, layer_norm, linear, linear_of, router};

type Built = Result<Blueprint, ConfigError>;

/// A decoder in which every layer has experts as wide as `intermediate_size`.
fn uniform<'a>(
    context: &'a Context<'a>,
    prefix: &'static str,
    count_key: &str,
) -> Result<(Decoder<'a>, Experts), ConfigError> {
    let decoder = Decoder::new(context, prefix)?;
    let mixture = Experts {
        count: context.reader.size(count_key)?,
        per_token: context.reader.size("num_experts_per_tok")?,
        intermediate_size: decoder.sizes.intermediate_size,
        shared_intermediate_size: 0,
        layers: decoder.sizes.layers,
    };
    Ok((decoder.with_experts(mixture), mixture))
}

fn stacked(decoder: &Decoder<'_>, mixture: &Experts) -> Module {
    let Experts { count, per_token, intermediate_size, .. } = *mixture;
    let hidden = decoder.sizes.hidden_size;
    experts(decoder.class("Experts"), count, per_token, hidden, intermediate_size)
}

fn gate(decoder: &Decoder<'_>, class: &str, mixture: &Experts) -> Module {
    router(decoder.class(class), mixture.count, decoder.sizes.hidden_size)
}

pub(super) fn mixtral(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "Mixtral", "num_local_experts")?;
    let block = Module::new("MixtralSparseMoeBlock")
        .with("gate", gate(&decoder, "TopKRouter", &mixture))
        .with("experts", stacked(&decoder, &mixture));
    decoder.finish(decoder.layer(decoder.attention(Bias::No, Bias::No), block))
}

pub(super) fn olmoe(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "Olmoe", "num_experts")?;
    let Dimensions { hidden_size, kv_heads, .. } = decoder.sizes;
    let bias = decoder.bias("attention_bias")?;
    // The norms are as wide as the hidden size says, whatever `head_dim` says.
    let attention = decoder
        .attention(bias, bias)
        .with("q_norm", decoder.rms_norm_over(hidden_size))
        .with("k_norm", decoder.rms_norm_over(decoder.hidden_per_head()? * kv_heads));
    let block = Module::new("OlmoeSparseMoeBlock")
        .with("gate", gate(&decoder, "TopKRouter", &mixture))
        .with("experts", stacked(&decoder, &mixture));
    decoder.finish(decoder.layer(attention, block))
}

pub(super) fn phimoe(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "Phimoe", "num_local_experts")?;
    let decoder = decoder.with_head_bias(context.reader.flag("lm_head_bias")?.into());
    let Dimensions { hidden_size, layers, .. } = decoder.sizes;
    let bias = decoder.bias("attention_bias")?;
    // Unlike other routers this one is a subclass of `nn.Linear`.
    let router = linear_of("PhimoeTopKRouter", hidden_size, mixture.count, Bias::No);
    let block = Module::new("PhimoeSparseMoeBlock")
        .with("router", router)
        .with("experts", stacked(&decoder, &mixture));
    let layer = decoder
        .bare_layer(decoder.attention(bias, bias), block)
        .with("input_layernorm", layer_norm(hidden_size))
        .with("post_attention_layernorm", layer_norm(hidden_size));
    decoder.finish_with(Module::repeated(layers, layer), "norm", Some(layer_norm(hidden_size)))
}

pub(super) fn granitemoe(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "GraniteMoe", "num_local_experts")?;
    let bias = decoder.bias("attention_bias")?;
    let block = Module::new("GraniteMoeMoE")
        .with("router", gate(&decoder, "TopKRouter", &mixture))
        .with("experts", stacked(&decoder, &mixture));
    let layer = Module::new("GraniteMoeDecoderLayer")
        .with("self_attn", decoder.attention(bias, bias))
        .with("input_layernorm", decoder.rms_norm())
        .with("post_attention_layernorm", decoder.rms_norm())
        .with("block_sparse_moe", block);
    decoder.finish(layer)
}

/// Every matrix of an expert is `[inputs, outputs]` and has a bias; the attention has sinks.
pub(super) fn gpt_oss(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "GptOss", "num_local_experts")?;
    let Dimensions { hidden_size: hidden, heads, .. } = decoder.sizes;
    let Experts { count, per_token, intermediate_size: inner, .. } = mixture;
    let bias = decoder.bias("attention_bias")?;
    let attention = decoder.attention(bias, bias).parameter("sinks", [heads]);
    let kind = ModuleKind::Experts { count, per_token, transposed: true };
    let experts = Module::of_kind("GptOssExperts", kind)
        .parameter("gate_up_proj", [count, hidden, 2 * inner])
        .parameter("gate_up_proj_bias", [count, 2 * inner])
        .parameter("down_proj", [count, inner, hidden])
        .parameter("down_proj_bias", [count, hidden]);
    let router = gate(&decoder, "TopKRouter", &mixture).parameter("bias", [count]);
    let block = Module::new("GptOssMLP").with("router", router).with("experts", experts);
    decoder.finish(decoder.layer(attention, block))
}

/// Which layers of a Qwen mixture have experts.
pub(super) struct SparseLayers {
    dense: Vec<u64>,
    step: u64,
}

impl SparseLayers {
    fn read(context: &Context<'_>) -> Result<Self, ConfigError> {
        let mut dense = context.reader.layer_numbers("mlp_only_layers")?.unwrap_or_default();
        dense.sort_unstable();
        Ok(Self { dense, step: context.reader.size("decoder_sparse_step")? })
    }

    pub(super) fn includes(&self, layer: u64) -> bool {
        self.dense.binary_search(&layer).is_err() && (layer + 1).is_multiple_of(self.step)
    }
}

/// The mixture of a Qwen config.
pub(super) fn qwen_mixture<'a>(
    context: &'a Context<'a>,
    prefix: &'static str,
    shared: u64,
) -> Result<(Decoder<'a>, Experts, SparseLayers), ConfigError> {
    let decoder = Decoder::new(context, prefix)?;
    let sparse = SparseLayers::read(context)?;
    let mixture = Experts {
        count: context.reader.size("num_experts")?,
        per_token: context.reader.size("num_experts_per_tok")?,
        intermediate_size: context.reader.size("moe_intermediate_size")?,
        shared_intermediate_size: shared,
        layers: (0..decoder.sizes.layers).filter(|layer| sparse.includes(*layer)).count() as u64,
    };
    Ok((decoder.with_experts(mixture), mixture, sparse))
}

/// The same of a config in which every layer has experts and no layer a dense block.
pub(super) fn qwen_mixture_of_every_layer<'a>(
    context: &'a Context<'a>,
    prefix: &'static str,
    shared: u64,
) -> Result<(Decoder<'a>, Experts), ConfigError> {
    let decoder = Decoder::with_inner_width(context, prefix, "moe_intermediate_size")?;
    let mixture = Experts {
        count: context.reader.size("num_experts")?,
        per_token: context.reader.size("num_experts_per_tok")?,
        intermediate_size: decoder.sizes.intermediate_size,
        shared_intermediate_size: shared,
        layers: decoder.sizes.layers,
    };
    Ok((decoder.with_experts(mixture), mixture))
}

/// Routed experts beside one for every token, which has a gate of its own.
pub(super) fn qwen_shared_block(decoder: &Decoder<'_>, mixture: &Experts) -> Module {
    let shared = decoder.mlp_of(mixture.shared_intermediate_size, Bias::No);
    Module::new(decoder.class("SparseMoeBlock"))
        .with("gate", gate(decoder, "TopKRouter", mixture))
        .with("experts", stacked(decoder, mixture))
        .with("shared_expert", shared)
        .with("shared_expert_gate", linear(decoder.sizes.hidden_size, 1, Bias::No))
}

pub(super) fn qwen2_moe(context: &Context<'_>) -> Built {
    let shared = context.reader.size("shared_expert_intermediate_size")?;
    let (decoder, mixture, sparse) = qwen_mixture(context, "Qwen2Moe", shared)?;
    let attention = decoder.attention(decoder.bias("qkv_bias")?, Bias::No);
    let block = qwen_shared_block(&decoder, &mixture);
    finish_sparse(&decoder, &attention, &block, |layer| sparse.includes(layer))
}

pub(super) fn qwen3_moe(context: &Context<'_>) -> Built {
    qwen3_moe_of(context, "Qwen3Moe")
}

/// The mixture of Qwen 3 with classes of another name.
pub(super) fn qwen3_moe_of(context: &Context<'_>, prefix: &'static str) -> Built {
    let (decoder, mixture, sparse) = qwen_mixture(context, prefix, 0)?;
    let bias = decoder.bias("attention_bias")?;
    let attention = attention_with_head_norms(&decoder, bias, bias);
    let block = Module::new(decoder.class("SparseMoeBlock"))
        .with("experts", stacked(&decoder, &mixture))
        .with("gate", gate(&decoder, "TopKRouter", &mixture));
    finish_sparse(&decoder, &attention, &block, |layer| sparse.includes(layer))
}

/// Layers with the block where `sparse` says so, and a dense feed-forward block elsewhere.
pub(super) fn finish_sparse(
    decoder: &Decoder<'_>,
    attention: &Module,
    block: &Module,
    sparse: impl Fn(u64) -> bool,
) -> Built {
    let layers = Module::list(decoder.sizes.layers, sparse, |sparse| {
        let mlp = if sparse { block.clone() } else { decoder.mlp(Bias::No) };
        decoder.layer(attention.clone(), mlp)
    });
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

/// The block of GLM-4.5 and DeepSeek: experts, router, and one wide expert for every token.
pub(super) fn shared_block(
    decoder: &Decoder<'_>,
    class: &str,
    mixture: &Experts,
    shared: Module,
) -> Module {
    Module::new(decoder.class(class))
        .with("experts", stacked(decoder, mixture))
        .with("gate", gate(decoder, "TopkRouter", mixture))
        .with("shared_experts", shared)
}

/// The mixture of GLM-4.5 and DeepSeek, whose first layers are dense.
///
/// Layers that predict several tokens (`num_nextn_predict_layers`) are in the files of these models,
/// and the classes do not build them.
pub(super) fn first_dense(
    context: &Context<'_>,
    layers: u64,
) -> Result<(Experts, u64), ConfigError> {
    let reader = &context.reader;
    let intermediate_size = reader.size("moe_intermediate_size")?;
    let dense = reader.number("first_k_dense_replace")?;
    let mixture = Experts {
        count: reader.size("n_routed_experts")?,
        per_token: reader.size("num_experts_per_tok")?,
        intermediate_size,
        shared_intermediate_size: intermediate_size * reader.number("n_shared_experts")?,
        layers: layers.saturating_sub(dense),
    };
    Ok((mixture, dense))
}

pub(super) fn glm4_moe(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Glm4Moe")?;
    let (mixture, dense) = first_dense(context, decoder.sizes.layers)?;
    let decoder = decoder.with_experts(mixture);
    let bias = decoder.bias("attention_bias")?;
    let attention = if context.reader.flag("use_qk_norm")? {
        attention_with_head_norms(&decoder, bias, Bias::No)
    } else {
        decoder.attention(bias, Bias::No)
    };
    let shared = decoder.mlp_of(mixture.shared_intermediate_size, Bias::No);
    let block = shared_block(&decoder, "MoE", &mixture, shared);
    finish_sparse(&decoder, &attention, &block, |layer| layer >= dense)
}

pub(super) fn llama4(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let decoder = Decoder::new(context, "Llama4Text")?;
    let Dimensions { hidden_size: hidden, intermediate_size: inner, layers, .. } = decoder.sizes;
    let step = reader.size("interleave_moe_layer_step")?;
    let named = reader.layer_numbers("moe_layers")?;
    let sparse = |layer: u64| match &named {
        Some(named) => named.contains(&layer),
        None => (layer + 1).is_multiple_of(step),
    };
    let mixture = Experts {
        count: reader.size("num_local_experts")?,
        per_token: reader.size("num_experts_per_tok")?,
        intermediate_size: inner,
        shared_intermediate_size: inner,
        layers: (0..layers).filter(|layer| sparse(*layer)).count() as u64,
    };
    let Experts { count, per_token, .. } = mixture;
    let decoder = decoder.with_experts(mixture);
    let bias = decoder.bias("attention_bias")?;
    // The matrices are `[inputs, outputs]`, but the class does not declare it.
    let kind = ModuleKind::Experts { count, per_token, transposed: false };
    let experts = Module::of_kind("Llama4TextExperts", kind)
        .parameter("gate_up_proj", [count, hidden, 2 * inner])
        .parameter("down_proj", [count, inner, hidden]);
    let block = Module::new("Llama4TextMoe")
        .with("experts", experts)
        .with("router", linear_of("Llama4Router", hidden, count, Bias::No))
        .with("shared_expert", decoder.mlp_of(inner, Bias::No));
    let dense = decoder.mlp_of(reader.size("intermediate_size_mlp")?, Bias::No);
    let layers = Module::list(layers, sparse, |sparse| {
        Module::new("Llama4TextDecoderLayer")
            .with("self_attn", decoder.attention(bias, bias))
            .with("feed_forward", if sparse { block.clone() } else { dense.clone() })
            .with("input_layernorm", decoder.rms_norm())
            .with("post_attention_layernorm", decoder.rms_norm())
    });
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

pub(super) fn minimax_m2(context: &Context<'_>) -> Built {
    let (decoder, mixture) = uniform(context, "MiniMaxM2", "num_local_experts")?;
    let Dimensions { heads, kv_heads, head_dim, .. } = decoder.sizes;
    let attention = decoder
        .attention(Bias::No, Bias::No)
        .with("q_norm", decoder.rms_norm_over(heads * head_dim))
        .with("k_norm", decoder.rms_norm_over(kv_heads * head_dim));
    let block = Module::new("MiniMaxM2SparseMoeBlock")
        .with("gate", gate(&decoder, "TopKRouter", &mixture))
        .with("experts", stacked(&decoder, &mixture));
    decoder.finish(decoder.layer(attention, block))
}

pub(super) fn dots1(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Dots1")?;
    let (mixture, dense) = first_dense(context, decoder.sizes.layers)?;
    let decoder = decoder.with_experts(mixture);
    let bias = decoder.bias("attention_bias")?;
    let attention = attention_with_head_norms(&decoder, bias, bias);
    let shared = decoder.mlp_of(mixture.shared_intermediate_size, Bias::No);
    let block = shared_block(&decoder, "MoE", &mixture, shared);
    finish_sparse(&decoder, &attention, &block, |layer| layer >= dense)
}

/// Every `moe_layer_interval`-th layer between two has experts; one switch decides on every bias.
pub(super) fn ernie4_5_moe(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let decoder = Decoder::new(context, "Ernie4_5_Moe")?;
    let decoder = decoder.with_head_bias(reader.flag("use_bias")?.into());
    let bias = decoder.bias("use_bias")?;
    let Dimensions { hidden_size, layers, .. } = decoder.sizes;
    let interval = reader.size("moe_layer_interval")?;
    let first = reader.number("moe_layer_start_index")?;
    let last = reader.number_or_minus_one("moe_layer_end_index")?.unwrap_or(layers);
    let sparse =
        |layer: u64| (layer + 1).is_multiple_of(interval) && (first..=last).contains(&layer);
    let (intermediate_size, shared) =
        (reader.size("moe_intermediate_size")?, reader.number("moe_num_shared_experts")?);
    let mixture = Experts {
        count: reader.size("moe_num_experts")?,
        per_token: reader.size("moe_k")?,
        intermediate_size,
        shared_intermediate_size: intermediate_size * shared,
        layers: (0..layers).filter(|layer| sparse(*layer)).count() as u64,
    };
    let decoder = decoder.with_experts(mixture);
    // The correction of the router is kept up to date by hand and has no gradient.
    let correction = Module::new("Ernie4_5_MoeStatics")
        .parameter("e_score_correction_bias", [1, mixture.count])
        .frozen();
    let gate = router(decoder.class("TopKRouter"), mixture.count, hidden_size);
    let block = Module::new("Ernie4_5_MoeSparseMoeBlock")
        .with("gate", gate.with("moe_statics", correction))
        .with("experts", stacked(&decoder, &mixture))
        .with_some(
            "shared_experts",
            (shared > 0).then(|| decoder.mlp_of(mixture.shared_intermediate_size, bias)),
        );
    let layers = Module::list(layers, sparse, |sparse| {
        let mlp = if sparse { block.clone() } else { decoder.mlp(bias) };
        decoder.layer(decoder.attention(bias, bias), mlp)
    });
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}
