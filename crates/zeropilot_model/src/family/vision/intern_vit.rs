//! InternViT, the tower of InternVL.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, layer_norm, linear, norm};

use super::{Tower, feed_forward};

pub(in crate::family) fn intern_vit(reader: &Reader<'_>) -> Result<Tower, ConfigError> {
    let width = reader.size("hidden_size")?;
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer(reader, width)?);
    let pooled = reader.flag("use_mean_pooling")?;
    let module = Module::new("InternVLVisionModel")
        .with("embeddings", embeddings(reader, width)?)
        .with("encoder", Module::new("InternVLVisionEncoder").with("layer", layers))
        .with_some("layernorm", (!pooled).then(|| layer_norm(width)));
    Ok(Tower { module, width })
}

fn embeddings(reader: &Reader<'_>, width: u64) -> Result<Module, ConfigError> {
    let [height, breadth] = reader.height_and_width("image_size")?;
    let patch = reader.height_and_width("patch_size")?;
    let patches = (height / patch[0]) * (breadth / patch[1]);
    let projection = convolution(reader.size("num_channels")?, width, patch, Bias::Yes);
    let mut embeddings =
        Module::new("InternVLVisionEmbeddings").parameter("cls_token", [1, 1, width]);
    if reader.flag("use_mask_token")? {
        embeddings = embeddings.parameter("mask_token", [1, 1, width]);
    }
    if reader.flag("use_absolute_position_embeddings")? {
        embeddings = embeddings.parameter("position_embeddings", [1, patches + 1, width]);
    }
    let patch_embeddings =
        Module::new("InternVLVisionPatchEmbeddings").with("projection", projection);
    Ok(embeddings.with("patch_embeddings", patch_embeddings))
}

fn layer(reader: &Reader<'_>, width: u64) -> Result<Module, ConfigError> {
    reader.quotient("hidden_size", "num_attention_heads")?;
    let bias = Bias::from(reader.flag("attention_bias")?);
    let over_heads = reader.flag("use_qk_norm")?.then(|| norm("InternVLVisionRMSNorm", [width]));
    let attention = Module::new("InternVLVisionAttention")
        .with("q_proj", linear(width, width, bias))
        .with("k_proj", linear(width, width, bias))
        .with("v_proj", linear(width, width, bias))
        .with("projection_layer", linear(width, width, Bias::Yes))
        .with_some("q_norm", over_heads.clone())
        .with_some("k_norm", over_heads);
    let between = layer_norm_of(reader, width)?;
    let inner = reader.size("intermediate_size")?;
    // Two scales, one for each block.
    Ok(Module::new("InternVLVisionLayer")
        .parameter("lambda_1", [width])
        .parameter("lambda_2", [width])
        .with("attention", attention)
        .with("mlp", feed_forward("InternVLVisionMLP".to_owned(), width, inner))
        .with("layernorm_before", between.clone())
        .with("layernorm_after", between))
}

fn layer_norm_of(reader: &Reader<'_>, width: u64) -> Result<Module, ConfigError> {
    let key = "norm_type";
    match reader.word(key)? {
        Some("layer_norm") | None => Ok(layer_norm(width)),
        Some("rms_norm") => Ok(norm("InternVLVisionRMSNorm", [width])),
        Some(other) => {
            Err(ConfigError::UnknownWord { key: key.to_owned(), value: other.to_owned() })
        }
    }
}
