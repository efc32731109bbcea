//! What can be chosen.

use serde::Deserialize;
use serde_json::{Value, json};
use zeropilot_cluster::{Cluster, Gpus, catalogue as accelerators};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::Language;
use zeropilot_model::catalogue as models;
use zeropilot_plan::Target;
use zeropilot_view::explain::Concept;
use zeropilot_view::memory::legend;

use crate::question::{Answer, Problem};

/// Nothing but the language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Everything {}

pub(crate) fn catalogue(_: Everything, language: Language) -> Result<Answer, Problem> {
    let parts = legend(language).into_iter();
    let parts =
        parts.map(|(name, words, colour)| json!({"name": name, "words": words, "colour": colour}));
    let concepts = Concept::all().iter();
    let concepts =
        concepts.map(|concept| json!({"name": concept.name, "title": concept.title(language)}));
    let json = json!({
        "models": models::entries().iter().map(model).collect::<Vec<_>>(),
        "accelerators": accelerators::accelerators().iter().map(accelerator).collect::<Vec<_>>(),
        "engines": EngineVersion::all().rev().map(EngineVersion::name).collect::<Vec<_>>(),
        "front_ends": FrontEnd::ALL.map(FrontEnd::name),
        "targets": Target::ALL.map(Target::name),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let words =
        json!({"parts": parts.collect::<Vec<_>>(), "concepts": concepts.collect::<Vec<_>>()});
    Ok(Answer { json, words })
}

fn model(entry: &models::Entry) -> Value {
    json!({
        "id": entry.id,
        "aliases": entry.aliases,
        "parameters": entry.params_exact,
        "active": entry.params_active_exact,
        "longest": entry.keys.get("max_position_embeddings"),
    })
}

fn accelerator(card: &zeropilot_cluster::Accelerator) -> Value {
    let gpus: Option<Gpus> = format!("1x{}", card.slug()).parse().ok();
    let capacity = gpus.and_then(|gpus| Cluster::new(gpus).capacity());
    json!({
        "name": card.name,
        "slug": card.slug(),
        "aliases": card.aliases,
        "capacity": capacity.map(|capacity| capacity.bytes.expected().0),
        "gpus_per_node": card.typical_gpus_per_node,
        "bf16": card.bf16_supported,
    })
}
