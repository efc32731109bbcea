//! A measured case asked as a user would ask: from `config.json`, the DeepSpeed config and the recipe.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use std::collections::BTreeMap;

use serde_json::Value;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::lora::Lora;
use zeropilot_model::{Model, PartKind, Weights};
use zeropilot_step::lower::{Conditions, Fidelity, Images, Lowered, Method, Recipe, follow};
use zeropilot_step::memory::{Counting, Prediction};
use zeropilot_step::program::StepProgram;
use zeropilot_step::shape::Grid;
use zeropilot_step::tape::{Accounting, AttentionForm, Options};
use zeropilot_step::zero::{Backend, BaseOptimizer, Loading, Place, Rest, casts_adapters};
use zeropilot_units::ElementSize;

/// The engine that was measured; the newest if the case does not say.
fn engine(case: &Value) -> EngineVersion {
    let name = case["deepspeed"].as_str();
    name.map_or(EngineVersion::NEWEST, |name| name.parse().unwrap())
}

/// The images of a case, in patches.
fn images(case: &Value) -> Option<Images> {
    let grid = |grid: &Value| {
        let side = |index: usize| grid[index].as_u64().unwrap();
        Grid { frames: side(0), rows: side(1), columns: side(2) }
    };
    Some(Images::Patches(case["images"].as_array()?.iter().map(grid).collect()))
}

fn recipe(case: &Value) -> Recipe {
    let flag = |key: &str| case[key].as_bool().unwrap_or(false);
    let list = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect()
    };
    let lora = &case["lora"];
    let method = if lora.is_object() {
        let names = list(&lora["targets"]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let adapters = Lora::new(lora["r"].as_u64().unwrap());
        let adapters =
            if names.is_empty() { adapters.on_all_linear() } else { adapters.on(&names) };
        Method::Lora(Lora {
            dropout: lora["dropout"].as_f64().unwrap_or(0.0) > 0.0,
            modules_to_save: list(&lora["save"]),
            without: PartKind::ALL
                .into_iter()
                .filter(|part| list(&lora["without"]).iter().any(|name| name == part.name()))
                .collect(),
            ..adapters
        })
    } else {
        Method::Full
    };
    let built = match case["dtype"].as_str() {
        Some("bfloat16" | "float16") => ElementSize::Two,
        _ => ElementSize::Four,
    };
    let is_eager = case["attention"] == "eager";
    let is_own = matches!(case["family"].as_str(), Some("gemma2" | "bloom"));
    Recipe {
        method,
        target: case["target_seq"].as_u64(),
        images: images(case),
        checkpointing: flag("checkpointing"),
        input_gradients: Some(flag("input_require_grads")),
        norms_apart: flag("two_groups"),
        attention: if is_eager && !is_own { AttentionForm::Eager } else { AttentionForm::AsModel },
        loading: Some(if flag("zero_init") { Loading::Partitioned } else { Loading::Whole(built) }),
        optimizer: match case["base_optimizer"].as_str() {
            Some("AdamW" | "Adam") => BaseOptimizer::TorchAdam,
            _ => BaseOptimizer::FusedAdam,
        },
        adapters_in_fp32: lora["autocast"].as_bool().unwrap_or(true)
            && !casts_adapters(engine(case)),
        ..Recipe::full(case["seq"].as_u64().unwrap())
    }
}

/// The model of a case, with what is not trained marked.
fn model(case: &Value) -> Model {
    let model = Model::from_config_with(&case["hf_config"].to_string(), Weights::Fresh).unwrap();
    let words = |key: &str| -> Option<Vec<&str>> {
        Some(case[key].as_array()?.iter().filter_map(Value::as_str).collect())
    };
    let model = words("trainable_only").map_or(model.clone(), |names| model.train_only(&names));
    words("frozen").map_or(model.clone(), |names| model.freeze(&names))
}

/// The step of the first rank of a case, in order.
pub fn program(case: &Value) -> StepProgram {
    let model = model(case);
    let document_text = case["config"].to_string();
    let document = parse_json(&document_text).unwrap();
    let world = case["world"].as_u64().unwrap();
    let circumstances = Circumstances::new(engine(case), world as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let zero = resolved.zero();
    let micro = resolved.batch().unwrap().micro;
    let element = resolved.precision().element_size();
    let conditions = Conditions::of(&zero, element, micro, Options::default());
    let mut recipe = recipe(case);
    recipe.tensor = follow(&model, &recipe, &resolved).unwrap();
    let lowered = Lowered::new(&model, &recipe, &conditions).unwrap();
    let rank = lowered.rank(&resolved, &zero, world, 0);
    StepProgram::of(&lowered, &rank, resolved.clips_gradients())
}

/// The prediction for a rank of a case.
pub fn predict(case: &Value, rank: u64) -> (Prediction, Fidelity) {
    let model = model(case);
    let document_text = case["config"].to_string();
    let document = parse_json(&document_text).unwrap();
    let world = case["world"].as_u64().unwrap();
    let circumstances = Circumstances::new(engine(case), world as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let zero = resolved.zero();
    let options = Options { accounting: Accounting::Recorded, ..Options::default() };
    let micro = resolved.batch().unwrap().micro;
    let element = resolved.precision().element_size();
    let conditions = Conditions::of(&zero, element, micro, options);
    let mut recipe = recipe(case);
    recipe.tensor = follow(&model, &recipe, &resolved).unwrap();
    let lowered = Lowered::new(&model, &recipe, &conditions).unwrap();
    let rank = lowered.rank(&resolved, &zero, world, rank);
    let counting = Counting { backend: Backend::Gloo, tensors_only: true };
    (Prediction::new(&lowered, &rank, counting), lowered.fidelity())
}

fn sum(state: &Value) -> i64 {
    state.as_object().map_or(0, |parts| parts.values().filter_map(Value::as_i64).sum())
}

/// Differences between the prediction and what a rank measured.
pub fn differences(case: &Value, measured: &Value) -> BTreeMap<String, (i64, i64)> {
    between(&predict(case, measured["rank"].as_u64().unwrap()).0, measured)
}

/// By what is compared: our bytes less the engine's, and the engine's.
pub fn between(ours: &Prediction, measured: &Value) -> BTreeMap<String, (i64, i64)> {
    let mut differences = BTreeMap::new();
    let mut compare = |what: &str, ours: u64, theirs: i64| {
        differences.insert(what.to_owned(), (ours as i64 - theirs, theirs));
    };
    let states = [
        ("init", "after_init", &ours.states.after_init),
        ("after_backward", "after_backward", &ours.states.after_backward),
        ("after_step", "after_step", &ours.states.after_step),
    ];
    for (key, name, rest) in states {
        compare(&format!("rest {name}"), rest.total().0, sum(&measured[key]));
        for place in [Place::Pinned, Place::Host] {
            let placed = sum(&measured["placed"][key][place.name()]);
            compare(&format!("rest {name} {}", place.name()), at(rest, place), placed);
        }
    }
    let last = ours.micro_steps.last().unwrap();
    let misc = |key: &str| measured[key].as_i64().unwrap_or(0);
    let peak = |phase: &str| measured["peak"][phase].as_i64().unwrap();
    compare("peak init", ours.init.total.0, peak("init") - misc("misc_init"));
    compare("peak forward", last.forward.total.0, peak("forward") - misc("misc"));
    compare("peak backward", last.backward.total.0, peak("backward") - misc("misc"));
    compare("peak step", ours.step.total.0, peak("step") - misc("misc"));
    differences
}

fn at(rest: &Rest, place: Place) -> u64 {
    rest.at(place).0
}

/// How near predictions are to measurements, by what is compared.
#[derive(Default)]
pub struct Table(BTreeMap<String, Row>);

#[derive(Default)]
struct Row {
    near: usize,
    count: usize,
    worst: f64,
    misses: Vec<String>,
}

impl Table {
    pub fn add(&mut self, name: &str, differences: BTreeMap<String, (i64, i64)>) {
        for (what, (error, theirs)) in differences {
            let limit = if what.starts_with("rest") { 0 } else { 2048 };
            let row = self.0.entry(what).or_default();
            row.count += 1;
            let percent = error as f64 / theirs.max(1) as f64 * 100.0;
            if error.abs() <= limit {
                row.near += 1;
            } else {
                row.misses.push(format!("{percent:+.2} % ({error:+}) {name}"));
                row.worst = row.worst.max(percent.abs());
            }
        }
    }

    pub fn print(&self) {
        for (what, row) in &self.0 {
            println!("{what:28} {:4} of {:4} worst {:.2} %", row.near, row.count, row.worst);
        }
        for (what, row) in &self.0 {
            row.misses.iter().for_each(|miss| println!("  {what}: {miss}"));
        }
    }

    /// The share of near predictions, and the largest error in percent.
    pub fn of(&self, what: &str) -> (f64, f64) {
        let row = &self.0[what];
        (row.near as f64 / row.count as f64, row.worst)
    }

    /// The same over everything that is compared and chosen.
    pub fn all(&self, is_chosen: impl Fn(&str) -> bool) -> (f64, f64) {
        let rows = || self.0.iter().filter(|(what, _)| is_chosen(what)).map(|(_, row)| row);
        let near: usize = rows().map(|row| row.near).sum();
        let count: usize = rows().map(|row| row.count).sum();
        println!("{near} of {count}");
        (near as f64 / count as f64, rows().map(|row| row.worst).fold(0.0, f64::max))
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}
