//! Decoders with the attention of Llama and a feed-forward block without a gate.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::decoder::Decoder;
use crate::family::llama::attention_with_head_norms;
use crate::family::parts::{Bias, linear, norm};

type Built = Result<Blueprint, ConfigError>;

fn mlp(decoder: &Decoder<'_>, bias: Bias) -> Module {
    let Dimensions { hidden_size, intermediate_size, .. } = decoder.sizes;
    Module::new(decoder.class("MLP"))
        .with("up_proj", linear(hidden_size, intermediate_size, bias))
        .with("down_proj", linear(intermediate_size, hidden_size, bias))
}

pub(super) fn arcee(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Arcee")?;
    let bias = decoder.bias("attention_bias")?;
    let mlp = mlp(&decoder, decoder.bias("mlp_bias")?);
    decoder.finish(decoder.layer(decoder.attention(bias, bias), mlp))
}

pub(super) fn nemotron(context: &Context<'_>) -> Built {
    // Its attention does not fall back to the number of query heads.
    context.reader.size("num_key_value_heads")?;
    let decoder = Decoder::new(context, "Nemotron")?;
    let Dimensions { hidden_size, layers, .. } = decoder.sizes;
    let norm = || norm("NemotronLayerNorm1P", [hidden_size]).parameter("bias", [hidden_size]);
    let bias = decoder.bias("attention_bias")?;
    let mlp = mlp(&decoder, decoder.bias("mlp_bias")?);
    let layer = decoder
        .bare_layer(decoder.attention(bias, bias), mlp)
        .with("input_layernorm", norm())
        .with("post_attention_layernorm", norm());
    decoder.finish_with(Module::repeated(layers, layer), "norm", Some(norm()))
}

/// Its activation function has two parameters of its own.
pub(super) fn apertus(context: &Context<'_>) -> Built {
    let decoder = Decoder::new(context, "Apertus")?;
    let bias = decoder.bias("attention_bias")?;
    let activation =
        (context.reader.word("hidden_act")?.unwrap_or("xielu") == "xielu").then(|| {
            Module::new("XIELUActivation").parameter("alpha_p", [1]).parameter("alpha_n", [1])
        });
    let mlp = mlp(&decoder, Bias::No).with_some("act_fn", activation);
    let layer = decoder
        .bare_layer(attention_with_head_norms(&decoder, bias, bias), mlp)
        .with("attention_layernorm", decoder.rms_norm())
        .with("feedforward_layernorm", decoder.rms_norm());
    decoder.finish(layer)
}
