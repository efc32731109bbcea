//! Idefics 3 and SmolVLM.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::family::blueprint::{Blueprint, Context};
use crate::family::composite::Tying;
use crate::family::parts::{Bias, linear};
use crate::family::vision::{self, VISION_CONFIG};
use crate::part::{PartKind, PartPath};

const PARTS: &[PartPath] =
    &[(PartKind::Vision, "model.vision_model"), (PartKind::Projector, "model.connector")];

pub(super) fn idefics3(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    of(context, "Idefics3")
}

pub(super) fn smolvlm(context: &Context<'_>) -> Result<Blueprint, ConfigError> {
    of(context, "SmolVLM")
}

fn of(context: &Context<'_>, prefix: &str) -> Result<Blueprint, ConfigError> {
    let class = |name: &str| format!("{prefix}{name}");
    let reader = context.reader.section(VISION_CONFIG)?.reader;
    let language = context.named_language_model(Tying::Outer)?;
    let side = context.reader.side("scale_factor")?;
    let merged = side * side * reader.size("hidden_size")?;
    let projection = Module::new(class("SimpleMLP"))
        .with("proj", linear(merged, language.dimensions.hidden_size, Bias::No));
    let connector = Module::new(class("Connector")).with("modality_projection", projection);
    let model = Module::new(class("Model"))
        .with("vision_model", vision::idefics3(&reader, prefix)?)
        .with("connector", connector)
        .with("text_model", language.module.clone());
    Ok(context.with_output(model, &language, PARTS))
}
