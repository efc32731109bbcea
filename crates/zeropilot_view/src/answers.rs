//! The shapes of all answers, from which the Python classes, the page's types and the reference are generated.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::accuracy::OwnAccuracy;
use crate::advisory::AdvisoryEntry;
use crate::completion::Completions;
use crate::creation::json::{Created, Refusals};
use crate::diagnose::json::LogDiagnosis;
use crate::doctor::Diagnosis;
use crate::explain::json::{ConceptPage, Costs, Differences, ExplainedFile, Index, Key, Names};
use crate::json::Check;
use crate::listing::{CatalogueGpu, CatalogueModel, RuleLine};
use crate::manual::json::RulePage;
use crate::memory::compare::{Comparison, ComparisonWords};
use crate::memory::json::{Memory, MemoryWords};
use crate::page::{
    Catalogue, CatalogueWords, CheckWords, FilmWords, FixWords, SimulationWords, TopicWords,
};
use crate::pasted::{PastedText, PastedWords};
use crate::plan::PlanWords;
use crate::plan::json::Plan;
use crate::resolved::Resolved;
use crate::simulate::json::{Communication, Simulation};

/// What a type is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The answer of a command with `--json`.
    Answer(&'static str),
    /// One item of such an answer, which is an array.
    List(&'static str),
    /// The answer of a function that only Python has.
    Python(&'static str),
    /// One of the answers of `explain`.
    Explanation(&'static str),
    /// Words that a page lays out itself.
    Page,
}

/// All shapes: those that are asked for by name, and every type by its name.
#[derive(Debug)]
pub struct Shapes {
    /// Names of types, with what they are for.
    pub roots: Vec<(String, Role)>,
    /// Types by name, as JSON Schema.
    pub types: Map<String, Value>,
}

impl Shapes {
    /// Of everything that is answered.
    pub fn all() -> Self {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut roots = Vec::new();
        let mut add = |name: (String, Role)| roots.push(name);
        let g = &mut generator;
        add(root::<Check<'_>>(g, Role::List("check")));
        add(root::<Resolved<'_>>(g, Role::Python("resolve")));
        add(root::<Memory<'_>>(g, Role::Answer("memory")));
        add(root::<Comparison>(g, Role::Answer("memory --compare")));
        add(root::<Plan<'_>>(g, Role::Answer("plan")));
        add(root::<Simulation<'_>>(g, Role::Answer("simulate")));
        add(root::<Created<'_>>(g, Role::Answer("new")));
        add(root::<Refusals>(g, Role::Answer("new (rejected)")));
        add(root::<Index>(g, Role::Explanation("index")));
        add(root::<Key<'_>>(g, Role::Explanation("key")));
        add(root::<Names<'_>>(g, Role::Explanation("names")));
        add(root::<ConceptPage<'_>>(g, Role::Explanation("concept")));
        add(root::<ExplainedFile<'_>>(g, Role::Explanation("file")));
        add(root::<Differences<'_>>(g, Role::Explanation("difference")));
        add(root::<Costs<'_>>(g, Role::Explanation("cost")));
        add(root::<RulePage>(g, Role::List("rule")));
        add(root::<CatalogueModel<'_>>(g, Role::List("models")));
        add(root::<CatalogueGpu<'_>>(g, Role::List("gpus")));
        add(root::<RuleLine>(g, Role::List("rules")));
        add(root::<AdvisoryEntry>(g, Role::List("advisories")));
        add(root::<Diagnosis<'_>>(g, Role::Answer("doctor")));
        add(root::<LogDiagnosis<'_>>(g, Role::Answer("diagnose")));
        add(root::<OwnAccuracy<'_>>(g, Role::Answer("accuracy")));
        add(root::<PlanWords>(g, Role::Page));
        add(root::<ComparisonWords>(g, Role::Page));
        add(root::<MemoryWords>(g, Role::Page));
        add(root::<Communication>(g, Role::Page));
        add(root::<FilmWords>(g, Role::Page));
        add(root::<SimulationWords>(g, Role::Page));
        add(root::<CheckWords>(g, Role::Page));
        add(root::<FixWords>(g, Role::Page));
        add(root::<PastedText>(g, Role::Page));
        add(root::<PastedWords>(g, Role::Page));
        add(root::<TopicWords>(g, Role::Page));
        add(root::<Completions>(g, Role::Page));
        add(root::<Catalogue<'_>>(g, Role::Page));
        add(root::<CatalogueWords>(g, Role::Page));
        Self { roots, types: generator.take_definitions(true) }
    }
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator, role: Role) -> (String, Role) {
    let _: Schema = generator.subschema_for::<T>();
    (T::schema_name().into_owned(), role)
}
