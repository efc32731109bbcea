//! The tower of Idefics 3 and SmolVLM: SigLIP's, without a head and in another order.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, embedding, layer_norm};

use super::{attention, feed_forward, patches};

/// The tower, its classes beginning with `prefix`.
pub(in crate::family) fn idefics3(
    reader: &Reader<'_>,
    prefix: &str,
) -> Result<Module, ConfigError> {
    let class = |name: &str| format!("{prefix}{name}");
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let (channels, patch) = (reader.size("num_channels")?, reader.side("patch_size")?);
    let embeddings = Module::new(class("VisionEmbeddings"))
        .with("patch_embedding", convolution(channels, hidden, [patch, patch], Bias::Yes))
        .with("position_embedding", embedding(patches(reader)?, hidden));
    let layer = Module::new(class("EncoderLayer"))
        .with("self_attn", attention(class("VisionAttention"), reader)?)
        .with("layer_norm1", layer_norm(hidden))
        .with("mlp", feed_forward(class("VisionMLP"), hidden, inner))
        .with("layer_norm2", layer_norm(hidden));
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer);
    Ok(Module::new(class("VisionTransformer"))
        .with("embeddings", embeddings)
        .with("encoder", Module::new(class("Encoder")).with("layers", layers))
        .with("post_layernorm", layer_norm(hidden)))
}
