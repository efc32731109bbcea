//! The tower of GLM-4.1V.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, embedding, gated_mlp, layer_norm, linear, norm};

use super::patches;
use super::qwen::{attention, block, patch_embed};

/// `intermediate_size` is the inner width of the merger; that of the blocks is `out_hidden_size`.
pub(in crate::family) fn glm4v(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (width, output) = (reader.size("hidden_size")?, reader.size("out_hidden_size")?);
    let inner = reader.size("intermediate_size")?;
    let rms_norm = || norm("Glm4vRMSNorm", [width]);
    let qkv = Bias::from(reader.flag("attention_bias")?);
    let block = block(
        "Glm4vVisionBlock".to_owned(),
        rms_norm(),
        attention("Glm4vVisionAttention".to_owned(), width, qkv, Bias::No),
        gated_mlp("Glm4VisionMlp".to_owned(), width, output, Bias::No),
    );
    let merger = Module::new("Glm4vVisionPatchMerger")
        .with("proj", linear(output, output, Bias::No))
        .with("post_projection_norm", layer_norm(output))
        .with("gate_proj", linear(output, inner, Bias::No))
        .with("up_proj", linear(output, inner, Bias::No))
        .with("down_proj", linear(inner, output, Bias::No));
    let positions = embedding(patches(reader)?, width);
    let side = reader.side("spatial_merge_size")?;
    let embed = patch_embed("Glm4vVisionPatchEmbed".to_owned(), reader, width, Bias::Yes)?;
    Ok(Module::new("Glm4vVisionModel")
        .with(
            "embeddings",
            Module::new("Glm4vVisionEmbeddings").with("position_embedding", positions),
        )
        .with("patch_embed", embed)
        .with("blocks", Module::repeated(reader.layers("depth")?, block))
        .with("merger", merger)
        .with("post_conv_layernorm", rms_norm())
        .with("downsample", convolution(width, output, [side, side], Bias::Yes))
        .with("post_layernorm", rms_norm()))
}
