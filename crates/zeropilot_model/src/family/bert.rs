//! BERT, RoBERTa and XLM-RoBERTa, with the masked-language-model head, a classifier, or alone.

use std::borrow::Cow;

use crate::architecture::{Module, TieGroup};
use crate::config::ConfigError;
use crate::dimensions::Dimensions;
use crate::family::blueprint::{Blueprint, Context, Head};
use crate::family::parts::{Bias, embedding, layer_norm, linear};

/// The group of the output bias, which the head holds under two names.
const OUTPUT_BIAS: TieGroup = TieGroup(1);

fn sizes(context: &Context<'_>) -> Result<Dimensions, ConfigError> {
    let reader = &context.reader;
    // A decoder has cross attention or a causal mask, and other classes.
    reader.refuse(&["is_decoder", "add_cross_attention"])?;
    let head_dim = reader.quotient("hidden_size", "num_attention_heads")?;
    let heads = reader.size("num_attention_heads")?;
    Ok(Dimensions {
        hidden_size: reader.size("hidden_size")?,
        intermediate_size: reader.size("intermediate_size")?,
        layers: reader.layers("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        value_head_dim: head_dim,
        vocab_size: reader.size("vocab_size")?,
        max_positions: Some(reader.size("max_position_embeddings")?),
        ..Dimensions::default()
    })
}

/// A linear module and the norm behind it.
fn output(class: String, inputs: u64, hidden: u64) -> Module {
    Module::new(class)
        .with("dense", linear(inputs, hidden, Bias::Yes))
        .with("LayerNorm", layer_norm(hidden))
}

fn encoder(prefix: &str, sizes: &Dimensions) -> Module {
    let Dimensions { hidden_size: hidden, intermediate_size: inner, .. } = *sizes;
    let class = |name: &str| format!("{prefix}{name}");
    let heads = Module::new(class("SelfAttention"))
        .with("query", linear(hidden, hidden, Bias::Yes))
        .with("key", linear(hidden, hidden, Bias::Yes))
        .with("value", linear(hidden, hidden, Bias::Yes));
    let attention = Module::new(class("Attention"))
        .with("self", heads)
        .with("output", output(class("SelfOutput"), hidden, hidden));
    let intermediate =
        Module::new(class("Intermediate")).with("dense", linear(hidden, inner, Bias::Yes));
    let layer = Module::new(class("Layer"))
        .with("attention", attention)
        .with("intermediate", intermediate)
        .with("output", output(class("Output"), inner, hidden));
    Module::new(class("Encoder")).with("layer", Module::repeated(sizes.layers, layer))
}

/// The layer that makes one vector of a sequence.
fn with_pooler(model: Module, class: impl Into<Cow<'static, str>>, hidden: u64) -> Module {
    let pooler = Module::new(class).with("dense", linear(hidden, hidden, Bias::Yes));
    model.with("pooler", pooler)
}

/// The three tables, and the two groups that tie the head to them.
struct Tables {
    words: Module,
    positions: Module,
    kinds: Module,
    weight: Option<TieGroup>,
    bias: Option<TieGroup>,
}

fn tables(context: &Context<'_>, sizes: &Dimensions) -> Result<Tables, ConfigError> {
    let hidden = sizes.hidden_size;
    let weight = context.embedding_tie()?;
    Ok(Tables {
        words: embedding(sizes.vocab_size, hidden).tied("weight", weight),
        positions: embedding(sizes.max_positions.unwrap_or_default(), hidden),
        kinds: embedding(context.reader.size("type_vocab_size")?, hidden),
        weight,
        bias: weight.map(|_| OUTPUT_BIAS),
    })
}

pub(super) fn bert(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    let sizes = sizes(context)?;
    let hidden = sizes.hidden_size;
    let Tables { words, positions, kinds, weight, bias } = tables(context, &sizes)?;
    let embeddings = Module::new("BertEmbeddings")
        .with("word_embeddings", words)
        .with("position_embeddings", positions)
        .with("token_type_embeddings", kinds)
        .with("LayerNorm", layer_norm(hidden));
    let model = Module::new("BertModel")
        .with("embeddings", embeddings)
        .with("encoder", encoder("Bert", &sizes));
    let root = Module::new(context.class());
    let (root, output) = match context.head {
        Head::LanguageModel => {
            let decoder = linear(hidden, sizes.vocab_size, Bias::Yes);
            let predictions = Module::new("BertLMPredictionHead")
                .parameter("bias", [sizes.vocab_size])
                .tied("bias", bias)
                .with("transform", output("BertPredictionHeadTransform".to_owned(), hidden, hidden))
                .with("decoder", decoder.tied("weight", weight).tied("bias", bias));
            let head = Module::new("BertOnlyMLMHead").with("predictions", predictions);
            (root.with("bert", model).with("cls", head), Some("cls.predictions.decoder"))
        }
        Head::Classifier => {
            let labels = context.reader.labels()?;
            let root = root.with("bert", with_pooler(model, "BertPooler", hidden));
            (root.with("classifier", linear(hidden, labels, Bias::Yes)), None)
        }
        Head::None => (with_pooler(model, "BertPooler", hidden), None),
    };
    Ok(Blueprint::of_text(root, sizes, output))
}

pub(super) fn roberta(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    with_roberta_classes(context, "Roberta", false)
}

pub(super) fn xlm_roberta(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    with_roberta_classes(context, "XLMRoberta", true)
}

/// The table of positions has a row for padding, that of the padding token: 1 unless the config says otherwise.
fn check_positions(context: &Context<'_>) -> Result<(), ConfigError> {
    let reader = &context.reader;
    let positions = reader.size("max_position_embeddings")?;
    let padding = reader.value("pad_token_id").map_or(Some(1), serde_json::Value::as_u64);
    match padding.filter(|padding| *padding >= positions) {
        Some(padding) => Err(ConfigError::OutOfRange {
            key: "max_position_embeddings".to_owned(),
            value: positions.to_string(),
            least: padding + 1,
            most: crate::config::MOST,
        }),
        None => Ok(()),
    }
}

fn with_roberta_classes(
    context: &Context<'_>,
    prefix: &str,
    head_first: bool,
) -> Result<Blueprint, ConfigError> {
    let class = |name: &str| format!("{prefix}{name}");
    let sizes = sizes(context)?;
    check_positions(context)?;
    let hidden = sizes.hidden_size;
    let Tables { words, positions, kinds, weight, bias } = tables(context, &sizes)?;
    // The table of positions is registered last.
    let embeddings = Module::new(class("Embeddings"))
        .with("word_embeddings", words)
        .with("token_type_embeddings", kinds)
        .with("LayerNorm", layer_norm(hidden))
        .with("position_embeddings", positions);
    let model = Module::new(class("Model"))
        .with("embeddings", embeddings)
        .with("encoder", encoder(prefix, &sizes));
    let with_head = |name: &'static str, head: Module, model: Module| {
        let root = Module::new(context.class());
        if head_first {
            root.with(name, head).with("roberta", model)
        } else {
            root.with("roberta", model).with(name, head)
        }
    };
    let (root, output) = match context.head {
        Head::LanguageModel => {
            let decoder = linear(hidden, sizes.vocab_size, Bias::Yes);
            let head = Module::new(class("LMHead"))
                .parameter("bias", [sizes.vocab_size])
                .tied("bias", bias)
                .with("dense", linear(hidden, hidden, Bias::Yes))
                .with("layer_norm", layer_norm(hidden))
                .with("decoder", decoder.tied("weight", weight).tied("bias", bias));
            (with_head("lm_head", head, model), Some("lm_head.decoder"))
        }
        Head::Classifier => {
            let head = Module::new(class("ClassificationHead"))
                .with("dense", linear(hidden, hidden, Bias::Yes))
                .with("out_proj", linear(hidden, context.reader.labels()?, Bias::Yes));
            (with_head("classifier", head, model), None)
        }
        Head::None => (with_pooler(model, class("Pooler"), hidden), None),
    };
    Ok(Blueprint::of_text(root, sizes, output))
}
