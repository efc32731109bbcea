//! What the decoders that follow Llama have in common.

use std::borrow::Cow;

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::dimensions::{Dimensions, Experts};
use crate::family::blueprint::{Blueprint, Context};
use crate::family::parts::{Bias, embedding_of, gated_mlp, linear, norm};

/// A decoder under construction.
pub(super) struct Decoder<'a> {
    pub(super) context: &'a Context<'a>,
    /// What its classes begin with.
    prefix: &'static str,
    pub(super) sizes: Dimensions,
    embedding_class: Cow<'static, str>,
    model_class: Cow<'static, str>,
    norm_class: Cow<'static, str>,
    extra_tokens: u64,
    head_bias: Bias,
}

impl<'a> Decoder<'a> {
    /// Reads the keys that every such decoder has.
    pub(super) fn new(context: &'a Context<'a>, prefix: &'static str) -> Result<Self, ConfigError> {
        Self::with_inner_width(context, prefix, "intermediate_size")
    }

    /// As [`Decoder::new`], for a class that names the inner width of its blocks otherwise.
    pub(super) fn with_inner_width(
        context: &'a Context<'a>,
        prefix: &'static str,
        inner: &str,
    ) -> Result<Self, ConfigError> {
        let reader = &context.reader;
        let (hidden_size, heads) =
            (reader.size("hidden_size")?, reader.size("num_attention_heads")?);
        let layers = reader.layers("num_hidden_layers")?;
        reader.check_layer_types(layers)?;
        let sizes = Dimensions {
            hidden_size,
            intermediate_size: reader.size(inner)?,
            layers,
            heads,
            kv_heads: reader.optional_size("num_key_value_heads")?.unwrap_or(heads),
            vocab_size: reader.size("vocab_size")?,
            max_positions: reader.optional_size("max_position_embeddings")?,
            ..Dimensions::default()
        };
        let decoder = Self {
            context,
            prefix,
            sizes,
            embedding_class: Cow::Borrowed("Embedding"),
            model_class: Cow::Owned(format!("{prefix}Model")),
            norm_class: Cow::Owned(format!("{prefix}RMSNorm")),
            extra_tokens: 0,
            head_bias: Bias::No,
        };
        let head_dim = match reader.optional_size("head_dim")? {
            Some(head_dim) => head_dim,
            None => decoder.hidden_per_head()?,
        };
        Ok(decoder.with_head_dim(head_dim))
    }

    /// The width a head has if nothing else is said, rounded down as the classes do.
    pub(super) fn hidden_per_head(&self) -> Result<u64, ConfigError> {
        let Dimensions { hidden_size, heads, .. } = self.sizes;
        if hidden_size >= heads {
            return Ok(hidden_size / heads);
        }
        Err(ConfigError::OutOfRange {
            key: "num_attention_heads".to_owned(),
            value: heads.to_string(),
            least: 1,
            most: hidden_size,
        })
    }

    /// Refuses a hidden size that is no multiple of the number of heads, for classes that do.
    pub(super) fn with_whole_heads(self) -> Result<Self, ConfigError> {
        self.context.reader.quotient("hidden_size", "num_attention_heads")?;
        Ok(self)
    }

    pub(super) fn with_head_dim(mut self, head_dim: u64) -> Self {
        self.sizes.head_dim = head_dim;
        self.sizes.value_head_dim = head_dim;
        self
    }

    pub(super) fn with_embedding_class(mut self, class: &'static str) -> Self {
        self.embedding_class = Cow::Borrowed(class);
        self
    }

    pub(super) fn with_model_class(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.model_class = class.into();
        self
    }

    pub(super) fn with_norm_class(mut self, class: &'static str) -> Self {
        self.norm_class = Cow::Borrowed(class);
        self
    }

    /// With rows in the embedding that the output does not have.
    pub(super) fn with_extra_tokens(mut self, tokens: u64) -> Self {
        self.extra_tokens = tokens;
        self
    }

    pub(super) fn with_head_bias(mut self, bias: Bias) -> Self {
        self.head_bias = bias;
        self
    }

    pub(super) fn with_experts(mut self, experts: Experts) -> Self {
        self.sizes.experts = Some(experts);
        self
    }

    /// A switch that says whether there is a bias.
    pub(super) fn bias(&self, key: &str) -> Result<Bias, ConfigError> {
        self.context.reader.flag(key).map(Bias::from)
    }

    /// `LlamaAttention` from `Attention`.
    pub(super) fn class(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The family's RMS norm over the hidden size.
    pub(super) fn rms_norm(&self) -> Module {
        self.rms_norm_over(self.sizes.hidden_size)
    }

    pub(super) fn rms_norm_over(&self, width: u64) -> Module {
        norm(self.norm_class.clone(), [width])
    }

    /// Query, key, value and output projections.
    pub(super) fn attention(&self, qkv: Bias, output: Bias) -> Module {
        let Dimensions { hidden_size, heads, kv_heads, head_dim, .. } = self.sizes;
        Module::new(self.class("Attention"))
            .with("q_proj", linear(hidden_size, heads * head_dim, qkv))
            .with("k_proj", linear(hidden_size, kv_heads * head_dim, qkv))
            .with("v_proj", linear(hidden_size, kv_heads * head_dim, qkv))
            .with("o_proj", linear(heads * head_dim, hidden_size, output))
    }

    /// The dense feed-forward block.
    pub(super) fn mlp(&self, bias: Bias) -> Module {
        self.mlp_of(self.sizes.intermediate_size, bias)
    }

    pub(super) fn mlp_of(&self, intermediate: u64, bias: Bias) -> Module {
        gated_mlp(self.class("MLP"), self.sizes.hidden_size, intermediate, bias)
    }

    /// A layer as Llama has it: attention, feed-forward block, two norms.
    pub(super) fn layer(&self, attention: Module, mlp: Module) -> Module {
        self.bare_layer(attention, mlp)
            .with("input_layernorm", self.rms_norm())
            .with("post_attention_layernorm", self.rms_norm())
    }

    /// A layer without its norms.
    pub(super) fn bare_layer(&self, attention: Module, mlp: Module) -> Module {
        Module::new(self.class("DecoderLayer")).with("self_attn", attention).with("mlp", mlp)
    }

    /// The whole model of equal layers, with the family's RMS norm at the end.
    pub(super) fn finish(&self, layer: Module) -> Result<Blueprint, ConfigError> {
        let layers = Module::repeated(self.sizes.layers, layer);
        self.finish_with(layers, "norm", Some(self.rms_norm()))
    }

    /// The whole model.
    pub(super) fn finish_with(
        &self,
        layers: Module,
        norm_name: &'static str,
        norm: Option<Module>,
    ) -> Result<Blueprint, ConfigError> {
        let Dimensions { hidden_size, vocab_size, .. } = self.sizes;
        let rows = vocab_size + self.extra_tokens;
        let embedding = embedding_of(self.embedding_class.clone(), rows, hidden_size);
        let model = Module::new(self.model_class.clone())
            .with("embed_tokens", embedding.tied("weight", self.context.embedding_tie()?))
            .with("layers", layers)
            .with_some(norm_name, norm);
        self.context.with_head("model", model, self.sizes, self.head_bias)
    }
}
