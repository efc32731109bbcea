//! Models that see with a tower called `visual`: Qwen-VL of all generations, and GLM-4.1V.

use crate::architecture::Module;
use crate::config::ConfigError;
use crate::family::Family;
use crate::family::blueprint::{Blueprint, Context, Language};
use crate::family::composite::{LanguageModel, Tying};
use crate::family::vision::{self, VISION_CONFIG};
use crate::family::{llama, mixture};
use crate::part::{PartKind, PartPath};

type Built = Result<Blueprint, ConfigError>;

const PARTS: &[PartPath] = &[
    (PartKind::Vision, "model.visual"),
    (PartKind::Projector, "model.visual.merger"),
    (PartKind::Projector, "model.visual.deepstack_merger_list"),
];

fn finish(
    context: &Context<'_>,
    class: &'static str,
    tower: Module,
    language: &LanguageModel,
) -> Blueprint {
    let model =
        Module::new(class).with("visual", tower).with("language_model", language.module.clone());
    context.with_output(model, language, PARTS)
}

pub(super) fn qwen2_vl(context: &Context<'_>) -> Built {
    let tower = vision::qwen2_vl(&context.reader.section(VISION_CONFIG)?.reader)?;
    let language = context.language_model(Tying::Either, Language::Of(Family::Qwen2), |text| {
        llama::qwen2_vl_text(text, "Qwen2VL")
    })?;
    Ok(finish(context, "Qwen2VLModel", tower, &language))
}

pub(super) fn qwen2_5_vl(context: &Context<'_>) -> Built {
    let tower = vision::qwen2_5_vl(&context.reader.section(VISION_CONFIG)?.reader)?;
    let language = context.language_model(Tying::Either, Language::Of(Family::Qwen2), |text| {
        llama::qwen2_vl_text(text, "Qwen2_5_VL")
    })?;
    Ok(finish(context, "Qwen2_5_VLModel", tower, &language))
}

pub(super) fn qwen3_vl(context: &Context<'_>) -> Built {
    let tower = vision::qwen3_vl(&context.reader.section(VISION_CONFIG)?.reader, "Qwen3VL")?;
    let language = context.language_model(Tying::Outer, Language::Of(Family::Qwen3), |text| {
        llama::qwen3_of(text, "Qwen3VLText")
    })?;
    Ok(finish(context, "Qwen3VLModel", tower, &language))
}

pub(super) fn qwen3_vl_moe(context: &Context<'_>) -> Built {
    let tower = vision::qwen3_vl(&context.reader.section(VISION_CONFIG)?.reader, "Qwen3VLMoe")?;
    let language =
        context.language_model(Tying::Outer, Language::Of(Family::Qwen3Moe), |text| {
            mixture::qwen3_moe_of(text, "Qwen3VLMoeText")
        })?;
    Ok(finish(context, "Qwen3VLMoeModel", tower, &language))
}

pub(super) fn glm4v(context: &Context<'_>) -> Built {
    let tower = vision::glm4v(&context.reader.section(VISION_CONFIG)?.reader)?;
    let language =
        context.language_model(Tying::Either, Language::Of(Family::Glm4), llama::glm4v_text)?;
    Ok(finish(context, "Glm4vModel", tower, &language))
}
