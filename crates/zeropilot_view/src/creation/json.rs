//! What was made, for programs. The shape is a contract: keys are added, never changed.

use serde::Serialize;
use serde_json::{Map, Value};
use zeropilot_plan::{Recipe, Refusal};
use zeropilot_text::Language;

use super::refusal;
use crate::json::written;

/// A DeepSpeed config with its explanations.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Created<'a> {
    path: Option<&'a str>,
    tier: Option<&'static str>,
    target: &'static str,
    front_end: &'static str,
    stage: u8,
    precision: &'static str,
    batch: Batch,
    arguments: Map<String, Value>,
    sized: Vec<SizedKey>,
    config: Map<String, Value>,
}

/// Micro-batch size × gradient accumulation steps × ranks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Batch {
    micro_batch: u64,
    gradient_accumulation_steps: u64,
    world_size: Option<u64>,
    global_batch: Option<u64>,
}

/// A key that was sized for the model.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SizedKey {
    key: String,
    elements: u64,
}

impl<'a> From<&super::Created<'a>> for Created<'a> {
    fn from(created: &super::Created<'a>) -> Self {
        let recipe: &Recipe = created.recipe;
        let arguments = recipe.arguments().into_iter();
        Self {
            path: created.path,
            tier: created.tier.map(|tier| tier.name()),
            target: recipe.target.name(),
            front_end: recipe.target.front_end().name(),
            stage: recipe.zero.stage().number(),
            precision: recipe.precision.name(),
            batch: Batch {
                micro_batch: recipe.batch.micro.get(),
                gradient_accumulation_steps: recipe.batch.accumulation.get(),
                world_size: recipe.batch.world.map(u64::from),
                global_batch: recipe.batch.global(),
            },
            arguments: arguments
                .map(|argument| (argument.name.to_owned(), typed(&argument.value)))
                .collect(),
            sized: recipe
                .sized
                .iter()
                .map(|key| SizedKey { key: key.knob.path(), elements: key.elements.0 })
                .collect(),
            config: recipe.config(),
        }
    }
}

/// Numbers and switches as what they are.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

pub(super) fn text(created: &[super::Created<'_>]) -> String {
    let configs: Vec<Created<'_>> = created.iter().map(Created::from).collect();
    let text = match configs.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    // These types have no map with keys that are no text, which is all that could fail.
    text.unwrap_or_default() + "\n"
}

/// Why a config cannot be written.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Refusals {
    errors: Vec<Objection>,
}

/// Something that contradicts the request.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Objection {
    message: String,
    why: String,
    help: String,
}

pub(super) fn refusals(refusals: &[Refusal], language: Language) -> String {
    let said = |refusal: &Refusal| {
        let objection = refusal::objection(refusal);
        let fill = |text: zeropilot_text::Text| text.fill(language, &objection.arguments);
        Objection {
            message: fill(objection.what),
            why: fill(objection.why),
            help: fill(objection.help),
        }
    };
    written(&Refusals { errors: refusals.iter().map(said).collect() }) + "\n"
}
