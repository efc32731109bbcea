//! What was made, for programs. The shape is a contract: keys are added, never changed.

use serde::Serialize;
use serde_json::{Map, Value};
use zeropilot_plan::{Recipe, Refusal};
use zeropilot_text::Language;

use super::{Created, refusal};

#[derive(Serialize)]
struct Config<'a> {
    path: Option<&'a str>,
    tier: Option<&'static str>,
    r#for: &'static str,
    front_end: &'static str,
    stage: u8,
    precision: &'static str,
    batch: Batch,
    arguments: Map<String, Value>,
    sized: Vec<Sized>,
    config: Map<String, Value>,
}

#[derive(Serialize)]
struct Batch {
    micro: u64,
    accumulation: u64,
    world_size: Option<u64>,
    global: Option<u64>,
}

#[derive(Serialize)]
struct Sized {
    key: String,
    elements: u64,
}

impl<'a> From<&Created<'a>> for Config<'a> {
    fn from(created: &Created<'a>) -> Self {
        let recipe: &Recipe = created.recipe;
        let arguments = recipe.arguments().into_iter();
        Self {
            path: created.path,
            tier: created.tier.map(|tier| tier.name()),
            r#for: recipe.target.name(),
            front_end: recipe.target.front_end().name(),
            stage: recipe.zero.stage().number(),
            precision: recipe.precision.name(),
            batch: Batch {
                micro: recipe.batch.micro.get(),
                accumulation: recipe.batch.accumulation.get(),
                world_size: recipe.batch.world.map(u64::from),
                global: recipe.batch.global(),
            },
            arguments: arguments
                .map(|argument| (argument.name.to_owned(), typed(&argument.value)))
                .collect(),
            sized: recipe
                .sized
                .iter()
                .map(|key| Sized { key: key.knob.path(), elements: key.elements.0 })
                .collect(),
            config: recipe.config(),
        }
    }
}

/// Numbers and switches as what they are.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

pub(super) fn text(created: &[Created<'_>]) -> String {
    let configs: Vec<Config<'_>> = created.iter().map(Config::from).collect();
    let text = match configs.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    // These types have no map with keys that are no text, which is all that could fail.
    text.unwrap_or_default() + "\n"
}

pub(super) fn refusals(refusals: &[Refusal], language: Language) -> String {
    let said: Vec<Value> = refusals
        .iter()
        .map(|refusal| {
            let objection = refusal::objection(refusal);
            let fill = |text: zeropilot_text::Text| text.fill(language, &objection.arguments);
            serde_json::json!({
                "message": fill(objection.what),
                "why": fill(objection.why),
                "help": fill(objection.help),
            })
        })
        .collect();
    serde_json::json!({ "errors": said }).to_string() + "\n"
}
