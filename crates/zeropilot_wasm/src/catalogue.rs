//! What can be chosen.

use serde::Deserialize;
use zeropilot_cluster::catalogue as accelerators;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::catalogue as models;
use zeropilot_plan::Target;
use zeropilot_text::Language;
use zeropilot_view::explain::Concept;
use zeropilot_view::listing::Listed;
use zeropilot_view::memory::legend;
use zeropilot_view::page::{Catalogue, CatalogueWords, ConceptWords, PartWords};

use crate::question::{Answer, Problem};

/// Nothing but the language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Everything {}

pub(crate) fn catalogue(_: Everything, language: Language) -> Result<Answer, Problem> {
    let parts = legend(language).into_iter();
    let concepts = Concept::all().iter();
    let json = Catalogue {
        models: models::entries().iter().map(|model| model.shape(language)).collect(),
        accelerators: accelerators::accelerators().iter().map(|gpu| gpu.shape(language)).collect(),
        engines: EngineVersion::all().rev().map(EngineVersion::name).collect(),
        front_ends: FrontEnd::ALL.map(FrontEnd::name).to_vec(),
        targets: Target::ALL.map(Target::name).to_vec(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let words = CatalogueWords {
        parts: parts.map(|(name, words, colour)| PartWords { name, words, colour }).collect(),
        concepts: concepts
            .map(|concept| ConceptWords { name: &concept.name, title: concept.title(language) })
            .collect(),
    };
    Ok(Answer::new(json, words))
}
