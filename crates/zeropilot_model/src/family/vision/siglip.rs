//! SigLIP.

use serde_json::Value;

use crate::architecture::{Module, ModuleKind};
use crate::config::{ConfigError, Reader, ValueKind};
use crate::family::parts::{Bias, convolution, embedding, layer_norm, linear_of};

use super::{attention, feed_forward, patches};

pub(super) fn siglip(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let (channels, patch) = (reader.size("num_channels")?, reader.side("patch_size")?);
    let embeddings = Module::new("SiglipVisionEmbeddings")
        .with("patch_embedding", convolution(channels, hidden, [patch, patch], Bias::Yes))
        .with("position_embedding", embedding(patches(reader)?, hidden));
    let layer = Module::new("SiglipEncoderLayer")
        .with("layer_norm1", layer_norm(hidden))
        .with("self_attn", attention("SiglipAttention".to_owned(), reader)?)
        .with("layer_norm2", layer_norm(hidden))
        .with("mlp", feed_forward("SiglipMLP".to_owned(), hidden, inner));
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer);
    Ok(Module::new("SiglipVisionModel")
        .with("embeddings", embeddings)
        .with("encoder", Module::new("SiglipEncoder").with("layers", layers))
        .with("post_layernorm", layer_norm(hidden))
        .with_some("head", has_head(reader)?.then(|| head(hidden, inner))))
}

/// The class has a head unless the file says otherwise, and no field for it.
fn has_head(reader: &Reader<'_>) -> Result<bool, ConfigError> {
    let key = "vision_use_head";
    match reader.object().get(key) {
        None => Ok(true),
        Some(Value::Bool(on)) => Ok(*on),
        Some(Value::Null) => Ok(false),
        Some(other) => Err(ConfigError::WrongKind {
            key: key.to_owned(),
            expected: ValueKind::Bool,
            found: other.into(),
        }),
    }
}

/// Pools all patches into one vector; no language model reads it.
fn head(hidden: u64, inner: u64) -> Module {
    let output = linear_of("NonDynamicallyQuantizableLinear", hidden, hidden, Bias::Yes);
    let attention = Module::of_kind("MultiheadAttention", ModuleKind::Other)
        .parameter("in_proj_weight", [3 * hidden, hidden])
        .parameter("in_proj_bias", [3 * hidden])
        .with("out_proj", output);
    Module::new("SiglipMultiheadAttentionPoolingHead")
        .parameter("probe", [1, 1, hidden])
        .with("attention", attention)
        .with("layernorm", layer_norm(hidden))
        .with("mlp", feed_forward("SiglipMLP".to_owned(), hidden, inner))
}
