//! Qwen3-Next and Qwen 3.5: most layers have a gated delta rule, every fourth one attention.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::llama::attention_with_head_norms;
use crate::family::mixture::{qwen_mixture, qwen_mixture_of_every_layer, qwen_shared_block};
use crate::family::parts::{Bias, depthwise_convolution, linear, norm};

type Built = Result<Blueprint, ConfigError>;

/// Without `layer_types`, every so many layers are one of full attention.
const INTERVAL: u64 = 4;

/// How the projections into the delta rule are cut.
#[derive(Clone, Copy)]
enum Inputs {
    /// Two matrices that hold all of them.
    Fused,
    /// One matrix for queries, keys and values, and one for each of the others.
    Separate,
}

pub(super) fn qwen3_next(context: &Context<'_>) -> Built {
    let shared = context.reader.size("shared_expert_intermediate_size")?;
    let (decoder, mixture, sparse) = qwen_mixture(context, "Qwen3Next", shared)?;
    let block = qwen_shared_block(&decoder, &mixture);
    let mlp = |layer| if sparse.includes(layer) { block.clone() } else { decoder.mlp(Bias::No) };
    finish(&decoder, Inputs::Fused, |layer| sparse.includes(layer), mlp)
}

pub(super) fn qwen3_5(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Qwen3_5")?.with_model_class("Qwen3_5TextModel");
    finish(&decoder, Inputs::Separate, |_| false, |_| decoder.mlp(Bias::No))
}

pub(super) fn qwen3_5_moe(context: &Context<'_>) -> Built {
    let shared = context.reader.size("shared_expert_intermediate_size")?;
    let (decoder, mixture) = qwen_mixture_of_every_layer(context, "Qwen3_5Moe", shared)?;
    let decoder = decoder.with_model_class("Qwen3_5MoeTextModel");
    let block = qwen_shared_block(&decoder, &mixture);
    finish(&decoder, Inputs::Separate, |_| true, |_| block.clone())
}

fn finish(
    decoder: &Decoder<'_>,
    inputs: Inputs,
    sparse: impl Fn(u64) -> bool,
    mlp: impl Fn(u64) -> Module,
) -> Built {
    let reader = &decoder.context.reader;
    let count = decoder.sizes.layers;
    let kinds = reader.layer_kinds(count)?;
    let interval = reader.optional_size("full_attention_interval")?.unwrap_or(INTERVAL);
    let is_linear = |layer: u64| match &kinds {
        Some(kinds) => {
            usize::try_from(layer).ok().and_then(|layer| kinds.get(layer).copied())
                == Some("linear_attention")
        }
        None => !(layer + 1).is_multiple_of(interval),
    };
    let bias = decoder.bias("attention_bias")?;
    let attention = gated_attention(decoder, bias);
    let delta = delta_rule(decoder, inputs)?;
    let first_with = |of_kind: bool| (0..count).find(|layer| sparse(*layer) == of_kind);
    let (sparse_mlp, dense_mlp) = (first_with(true).map(&mlp), first_with(false).map(&mlp));
    let layers = Module::list(
        count,
        |layer| (is_linear(layer), sparse(layer)),
        |(is_linear, is_sparse)| {
            let (name, mixer) =
                if is_linear { ("linear_attn", &delta) } else { ("self_attn", &attention) };
            let mlp = if is_sparse { &sparse_mlp } else { &dense_mlp };
            Module::new(decoder.class("DecoderLayer"))
                .with(name, mixer.clone())
                .with_some("mlp", mlp.clone())
                .with("input_layernorm", decoder.rms_norm())
                .with("post_attention_layernorm", decoder.rms_norm())
        },
    );
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

/// The query projection also makes a gate for the output of every head.
fn gated_attention(decoder: &Decoder<'_>, bias: Bias) -> Module {
    let Dimensions { hidden_size, heads, head_dim, .. } = decoder.sizes;
    let queries_and_gates = linear(hidden_size, 2 * heads * head_dim, bias);
    attention_with_head_norms(decoder, bias, bias).replacing("q_proj", queries_and_gates)
}

fn delta_rule(decoder: &Decoder<'_>, inputs: Inputs) -> Result<Module, ConfigError> {
    let reader = &decoder.context.reader;
    let hidden = decoder.sizes.hidden_size;
    let value_heads = reader.size("linear_num_value_heads")?;
    let value_head = reader.size("linear_value_head_dim")?;
    let keys = reader.size("linear_num_key_heads")? * reader.size("linear_key_head_dim")?;
    let values = value_heads * value_head;
    let kernel = reader.size("linear_conv_kernel_dim")?;
    let module = Module::new(decoder.class("GatedDeltaNet"))
        .parameter("dt_bias", [value_heads])
        .parameter("A_log", [value_heads])
        .with("conv1d", depthwise_convolution(2 * keys + values, kernel, Bias::No));
    let to = |outputs| linear(hidden, outputs, Bias::No);
    let norm = norm(decoder.class("RMSNormGated"), [value_head]);
    let out = linear(values, hidden, Bias::No);
    Ok(match inputs {
        Inputs::Fused => module
            .with("in_proj_qkvz", to(2 * keys + 2 * values))
            .with("in_proj_ba", to(2 * value_heads))
            .with("norm", norm)
            .with("out_proj", out),
        Inputs::Separate => module
            .with("norm", norm)
            .with("out_proj", out)
            .with("in_proj_qkv", to(2 * keys + values))
            .with("in_proj_z", to(values))
            .with("in_proj_b", to(value_heads))
            .with("in_proj_a", to(value_heads)),
    })
}
