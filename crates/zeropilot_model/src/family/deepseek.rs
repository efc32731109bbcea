//! DeepSeek-V2 and V3: attention through a latent of low rank, and a mixture with shared experts.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::mixture::{first_dense, shared_block};
use crate::family::parts::{Bias, linear};

pub(super) fn deepseek_v2(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    let decoder = Decoder::new(context, "DeepseekV2")?.with_whole_heads()?;
    let bias = decoder.bias("mlp_bias")?;
    deepseek(decoder, "Moe", bias)
}

pub(super) fn deepseek_v3(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    deepseek(Decoder::new(context, "DeepseekV3")?, "MoE", Bias::No)
}

fn deepseek(
    mut decoder: Decoder<'_>,
    block_class: &str,
    mlp_bias: Bias,
) -> Result<Blueprint, ConfigError> {
    let context = decoder.context;
    let (mixture, dense) = first_dense(context, decoder.sizes.layers)?;
    decoder = decoder.with_experts(mixture);
    let attention = latent_attention(&mut decoder)?;
    let shared = decoder.mlp_of(mixture.shared_intermediate_size, mlp_bias);
    let block = shared_block(&decoder, block_class, &mixture, shared);
    let layers = Module::list(
        decoder.sizes.layers,
        |layer| layer >= dense,
        |sparse| {
            let mlp = if sparse { block.clone() } else { decoder.mlp(mlp_bias) };
            decoder.layer(attention.clone(), mlp)
        },
    );
    decoder.finish_with(layers, "norm", Some(decoder.rms_norm()))
}

/// Queries from a latent where the config gives it a rank, keys and values always.
fn latent_attention(decoder: &mut Decoder<'_>) -> Result<Module, ConfigError> {
    let reader = &decoder.context.reader;
    let (nope, rope) = (reader.size("qk_nope_head_dim")?, reader.size("qk_rope_head_dim")?);
    let value = reader.size("v_head_dim")?;
    let (query_rank, rank) = (reader.optional_size("q_lora_rank")?, reader.size("kv_lora_rank")?);
    let bias = decoder.bias("attention_bias")?;
    decoder.sizes.head_dim = nope + rope;
    decoder.sizes.value_head_dim = value;
    let Dimensions { hidden_size: hidden, heads, .. } = decoder.sizes;
    let queries = heads * (nope + rope);
    let attention = Module::new(decoder.class("Attention"));
    let attention = match query_rank {
        None => attention.with("q_proj", linear(hidden, queries, Bias::No)),
        Some(query_rank) => attention
            .with("q_a_proj", linear(hidden, query_rank, bias))
            .with("q_a_layernorm", decoder.rms_norm_over(query_rank))
            .with("q_b_proj", linear(query_rank, queries, Bias::No)),
    };
    Ok(attention
        .with("kv_a_proj_with_mqa", linear(hidden, rank + rope, bias))
        .with("kv_a_layernorm", decoder.rms_norm_over(rank))
        .with("kv_b_proj", linear(rank, heads * (nope + value), Bias::No))
        .with("o_proj", linear(heads * value, hidden, bias)))
}
