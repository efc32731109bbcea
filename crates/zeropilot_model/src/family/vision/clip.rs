//! The vision tower of CLIP.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, embedding, layer_norm};

use super::{attention, feed_forward, patches};

pub(super) fn clip(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let (channels, patch) = (reader.size("num_channels")?, reader.side("patch_size")?);
    let embeddings = Module::new("CLIPVisionEmbeddings")
        .parameter("class_embedding", [hidden])
        .with("patch_embedding", convolution(channels, hidden, [patch, patch], Bias::No))
        .with("position_embedding", embedding(patches(reader)? + 1, hidden));
    let layer = Module::new("CLIPEncoderLayer")
        .with("self_attn", attention("CLIPAttention".to_owned(), reader)?)
        .with("layer_norm1", layer_norm(hidden))
        .with("mlp", feed_forward("CLIPMLP".to_owned(), hidden, inner))
        .with("layer_norm2", layer_norm(hidden));
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer);
    Ok(Module::new("CLIPVisionModel")
        .with("embeddings", embeddings)
        // Spelt so in the class.
        .with("pre_layrnorm", layer_norm(hidden))
        .with("encoder", Module::new("CLIPEncoder").with("layers", layers))
        .with("post_layernorm", layer_norm(hidden)))
}
