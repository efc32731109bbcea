//! Pixtral, the tower of Mistral's models.

use crate::architecture::Module;
use crate::config::{ConfigError, Reader};
use crate::family::parts::{Bias, convolution, gated_mlp, linear, norm};

pub(super) fn pixtral(reader: &Reader<'_>) -> Result<Module, ConfigError> {
    let (hidden, inner) = (reader.size("hidden_size")?, reader.size("intermediate_size")?);
    let (channels, patch) = (reader.size("num_channels")?, reader.side("patch_size")?);
    let rms_norm = || norm("PixtralRMSNorm", [hidden]);
    let attention = Module::new("PixtralAttention")
        .with("k_proj", linear(hidden, hidden, Bias::No))
        .with("v_proj", linear(hidden, hidden, Bias::No))
        .with("q_proj", linear(hidden, hidden, Bias::No))
        .with("o_proj", linear(hidden, hidden, Bias::No));
    let layer = Module::new("PixtralAttentionLayer")
        .with("attention_norm", rms_norm())
        .with("feed_forward", gated_mlp("PixtralMLP".to_owned(), hidden, inner, Bias::No))
        .with("attention", attention)
        .with("ffn_norm", rms_norm());
    let layers = Module::repeated(reader.layers("num_hidden_layers")?, layer);
    Ok(Module::new("PixtralVisionModel")
        .with("patch_conv", convolution(channels, hidden, [patch, patch], Bias::No))
        .with("ln_pre", rms_norm())
        .with("transformer", Module::new("PixtralTransformer").with("layers", layers)))
}
