//! GPT-2 and the models that kept its names: GPT-J, GPT-Neo, GPT-BigCode.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::parts::{Bias, embedding, layer_norm, linear, transposed_linear};

type Built = Result<Blueprint, ConfigError>;

/// Keys of the GPT configs that differ from family to family.
struct Keys {
    hidden: &'static str,
    heads: &'static str,
    layers: &'static str,
    positions: &'static str,
    inner: &'static str,
}

const GPT2: Keys = Keys {
    hidden: "n_embd",
    heads: "n_head",
    layers: "n_layer",
    positions: "n_positions",
    inner: "n_inner",
};

fn sizes(context: &Context<'_>, keys: &Keys) -> Result<Dimensions, ConfigError> {
    let reader = &context.reader;
    let head_dim = reader.quotient(keys.hidden, keys.heads)?;
    let (hidden_size, heads) = (reader.size(keys.hidden)?, reader.size(keys.heads)?);
    Ok(Dimensions {
        hidden_size,
        intermediate_size: reader.optional_size(keys.inner)?.unwrap_or(4 * hidden_size),
        layers: reader.layers(keys.layers)?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: reader.optional_size(keys.positions)?,
        ..Dimensions::default()
    })
}

/// The whole model: embeddings, blocks, last norm.
fn finish(
    context: &Context<'_>,
    class: &'static str,
    sizes: Dimensions,
    positions: Option<Module>,
    block: Module,
    head_bias: Bias,
) -> Built {
    let words = embedding(sizes.vocab_size, sizes.hidden_size);
    let model = Module::new(class)
        .with("wte", words.tied("weight", context.embedding_tie()?))
        .with_some("wpe", positions)
        .with("h", Module::repeated(sizes.layers, block))
        .with("ln_f", layer_norm(sizes.hidden_size));
    context.with_head("transformer", model, sizes, head_bias)
}

fn positions(sizes: &Dimensions) -> Option<Module> {
    sizes.max_positions.map(|rows| embedding(rows, sizes.hidden_size))
}

pub(super) fn gpt2(context: &Context<'_>) -> Built {
    context.reader.refuse(&["add_cross_attention"])?;
    let sizes = sizes(context, &GPT2)?;
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = sizes;
    let attention = Module::new("GPT2Attention")
        .with("c_attn", transposed_linear(hidden, 3 * hidden))
        .with("c_proj", transposed_linear(hidden, hidden));
    let mlp = Module::new("GPT2MLP")
        .with("c_fc", transposed_linear(hidden, inner))
        .with("c_proj", transposed_linear(inner, hidden));
    let block = two_norms("GPT2Block", hidden, attention, mlp);
    finish(context, "GPT2Model", sizes, positions(&sizes), block, Bias::No)
}

fn two_norms(class: &'static str, hidden: u64, attention: Module, mlp: Module) -> Module {
    Module::new(class)
        .with("ln_1", layer_norm(hidden))
        .with("attn", attention)
        .with("ln_2", layer_norm(hidden))
        .with("mlp", mlp)
}

/// As GPT-2 with linear modules, and one key and value head unless switched off.
pub(super) fn gpt_bigcode(context: &Context<'_>) -> Built {
    context.reader.refuse(&["add_cross_attention"])?;
    let mut sizes = sizes(context, &GPT2)?;
    if context.reader.flag("multi_query")? {
        sizes.kv_heads = 1;
    }
    let Dimensions { hidden_size: hidden, intermediate_size: inner, kv_heads, head_dim, .. } =
        sizes;
    let attention = Module::new("GPTBigCodeAttention")
        .with("c_attn", linear(hidden, hidden + 2 * kv_heads * head_dim, Bias::Yes))
        .with("c_proj", linear(hidden, hidden, Bias::Yes));
    let mlp = Module::new("GPTBigCodeMLP")
        .with("c_fc", linear(hidden, inner, Bias::Yes))
        .with("c_proj", linear(inner, hidden, Bias::Yes));
    let block = two_norms("GPTBigCodeBlock", hidden, attention, mlp);
    finish(context, "GPTBigCodeModel", sizes, positions(&sizes), block, Bias::No)
}

fn separate_projections(class: &'static str, hidden: u64, output: Bias) -> Module {
    Module::new(class)
        .with("k_proj", linear(hidden, hidden, Bias::No))
        .with("v_proj", linear(hidden, hidden, Bias::No))
        .with("q_proj", linear(hidden, hidden, Bias::No))
        .with("out_proj", linear(hidden, hidden, output))
}

pub(super) fn gpt_neo(context: &Context<'_>) -> Built {
    let keys = Keys {
        hidden: "hidden_size",
        heads: "num_heads",
        layers: "num_layers",
        positions: "max_position_embeddings",
        inner: "intermediate_size",
    };
    let sizes = sizes(context, &keys)?;
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = sizes;
    let attention = separate_projections("GPTNeoSelfAttention", hidden, Bias::Yes);
    let attention = Module::new("GPTNeoAttention").with("attention", attention);
    let mlp = Module::new("GPTNeoMLP")
        .with("c_fc", linear(hidden, inner, Bias::Yes))
        .with("c_proj", linear(inner, hidden, Bias::Yes));
    let block = two_norms("GPTNeoBlock", hidden, attention, mlp);
    finish(context, "GPTNeoModel", sizes, positions(&sizes), block, Bias::No)
}

/// Rotary positions, one norm, and a bias at the output.
pub(super) fn gptj(context: &Context<'_>) -> Built {
    let sizes = sizes(context, &GPT2)?;
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = sizes;
    let mlp = Module::new("GPTJMLP")
        .with("fc_in", linear(hidden, inner, Bias::Yes))
        .with("fc_out", linear(inner, hidden, Bias::Yes));
    let block = Module::new("GPTJBlock")
        .with("ln_1", layer_norm(hidden))
        .with("attn", separate_projections("GPTJAttention", hidden, Bias::No))
        .with("mlp", mlp);
    finish(context, "GPTJModel", sizes, None, block, Bias::Yes)
}
