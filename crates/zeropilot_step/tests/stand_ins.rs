//! What a stand-in keeps, compared with the real model it stands in for: `knowledge/models/stand_ins.json`.
//!
//! The file is written by `ZEROPILOT_UPDATE_STAND_INS=1 cargo test -p zeropilot_step --test stand_ins`, which runs every
//! type of model that transformers can build small; without it a part of them is compared with the file.

#![allow(clippy::print_stdout, reason = "a test may tell")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use zeropilot_config::settings::LeafModules;
use zeropilot_model::{Family, LiveParameter, Model};
use zeropilot_oracle::{Oracle, home, is_thorough, part_of, programs, setting};
use zeropilot_step::family::micro_step;
use zeropilot_step::lower::{Conditions, Lowered, Recipe};
use zeropilot_step::model::ParameterId;
use zeropilot_step::tape::{Accounting, Listener, Mark, Options, Storage, StorageId};
use zeropilot_units::ElementSize;

const SEQUENCES: u64 = 2;
const LENGTH: u64 = 128;

/// Live bytes without gradients that are complete.
#[derive(Default)]
struct Activations {
    live: u64,
    peak: u64,
    saved: u64,
    gone: BTreeSet<StorageId>,
}

impl Listener for Activations {
    fn allocate(&mut self, _id: StorageId, storage: Storage) {
        self.live += storage.bytes;
        self.peak = self.peak.max(self.live);
    }

    fn free(&mut self, id: StorageId, storage: Storage) {
        if !self.gone.remove(&id) {
            self.live -= storage.bytes;
        }
    }

    fn gradient(&mut self, _parameter: ParameterId, id: StorageId, storage: Storage) {
        if self.gone.insert(id) {
            self.live -= storage.bytes;
        }
    }

    fn mark(&mut self, mark: Mark) {
        if mark == Mark::Saved {
            self.saved = self.live;
        }
    }
}

/// Saved and highest bytes of the program that a model is lowered to.
fn activations(model: &Model, checkpointing: bool) -> Option<[u64; 2]> {
    let options = Options { accounting: Accounting::Recorded, ..Options::default() };
    let conditions = Conditions {
        micro_batch: SEQUENCES,
        element: ElementSize::Two,
        options,
        leaf_modules: LeafModules::default(),
    };
    let recipe = Recipe { checkpointing, ..Recipe::full(LENGTH) };
    let lowered = Lowered::new(model, &recipe, &conditions).ok()?;
    let mut found = Activations::default();
    micro_step(lowered.program(), options).replay(&mut found);
    Some([found.saved, found.peak])
}

/// The row of a type: its class, what is lent to it, and the errors without and with checkpointing.
fn row(model_type: &str, off: &Value, on: &Value) -> Option<Value> {
    let mut config = off["config"].clone();
    // A whole whose language model is known needs no likeness of it.
    let inner = config["text_config"]["model_type"].as_str();
    if inner.and_then(Family::from_model_type).is_some() {
        return None;
    }
    // As if nobody knew it.
    config["model_type"] = json!(format!("{model_type}_of_its_own"));
    let parameter = |row: &Value| LiveParameter {
        name: row[0].as_str().unwrap_or_default().to_owned(),
        shape: row[1].as_array().into_iter().flatten().filter_map(Value::as_u64).collect(),
        dtype: None,
        trainable: true,
    };
    let parameters: Vec<LiveParameter> =
        off["parameters"].as_array()?.iter().map(parameter).collect();
    let model = Model::from_config(&config.to_string()).ok()?;
    let named = Model::from_live(Some(&config.to_string()), &parameters).ok()?;
    let mut row = json!({"model_type": model_type});
    for (basis, model) in [("config", &model), ("names", &named)] {
        let class = model.stand_in()?;
        let family = model.family().map(|family| family.model_type());
        row[basis] = json!({"class": class.name(), "lent": family});
        for (key, real) in [("off", off), ("on", on)] {
            let [saved, peak] = activations(model, key == "on")?;
            let error = |ours: u64, real: &Value| {
                let off = ours as f64 / real.as_f64().unwrap_or(1.0) - 1.0;
                (off * 1000.0).round() / 1000.0
            };
            row[basis][key] = json!([error(saved, &real["saved"]), error(peak, &real["peak"])]);
        }
    }
    Some(row)
}

fn recorded(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the file");
    let mut recorded: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(recorded["models"].take()).expect("models")
}

/// Without fused kernels a state space takes minutes on a CPU.
fn quick(mut types: Vec<String>, recorded: &[Value]) -> Vec<String> {
    let is_slow = |model_type: &String| {
        let row = recorded.iter().find(|row| row["model_type"] == **model_type);
        row.is_some_and(|row| row["config"]["class"] == "state_space")
    };
    types.retain(|model_type| is_thorough() || !is_slow(model_type));
    types
}

#[test]
fn stand_ins_are_as_far_off_as_the_file_says() {
    let Some(home) = home() else { return };
    let path = programs().join("../knowledge/models/stand_ins.json");
    let update = setting::<u8>("ZEROPILOT_UPDATE_STAND_INS") == Some(1);
    let mut oracle = Oracle::start(&home, "activation_server.py");
    let listed = oracle.answers(vec![json!({"types": true})]);
    let types: Vec<String> = serde_json::from_value(listed[0]["types"].clone()).expect("types");
    let types = if update { types } else { part_of(quick(types, &recorded(&path)), 24) };
    let request = |model_type: &String| {
        [false, true].map(|on| json!({"small": model_type, "checkpointing": on}))
    };
    let answers = oracle.answers(types.iter().flat_map(request).collect());
    let mut rows = Vec::new();
    for (model_type, answers) in types.iter().zip(answers.chunks(2)) {
        match answers.iter().find(|answer| answer.get("error").is_some()) {
            Some(failed) => println!("{model_type}: {} {}", failed["error"], failed["message"]),
            None => rows.extend(row(model_type, &answers[0], &answers[1])),
        }
    }
    if update {
        let version = &oracle.greeting()["transformers"];
        let source = format!(
            "transformers {}, every type with a causal language model that builds small, width 192, 4 layers, \
             2 sequences of 128 tokens, bfloat16 on the CPU: relative errors of bytes saved for backward and at the highest \
             point, gradients aside; written by crates/zeropilot_step/tests/stand_ins.rs",
            version.as_str().unwrap_or_default()
        );
        let mut text = format!("{{\n\"source\": {},\n\"models\": [\n", json!(source));
        for (number, row) in rows.iter().enumerate() {
            let comma = if number + 1 == rows.len() { "" } else { "," };
            let _ = writeln!(text, "{row}{comma}");
        }
        text.push_str("]\n}\n");
        std::fs::write(&path, text).expect("the file is written");
        return;
    }
    let recorded = recorded(&path);
    for row in &rows {
        let known = recorded.iter().find(|known| known["model_type"] == row["model_type"]);
        assert_eq!(Some(row), known, "run again with ZEROPILOT_UPDATE_STAND_INS=1");
    }
}
