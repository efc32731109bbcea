//! Towers: the parts of models that see.

mod clip;
mod glm;
mod idefics;
mod intern_vit;
mod pixtral;
mod qwen;
mod siglip;

use crate::architecture::Module;
use crate::config::{ConfigError, Reader, Section};
use crate::family::parts::{Bias, linear};

pub(super) use glm::glm4v;
pub(super) use idefics::idefics3;
pub(super) use intern_vit::intern_vit;
pub(super) use qwen::{qwen2_5_vl, qwen2_vl, qwen3_vl};

/// The key of a tower's config.
pub(super) const VISION_CONFIG: &str = "vision_config";

/// A tower, and the width of what it gives.
pub(super) struct Tower {
    pub(super) module: Module,
    pub(super) width: u64,
}

/// The tower that a vision config names.
pub(super) fn named(section: Section<'_>) -> Result<Tower, ConfigError> {
    let build = match section.model_type {
        "clip_vision_model" => clip::clip,
        "pixtral" => pixtral::pixtral,
        "siglip_vision_model" => siglip::siglip,
        other => {
            return Err(ConfigError::UnknownPart {
                key: VISION_CONFIG.to_owned(),
                model_type: other.to_owned(),
            });
        }
    };
    let width = section.reader.size("hidden_size")?;
    Ok(Tower { module: build(&section.reader)?, width })
}

/// The patches of a square image.
fn patches(reader: &Reader<'_>) -> Result<u64, ConfigError> {
    let side = reader.side("image_size")? / reader.side("patch_size")?;
    Ok(side * side)
}

/// Key, value, query and output projections as wide as the tower, refused where the heads do not fit.
fn attention(class: String, reader: &Reader<'_>) -> Result<Module, ConfigError> {
    reader.quotient("hidden_size", "num_attention_heads")?;
    let hidden = reader.size("hidden_size")?;
    Ok(Module::new(class)
        .with("k_proj", linear(hidden, hidden, Bias::Yes))
        .with("v_proj", linear(hidden, hidden, Bias::Yes))
        .with("q_proj", linear(hidden, hidden, Bias::Yes))
        .with("out_proj", linear(hidden, hidden, Bias::Yes)))
}

/// Two linear modules with an activation between them.
pub(super) fn feed_forward(class: String, hidden: u64, inner: u64) -> Module {
    Module::new(class)
        .with("fc1", linear(hidden, inner, Bias::Yes))
        .with("fc2", linear(inner, hidden, Bias::Yes))
}
