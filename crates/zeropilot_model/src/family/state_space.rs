//! Models with state-space or convolution layers beside attention: Falcon-H1, Granite 4, LFM2; and Mamba 2 without any.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::{Dimensions, Experts};
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::parts::{Bias, depthwise_convolution, embedding, experts, linear, norm, router};

type Built = Result<Blueprint, ConfigError>;

/// The sizes of a Mamba 2 mixer.
struct Mixer {
    class: &'static str,
    hidden: u64,
    inner: u64,
    heads: u64,
    /// Width of what is convolved: the inner width, and one state for each group twice.
    convolved: u64,
    kernel: u64,
    convolution: Bias,
    inputs: Bias,
    output: Bias,
    norm: Option<&'static str>,
}

impl Mixer {
    fn build(&self) -> Module {
        let Self { hidden, inner, heads, convolved, .. } = *self;
        Module::new(self.class)
            .parameter("dt_bias", [heads])
            .parameter("A_log", [heads])
            .parameter("D", [heads])
            .with("conv1d", depthwise_convolution(convolved, self.kernel, self.convolution))
            .with("in_proj", linear(hidden, inner + convolved + heads, self.inputs))
            .with_some("norm", self.norm.map(|class| norm(class, [inner])))
            .with("out_proj", linear(inner, hidden, self.output))
    }
}

/// Refuses heads that do not make up the inner width.
fn check_heads(
    context: &Context<'_>,
    inner: u64,
    heads: u64,
    width_key: &str,
) -> Result<(), ConfigError> {
    let reader = &context.reader;
    // `auto` is the quotient, which must be whole.
    let width = match reader.word(width_key) {
        Ok(_) => None,
        Err(_) => reader.optional_size(width_key)?,
    };
    if inner.is_multiple_of(heads) && width.is_none_or(|width| width * heads == inner) {
        return Ok(());
    }
    Err(ConfigError::NotAMultiple {
        key: "mamba_expand * hidden_size".to_owned(),
        value: inner,
        of: "mamba_n_heads".to_owned(),
        divisor: heads,
    })
}

pub(super) fn falcon_h1(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let decoder = Decoder::new(context, "FalconH1")?;
    let Dimensions { hidden_size: hidden, layers, .. } = decoder.sizes;
    let inner = match reader.optional_size("mamba_d_ssm")? {
        Some(inner) => inner,
        None => reader.size("mamba_expand")? * hidden,
    };
    let heads = reader.size("mamba_n_heads")?;
    check_heads(context, inner, heads, "mamba_d_head")?;
    let mixer = Mixer {
        class: "FalconH1Mixer",
        hidden,
        inner,
        heads,
        convolved: inner + 2 * reader.size("mamba_n_groups")? * reader.size("mamba_d_state")?,
        kernel: reader.size("mamba_d_conv")?,
        convolution: decoder.bias("mamba_conv_bias")?,
        inputs: decoder.bias("mamba_proj_bias")?,
        output: decoder.bias("projectors_bias")?,
        norm: reader.flag("mamba_rms_norm")?.then_some("FalconH1RMSNormGated"),
    };
    let bias = decoder.bias("attention_bias")?;
    let layer = Module::new("FalconH1DecoderLayer")
        .with("feed_forward", decoder.mlp(decoder.bias("mlp_bias")?))
        .with("mamba", mixer.build())
        .with("self_attn", decoder.attention(bias, bias))
        .with("input_layernorm", decoder.rms_norm())
        .with("pre_ff_layernorm", decoder.rms_norm());
    decoder.finish_with(
        Module::repeated(layers, layer),
        "final_layernorm",
        Some(decoder.rms_norm()),
    )
}

pub(super) fn granitemoehybrid(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let decoder = Decoder::new(context, "GraniteMoeHybrid")?;
    let Dimensions { hidden_size: hidden, intermediate_size, layers, .. } = decoder.sizes;
    let (inner, heads) = (reader.size("mamba_expand")? * hidden, reader.size("mamba_n_heads")?);
    check_heads(context, inner, heads, "mamba_d_head")?;
    let bias = decoder.bias("mamba_proj_bias")?;
    let mixer = Mixer {
        class: "GraniteMoeHybridMambaLayer",
        hidden,
        inner,
        heads,
        convolved: inner + 2 * reader.size("mamba_n_groups")? * reader.size("mamba_d_state")?,
        kernel: reader.size("mamba_d_conv")?,
        convolution: decoder.bias("mamba_conv_bias")?,
        inputs: bias,
        output: bias,
        norm: Some("GraniteMoeHybridRMSNormGated"),
    };
    let shared = reader.size("shared_intermediate_size")?;
    let count = reader.number("num_local_experts")?;
    let mixture = Experts {
        count,
        per_token: if count > 0 { reader.size("num_experts_per_tok")? } else { 0 },
        intermediate_size,
        shared_intermediate_size: shared,
        layers: if count > 0 { layers } else { 0 },
    };
    let decoder = if count > 0 { decoder.with_experts(mixture) } else { decoder };
    let block = (count > 0).then(|| {
        let Experts { per_token, .. } = mixture;
        let class = |name| decoder.class(name);
        Module::new(class("MoE"))
            .with("router", router(class("TopKRouter"), count, hidden))
            .with("experts", experts(class("Experts"), count, per_token, hidden, intermediate_size))
    });
    let shared = Module::new(decoder.class("MLP"))
        .with("input_linear", linear(hidden, 2 * shared, Bias::No))
        .with("output_linear", linear(shared, hidden, Bias::No));
    let kinds = reader.layer_kinds(layers)?;
    let has_attention = |layer: u64| {
        let kind = usize::try_from(layer).ok().and_then(|layer| kinds.as_ref()?.get(layer));
        kind.is_some_and(|kind| !matches!(*kind, "linear_attention" | "mamba"))
    };
    let bias = decoder.bias("attention_bias")?;
    let layers = Module::list(layers, has_attention, |has_attention| {
        let layer = Module::new(decoder.class("DecoderLayer"))
            .with("input_layernorm", decoder.rms_norm())
            .with("post_attention_layernorm", decoder.rms_norm())
            .with_some("block_sparse_moe", block.clone())
            .with("shared_mlp", shared.clone());
        if has_attention {
            layer.with("self_attn", decoder.attention(bias, bias))
        } else {
            layer.with("mamba", mixer.build())
        }
    });
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

pub(super) fn lfm2(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let mut decoder = Decoder::new(context, "Lfm2")?;
    let Dimensions { hidden_size: hidden, heads, kv_heads, head_dim, layers, .. } = decoder.sizes;
    let inner = lfm2_inner_width(context)?;
    decoder.sizes.intermediate_size = inner;
    let named = reader.layer_kinds(layers)?;
    let numbers = reader.layer_numbers("full_attn_idxs")?;
    let has_attention = |layer: u64| match (&named, &numbers) {
        (Some(kinds), _) => {
            let kind = usize::try_from(layer).ok().and_then(|layer| kinds.get(layer).copied());
            kind == Some("full_attention")
        }
        (None, Some(numbers)) => numbers.contains(&layer),
        (None, None) => true,
    };
    let bias = decoder.bias("conv_bias")?;
    let kernel = reader.size("conv_L_cache")?;
    let attention = Module::new("Lfm2Attention")
        .with("q_proj", linear(hidden, heads * head_dim, Bias::No))
        .with("k_proj", linear(hidden, kv_heads * head_dim, Bias::No))
        .with("v_proj", linear(hidden, kv_heads * head_dim, Bias::No))
        .with("out_proj", linear(heads * head_dim, hidden, Bias::No))
        .with("q_layernorm", decoder.rms_norm_over(head_dim))
        .with("k_layernorm", decoder.rms_norm_over(head_dim));
    let convolution = Module::new("Lfm2ShortConv")
        .with("conv", depthwise_convolution(hidden, kernel, bias))
        .with("in_proj", linear(hidden, 3 * hidden, bias))
        .with("out_proj", linear(hidden, hidden, bias));
    let mlp = Module::new("Lfm2MLP")
        .with("w1", linear(hidden, inner, Bias::No))
        .with("w3", linear(hidden, inner, Bias::No))
        .with("w2", linear(inner, hidden, Bias::No));
    let layers = Module::list(layers, has_attention, |has_attention| {
        let (name, mixer) =
            if has_attention { ("self_attn", &attention) } else { ("conv", &convolution) };
        Module::new("Lfm2DecoderLayer")
            .with(name, mixer.clone())
            .with("feed_forward", mlp.clone())
            .with("operator_norm", decoder.rms_norm())
            .with("ffn_norm", decoder.rms_norm())
    });
    decoder.finish_with(layers, "embedding_norm", Some(decoder.rms_norm()))
}

/// Two thirds of what the config says, rounded up, unless it says otherwise.
fn lfm2_inner_width(context: &Context<'_>) -> Result<u64, ConfigError> {
    let reader = &context.reader;
    let width = reader.size("intermediate_size")?;
    if !reader.flag("block_auto_adjust_ff_dim")? {
        return Ok(width);
    }
    let multiplier = reader.factor("block_ffn_dim_multiplier")?.unwrap_or(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the class rounds down the same way, and a width fits"
    )]
    let scaled = (multiplier * (2 * width / 3) as f64) as u64;
    let multiple = reader.size("block_multiple_of")?;
    Ok(multiple * scaled.div_ceil(multiple))
}

pub(super) fn mamba2(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let (hidden, heads) = (reader.size("hidden_size")?, reader.size("num_heads")?);
    let (inner, head_dim) = (reader.size("expand")? * hidden, reader.size("head_dim")?);
    if heads * head_dim != inner {
        return Err(ConfigError::NotAMultiple {
            key: "expand * hidden_size".to_owned(),
            value: inner,
            of: "num_heads".to_owned(),
            divisor: heads,
        });
    }
    let flag = |key| reader.flag(key).map(Bias::from);
    let mixer = Mixer {
        class: "Mamba2Mixer",
        hidden,
        inner,
        heads,
        convolved: inner + 2 * reader.size("n_groups")? * reader.size("state_size")?,
        kernel: reader.size("conv_kernel")?,
        convolution: flag("use_conv_bias")?,
        inputs: flag("use_bias")?,
        output: flag("use_bias")?,
        norm: Some("MambaRMSNormGated"),
    };
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: inner,
        layers: reader.layers("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        ..Dimensions::default()
    };
    let norm = || norm("Mamba2RMSNorm", [hidden]);
    let block = Module::new("Mamba2Block").with("norm", norm()).with("mixer", mixer.build());
    let words = embedding(sizes.vocab_size, hidden);
    let model = Module::new("Mamba2Model")
        .with("embeddings", words.tied("weight", context.embedding_tie()?))
        .with("layers", Module::repeated(sizes.layers, block))
        .with("norm_f", norm());
    context.with_head("backbone", model, sizes, Bias::No)
}
