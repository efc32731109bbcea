//! The towers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, which hold the mergers that lead to the language model.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, embedding, gated_mlp, layer_norm, linear, norm};

use super::feed_forward;

/// A convolution over two frames at once.
pub(super) fn patch_embed(
    class: String,
    reader: &Reader<'_>,
    width: u64,
    bias: Bias,
) -> Result<Module, ConfigError> {
    let (frames, patch) = (reader.side("temporal_patch_size")?, reader.side("patch_size")?);
    let channels = reader.size("in_channels")?;
    Ok(Module::new(class).with("proj", convolution(channels, width, [frames, patch, patch], bias)))
}

/// Query, key and value in one matrix.
pub(super) fn attention(class: String, width: u64, qkv: Bias, output: Bias) -> Module {
    Module::new(class)
        .with("qkv", linear(width, 3 * width, qkv))
        .with("proj", linear(width, width, output))
}

pub(super) fn block(class: String, norm: Module, attention: Module, mlp: Module) -> Module {
    Module::new(class)
        .with("norm1", norm.clone())
        .with("norm2", norm)
        .with("attn", attention)
        .with("mlp", mlp)
}

/// The width of the patches that become one token.
fn merged(reader: &Reader<'_>, width: u64) -> Result<u64, ConfigError> {
    let side = reader.side("spatial_merge_size")?;
    Ok(side * side * width)
}

/// The merger of the first two generations.
fn merger(class: &'static str, norm: Module, merged: u64, output: u64) -> Module {
    let mut layers = Module::new("Sequential");
    layers.push_numbered(0, linear(merged, merged, Bias::Yes).into());
    layers.push_numbered(2, linear(merged, output, Bias::Yes).into());
    Module::new(class).with("ln_q", norm).with("mlp", layers)
}

/// Here `hidden_size` is the width of the language model.
pub(in crate::family) fn qwen2_vl(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (width, output) = (reader.size("embed_dim")?, reader.size("hidden_size")?);
    let inner = width * reader.size("mlp_ratio")?;
    let block = block(
        "Qwen2VLVisionBlock".to_owned(),
        layer_norm(width),
        attention("VisionAttention".to_owned(), width, Bias::Yes, Bias::Yes),
        feed_forward("VisionMlp".to_owned(), width, inner),
    );
    Ok(Module::new("Qwen2VisionTransformerPretrainedModel")
        .with("patch_embed", patch_embed("PatchEmbed".to_owned(), reader, width, Bias::No)?)
        .with("blocks", Module::repeated(reader.layers("depth")?, block))
        .with("merger", merger("PatchMerger", layer_norm(width), merged(reader, width)?, output)))
}

pub(in crate::family) fn qwen2_5_vl(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (width, output) = (reader.size("hidden_size")?, reader.size("out_hidden_size")?);
    let inner = reader.size("intermediate_size")?;
    let rms_norm = || norm("Qwen2_5_VLRMSNorm", [width]);
    let block = block(
        "Qwen2_5_VLVisionBlock".to_owned(),
        rms_norm(),
        attention("Qwen2_5_VLVisionAttention".to_owned(), width, Bias::Yes, Bias::Yes),
        gated_mlp("Qwen2_5_VLMLP".to_owned(), width, inner, Bias::Yes),
    );
    let embed = patch_embed("Qwen2_5_VisionPatchEmbed".to_owned(), reader, width, Bias::No)?;
    let merged = merged(reader, width)?;
    Ok(Module::new("Qwen2_5_VisionTransformerPretrainedModel")
        .with("patch_embed", embed)
        .with("blocks", Module::repeated(reader.layers("depth")?, block))
        .with("merger", merger("Qwen2_5_VLPatchMerger", rms_norm(), merged, output)))
}

/// The tower of Qwen3-VL, its classes beginning with `prefix`.
pub(in crate::family) fn qwen3_vl(
    reader: &Reader<'_>,
    prefix: &str,
) -> Result<Module, ConfigError> {
    let class = |name: &str| format!("{prefix}{name}");
    let (width, output) = (reader.size("hidden_size")?, reader.size("out_hidden_size")?);
    let inner = reader.size("intermediate_size")?;
    let mlp = Module::new(class("VisionMLP"))
        .with("linear_fc1", linear(width, inner, Bias::Yes))
        .with("linear_fc2", linear(inner, width, Bias::Yes));
    let attention = attention(class("VisionAttention"), width, Bias::Yes, Bias::Yes);
    let block = block(class("VisionBlock"), layer_norm(width), attention, mlp);
    let merged = merged(reader, width)?;
    let merger = |normed: u64| {
        Module::new(class("VisionPatchMerger"))
            .with("norm", layer_norm(normed))
            .with("linear_fc1", linear(merged, merged, Bias::Yes))
            .with("linear_fc2", linear(merged, output, Bias::Yes))
    };
    let fed = reader.layer_numbers("deepstack_visual_indexes")?.unwrap_or_default().len() as u64;
    let embed = patch_embed(class("VisionPatchEmbed"), reader, width, Bias::Yes)?;
    Ok(Module::new(class("VisionModel"))
        .with("patch_embed", embed)
        .with("pos_embed", embedding(reader.size("num_position_embeddings")?, width))
        .with("blocks", Module::repeated(reader.layers("depth")?, block))
        .with("merger", merger(width))
        .with("deepstack_merger_list", Module::repeated(fed, merger(merged))))
}
