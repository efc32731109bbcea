//! Models with a tower, a projector and a language model side by side: LLaVA and those that follow it.

use serde_json::Value;

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::family::Family;
use crate::family::blueprint::{Blueprint, Context, Language};
use crate::family::composite::{LanguageModel, Tying};
use crate::family::llama;
use crate::family::parts::{Bias, layer_norm, linear, norm};
use crate::family::vision::{self, Tower, VISION_CONFIG};
use crate::part::{PartKind, PartPath};

type Built = Result<Blueprint, ConfigError>;

const PARTS: &[PartPath] = &[
    (PartKind::Vision, "model.vision_tower"),
    (PartKind::Projector, "model.multi_modal_projector"),
    // Stands for the end of a row of patches.
    (PartKind::Projector, "model.image_newline"),
];

fn finish(
    context: &Context<'_>,
    model: Module,
    tower: Tower,
    projector: Module,
    language: &LanguageModel,
) -> Blueprint {
    let model = model
        .with("vision_tower", tower.module)
        .with("multi_modal_projector", projector)
        .with("language_model", language.module.clone());
    context.with_output(model, language, PARTS)
}

fn tower(context: &Context<'_>) -> Result<Tower, ConfigError> {
    vision::named(context.reader.section(VISION_CONFIG)?)
}

/// The width of what the projector reads: the states of one layer of the tower, or of several side by side.
fn features(context: &Context<'_>, tower: &Tower) -> u64 {
    match context.reader.value("vision_feature_layer") {
        Some(Value::Array(layers)) => tower.width.saturating_mul(layers.len() as u64),
        _ => tower.width,
    }
}

fn with_two_linear(
    projector: Module,
    features: u64,
    language: &LanguageModel,
    bias: Bias,
) -> Module {
    let hidden = language.dimensions.hidden_size;
    projector
        .with("linear_1", linear(features, hidden, bias))
        .with("linear_2", linear(hidden, hidden, bias))
}

fn llava_of(context: &Context<'_>, prefix: &str, tying: Tying, newline: bool) -> Built {
    let (tower, language) = (tower(context)?, context.named_language_model(tying)?);
    let bias = Bias::from(context.reader.flag("multimodal_projector_bias")?);
    let projector = Module::new(format!("{prefix}MultiModalProjector"));
    let projector = with_two_linear(projector, features(context, &tower), &language, bias);
    let mut model = Module::new(format!("{prefix}Model"));
    if newline {
        model = model.parameter("image_newline", [language.dimensions.hidden_size]);
    }
    Ok(finish(context, model, tower, projector, &language))
}

pub(super) fn llava(context: &Context<'_>) -> Built {
    llava_of(context, "Llava", Tying::Either, false)
}

pub(super) fn llava_next(context: &Context<'_>) -> Built {
    llava_of(context, "LlavaNext", Tying::Outer, true)
}

pub(super) fn llava_onevision(context: &Context<'_>) -> Built {
    llava_of(context, "LlavaOnevision", Tying::Either, true)
}

pub(super) fn mistral3(context: &Context<'_>) -> Built {
    let reader = &context.reader;
    let (tower, language) = (tower(context)?, context.named_language_model(Tying::Outer)?);
    let bias = Bias::from(reader.flag("multimodal_projector_bias")?);
    let side = reader.side("spatial_merge_size")?;
    let merger = Module::new("Mistral3PatchMerger")
        .with("merging_layer", linear(side * side * tower.width, tower.width, Bias::No));
    let projector = Module::new("Mistral3MultiModalProjector")
        .with("norm", norm("Mistral3RMSNorm", [tower.width]))
        .with("patch_merger", merger);
    let projector = with_two_linear(projector, features(context, &tower), &language, bias);
    Ok(finish(context, Module::new("Mistral3Model"), tower, projector, &language))
}

pub(super) fn internvl(context: &Context<'_>) -> Built {
    let tower = vision::intern_vit(&context.reader.section(VISION_CONFIG)?.reader)?;
    let language = context.named_language_model(Tying::Outer)?;
    let side = context.reader.inverse("downsample_ratio")?;
    let merged = side * side * tower.width;
    let projector =
        Module::new("InternVLMultiModalProjector").with("layer_norm", layer_norm(merged));
    let projector = with_two_linear(projector, merged, &language, Bias::Yes);
    Ok(finish(context, Module::new("InternVLModel"), tower, projector, &language))
}

/// Its projection is a parameter of the projector, not a linear module.
pub(super) fn gemma3(context: &Context<'_>) -> Built {
    let tower = tower(context)?;
    let language =
        context.language_model(Tying::Outer, Language::Of(Family::Gemma3Text), llama::gemma3)?;
    let hidden = language.dimensions.hidden_size;
    let projector = Module::new("Gemma3MultiModalProjector")
        .parameter("mm_input_projection_weight", [tower.width, hidden])
        .with("mm_soft_emb_norm", norm("Gemma3RMSNorm", [tower.width]));
    Ok(finish(context, Module::new("Gemma3Model"), tower, projector, &language))
}

/// Its projector gives `projection_dim`, whatever the width of the language model.
pub(super) fn paligemma(context: &Context<'_>) -> Built {
    let (tower, language) = (tower(context)?, context.named_language_model(Tying::Outer)?);
    let output = context.reader.size("projection_dim")?;
    let projector = Module::new("PaliGemmaMultiModalProjector")
        .with("linear", linear(tower.width, output, Bias::Yes));
    Ok(finish(context, Module::new("PaliGemmaModel"), tower, projector, &language))
}
