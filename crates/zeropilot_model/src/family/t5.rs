//! T5 and mT5.
//!
//! Their config classes of transformers 5 tie the output to the embedding whatever the file says. The
//! checkpoints of T5 1.1, Flan-T5 and mT5 hold a matrix of its own, and loading one of them unties it.

use crate::architecture::{Module, TieGroup};
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context, EMBEDDING, Head};
use crate::family::parts::{Bias, embedding, linear, norm};
use crate::model::Weights;

pub(super) fn t5(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    encoder_decoder(context, "T5")
}

pub(super) fn mt5(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    encoder_decoder(context, "MT5")
}

struct Stack<'a> {
    prefix: &'a str,
    sizes: Dimensions,
    buckets: u64,
    gated: bool,
}

fn encoder_decoder(context: &Context<'_>, prefix: &str) -> Result<Blueprint, ConfigError> {
    let reader = &context.reader;
    if context.head == Head::Classifier {
        return Err(ConfigError::NotModelled { key: "architectures".to_owned() });
    }
    let (heads, head_dim) = (reader.size("num_heads")?, reader.size("d_kv")?);
    let layers = reader.layers("num_layers")?;
    // The config class copies the number before it has seen another name for it.
    let decoder_layers = match reader.optional_layers("num_decoder_layers")? {
        Some(layers) => layers,
        None => reader.layers_of_field("num_layers")?,
    };
    let sizes = Dimensions {
        hidden_size: reader.size("d_model")?,
        intermediate_size: reader.size("d_ff")?,
        layers,
        decoder_layers: Some(decoder_layers),
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        ..Dimensions::default()
    };
    let buckets = reader.size("relative_attention_num_buckets")?;
    let stack = Stack { prefix, sizes, buckets, gated: is_gated(context)? };
    let separate = context.weights == Weights::Checkpoint && !says_tied(context)?;
    let head = linear(sizes.hidden_size, sizes.vocab_size, Bias::No);
    let words = || embedding(sizes.vocab_size, sizes.hidden_size).tied("weight", Some(EMBEDDING));
    let root = Module::new(context.class())
        .with("shared", words())
        .with("encoder", stack.build(words(), layers, false))
        .with("decoder", stack.build(words(), decoder_layers, true));
    if context.head == Head::None {
        return Ok(Blueprint::of_text(root, sizes, None));
    }
    let root = root.with("lm_head", head.tied("weight", tie(separate)));
    Ok(Blueprint::of_text(root, sizes, Some("lm_head")))
}

fn tie(separate: bool) -> Option<TieGroup> {
    (!separate).then_some(EMBEDDING)
}

/// What the file says; T5's class has no default, and its first checkpoints are tied.
fn says_tied(context: &Context<'_>) -> Result<bool, ConfigError> {
    match context.reader.is_given("tie_word_embeddings") {
        true => context.reader.flag("tie_word_embeddings"),
        false => Ok(true),
    }
}

fn is_gated(context: &Context<'_>) -> Result<bool, ConfigError> {
    let key = "feed_forward_proj";
    let word = context.reader.word(key)?.unwrap_or("relu");
    let parts: Vec<&str> = word.split('-').collect();
    match parts.as_slice() {
        [_] => Ok(false),
        ["gated", _] => Ok(true),
        _ => Err(ConfigError::UnknownWord { key: key.to_owned(), value: word.to_owned() }),
    }
}

impl Stack<'_> {
    fn class(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn norm(&self) -> Module {
        norm(self.class("LayerNorm"), [self.sizes.hidden_size])
    }

    fn attention(&self, with_positions: bool) -> Module {
        let Dimensions { hidden_size: hidden, heads, head_dim, .. } = self.sizes;
        let inner = heads * head_dim;
        Module::new(self.class("Attention"))
            .with("q", linear(hidden, inner, Bias::No))
            .with("k", linear(hidden, inner, Bias::No))
            .with("v", linear(hidden, inner, Bias::No))
            .with("o", linear(inner, hidden, Bias::No))
            .with_some(
                "relative_attention_bias",
                with_positions.then(|| embedding(self.buckets, heads)),
            )
    }

    fn feed_forward(&self) -> Module {
        let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = self.sizes;
        let dense = if self.gated {
            Module::new(self.class("DenseGatedActDense"))
                .with("wi_0", linear(hidden, inner, Bias::No))
                .with("wi_1", linear(hidden, inner, Bias::No))
        } else {
            Module::new(self.class("DenseActDense")).with("wi", linear(hidden, inner, Bias::No))
        };
        let dense = dense.with("wo", linear(inner, hidden, Bias::No));
        Module::new(self.class("LayerFF"))
            .with("DenseReluDense", dense)
            .with("layer_norm", self.norm())
    }

    /// Only the first block has the table of relative positions; the others are handed its result.
    fn block(&self, first: bool, decoder: bool) -> Module {
        let mut parts = vec![
            Module::new(self.class("LayerSelfAttention"))
                .with("SelfAttention", self.attention(first))
                .with("layer_norm", self.norm()),
        ];
        if decoder {
            parts.push(
                Module::new(self.class("LayerCrossAttention"))
                    .with("EncDecAttention", self.attention(false))
                    .with("layer_norm", self.norm()),
            );
        }
        parts.push(self.feed_forward());
        let mut list = Module::new("ModuleList");
        for (number, part) in (0..).zip(parts) {
            list.push_numbered(number, part.into());
        }
        Module::new(self.class("Block")).with("layer", list)
    }

    fn build(&self, words: Module, layers: u64, decoder: bool) -> Module {
        let blocks = Module::list(layers, |index| index == 0, |first| self.block(first, decoder));
        Module::new(self.class("Stack"))
            .with("embed_tokens", words)
            .with("block", blocks)
            .with("final_layer_norm", self.norm())
    }
}
