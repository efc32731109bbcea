//! What can be chosen.

use serde::Deserialize;
use serde_json::{Value, json};
use zeropilot_cluster::catalogue as accelerators;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::catalogue as models;
use zeropilot_plan::Target;
use zeropilot_text::Language;
use zeropilot_view::explain::Concept;
use zeropilot_view::listing::{self, Listed};
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
        "models": json_of(models::entries(), language),
        "accelerators": json_of(accelerators::accelerators(), language),
        "engines": EngineVersion::all().rev().map(EngineVersion::name).collect::<Vec<_>>(),
        "front_ends": FrontEnd::ALL.map(FrontEnd::name),
        "targets": Target::ALL.map(Target::name),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let words =
        json!({"parts": parts.collect::<Vec<_>>(), "concepts": concepts.collect::<Vec<_>>()});
    Ok(Answer { json, words })
}

fn json_of<T: Listed>(all: &[T], language: Language) -> Value {
    listing::json(&all.iter().collect::<Vec<_>>(), language)
}
