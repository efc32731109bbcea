//! ModernBERT.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context, Head};
use crate::family::parts::{Bias, embedding, layer_norm_with, linear};

pub(super) fn modernbert(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    let reader = &context.reader;
    let head_dim = reader.quotient("hidden_size", "num_attention_heads")?;
    let (hidden, heads) = (reader.size("hidden_size")?, reader.size("num_attention_heads")?);
    let layers = reader.layers("num_hidden_layers")?;
    reader.check_layer_types(layers)?;
    let sizes = Dimensions {
        hidden_size: hidden,
        intermediate_size: reader.size("intermediate_size")?,
        layers,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: reader.optional_size("max_position_embeddings")?,
        ..Dimensions::default()
    };
    let norm_bias = Bias::from(reader.flag("norm_bias")?);
    let norm = || layer_norm_with(hidden, norm_bias);
    let words = embedding(sizes.vocab_size, hidden).tied("weight", context.embedding_tie()?);
    let embeddings =
        Module::new("ModernBertEmbeddings").with("tok_embeddings", words).with("norm", norm());
    let layer = |first: bool, attention: Module, mlp: Module| {
        Module::new("ModernBertEncoderLayer")
            // The embedding has just been normalised.
            .with_some("attn_norm", (!first).then(norm))
            .with("attn", attention)
            .with("mlp_norm", norm())
            .with("mlp", mlp)
    };
    let (attention, mlp) = blocks(context, &sizes)?;
    let layers = Module::list(
        layers,
        |index| index == 0,
        |first| layer(first, attention.clone(), mlp.clone()),
    );
    let model = Module::new("ModernBertModel")
        .with("embeddings", embeddings)
        .with("layers", layers)
        .with("final_norm", norm());
    if context.head == Head::None {
        return Ok(Blueprint::of_text(model, sizes, None));
    }
    let head = Module::new("ModernBertPredictionHead")
        .with("dense", linear(hidden, hidden, reader.flag("classifier_bias")?.into()))
        .with("norm", norm());
    let root = Module::new(context.class()).with("model", model).with("head", head);
    let (root, output) = match context.head {
        Head::LanguageModel => {
            let decoder = linear(hidden, sizes.vocab_size, reader.flag("decoder_bias")?.into());
            (
                root.with("decoder", decoder.tied("weight", context.embedding_tie()?)),
                Some("decoder"),
            )
        }
        Head::Classifier => {
            (root.with("classifier", linear(hidden, reader.labels()?, Bias::Yes)), None)
        }
        Head::None => (root, None),
    };
    Ok(Blueprint::of_text(root, sizes, output))
}

fn blocks(context: &Context<'_>, sizes: &Dimensions) -> Result<(Module, Module), ConfigError> {
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = *sizes;
    let bias = Bias::from(context.reader.flag("attention_bias")?);
    let attention = Module::new("ModernBertAttention")
        .with("Wqkv", linear(hidden, 3 * hidden, bias))
        .with("Wo", linear(hidden, hidden, bias));
    let bias = Bias::from(context.reader.flag("mlp_bias")?);
    let mlp = Module::new("ModernBertMLP")
        .with("Wi", linear(hidden, 2 * inner, bias))
        .with("Wo", linear(inner, hidden, bias));
    Ok((attention, mlp))
}
