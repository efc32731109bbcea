//! No key changes the memory or the communication of the real engine unsaid: the prediction follows, or the answer names
//! the key as not modelled. The runs are in `knowledge/effects`; `docs/reference/effects.md` lists what became of each.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

#[path = "../../zeropilot_step/tests/calls/mod.rs"]
mod calls;
#[path = "effects/judge.rs"]
mod judge;
#[path = "effects/page.rs"]
mod page;
#[path = "../../zeropilot/tests/docs/pages.rs"]
#[allow(dead_code, reason = "the other documents are not written here")]
mod pages;
#[path = "../../zeropilot_step/tests/public_path/mod.rs"]
mod public_path;

use std::collections::BTreeSet;

use judge::{Measured, NEAR, Verdict, ask, knowledge, set};
use page::{NotRun, all_keys, page};
use serde_json::{Value, json};
use zeropilot_ask::MemoryProblem;
use zeropilot_config::keys::{self, Unit};
use zeropilot_job::Direction;
use zeropilot_oracle::{Random, home, is_thorough, programs, python, seed};
use zeropilot_text::Language;

#[test]
fn no_key_changes_a_run_unsaid() {
    let measured: Measured = knowledge("effects/measured.json");
    let judged = measured.verdicts();
    let silent = judged.iter().filter_map(|(case, verdict)| match verdict {
        Verdict::Silent(how) => Some(format!("{}: {} = {}: {how}", case.on, case.key, case.value)),
        _ => None,
    });
    let silent: Vec<String> = silent.collect();
    assert!(silent.is_empty(), "{} runs\n{}", silent.len(), silent.join("\n"));
    let not_run = NotRun::all();
    for (path, language) in [
        ("docs/reference/effects.md", Language::English),
        ("docs/zh/reference/effects.md", Language::Chinese),
    ] {
        pages::fresh(path, &page(&measured, &judged, &not_run, language));
    }
}

/// What the engine does not use there, the prediction does not use either.
#[test]
fn a_key_without_what_it_needs_changes_no_prediction() {
    let measured: Measured = knowledge("effects/measured.json");
    for (case, verdict) in measured.judged(&measured.without_needs) {
        let is_idle = matches!(verdict, Verdict::NoEffect);
        assert!(is_idle, "{}: {} = {}: {verdict:?}", case.on, case.key, case.value);
    }
}

/// Keys that answers name although no run of the sweep changes, and what it takes for them to act.
const NEEDS_MORE: [(&str, &str); 6] = [
    ("activation_checkpointing.cpu_checkpointing", "a model that calls `deepspeed.checkpointing`"),
    ("activation_checkpointing.partition_activations", "the same, on tensor-parallel ranks"),
    ("compile.deepcompile", "a script that calls `engine.compile()`"),
    ("sequence_parallel_size", "a model whose attention was replaced by Ulysses'"),
    ("zero_optimization.stage3_module_granularity_threshold", "modules that DeepSpeed can hook"),
    ("zero_optimization.zero_quantized_gradients", "GPUs of several nodes"),
];

#[test]
fn a_run_needs_more_or_less_as_its_note_says() {
    let measured: Measured = knowledge("effects/measured.json");
    for (case, verdict) in measured.verdicts() {
        let Verdict::Named { notes, more } = verdict else { continue };
        let is_as_said = |direction| match direction {
            Direction::Lower => more < NEAR,
            Direction::Higher => more > -NEAR,
            Direction::Either => true,
        };
        println!("{more:+.1}% {}: {} = {}", case.on, case.key, case.value);
        let is_as_said = notes.iter().all(|note| is_as_said(note.direction));
        assert!(is_as_said, "{more:+.1}% {}: {} = {}", case.on, case.key, case.value);
    }
}

#[test]
fn a_key_that_is_named_changes_a_run_or_needs_more() {
    let measured: Measured = knowledge("effects/measured.json");
    let judged = measured.verdicts();
    let not_modelled: Vec<Value> = knowledge("recipes/config_keys.json");
    let names = not_modelled.iter().map(|known| known["key"].as_str().unwrap());
    let idle = names.filter(|name| {
        let runs = judged.iter().filter(|(case, _)| case.key == *name);
        let ran: Vec<&Verdict> = runs
            .map(|(_, verdict)| verdict)
            .filter(|verdict| !matches!(verdict, Verdict::Refused { .. }))
            .collect();
        !ran.is_empty() && ran.iter().all(|verdict| matches!(verdict, Verdict::NoEffect))
    });
    let idle: BTreeSet<&str> = idle.collect();
    assert_eq!(idle, NEEDS_MORE.iter().map(|(key, _)| *key).collect());
}

#[test]
fn a_key_that_cannot_run_is_rejected_named_or_free() {
    let measured: Measured = knowledge("effects/measured.json");
    let judged = measured.verdicts();
    let ran: BTreeSet<&str> = judged
        .iter()
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Refused { is_said: false }))
        .map(|(case, _)| case.key.as_str())
        .collect();
    for (case, _) in judged.iter().filter(|(case, _)| !ran.contains(case.key.as_str())) {
        let is_free = keys::text(&case.key).is_some_and(|text| text.no_cost.is_some());
        assert!(is_free, "{} never ran, and no answer says so", case.key);
    }
}

#[test]
fn every_key_is_run_or_says_why_not() {
    let measured: Measured = knowledge("effects/measured.json");
    let not_run = NotRun::all();
    let run: BTreeSet<&str> = measured.cases.iter().map(|case| case.key.as_str()).collect();
    for key in all_keys() {
        let is_explained = not_run.iter().any(|why| why.names(key));
        assert!(run.contains(key) || is_explained, "{key} is neither run nor explained");
    }
    for why in &not_run {
        assert!(all_keys().any(|key| why.names(key) && !run.contains(key)), "{:?}", why.keys);
    }
}

/// A few runs of the file again, all of them with `ZEROPILOT_THOROUGH=1`.
#[test]
fn the_engine_still_does_what_is_written() {
    let Some(home) = home() else { return };
    let (count, seed) = (if is_thorough() { "0" } else { "5" }, (seed() >> 1).to_string());
    let arguments = ["-m", "measure.effects", "--check", count, &seed];
    let run = python(&home).current_dir(programs()).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    println!("{text}");
}

fn random_config(dice: &mut Random) -> Value {
    let stage = dice.below(4);
    let mut config = json!({
        "train_micro_batch_size_per_gpu": dice.between(1, 4),
        "gradient_accumulation_steps": dice.between(1, 3),
        "zero_optimization": {"stage": stage, "overlap_comm": dice.one_in(2)},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    });
    config[dice.word(&["bf16", "fp16"])] = json!({"enabled": true});
    if stage > 0 && dice.one_in(2) {
        config["zero_optimization"]["offload_optimizer"] = json!({"device": "cpu"});
    }
    config
}

#[test]
fn a_key_that_is_not_modelled_is_named_in_every_answer() {
    let measured: Measured = knowledge("effects/measured.json");
    let models: Vec<Value> = measured.models.values().cloned().collect();
    let not_modelled: Vec<Value> = knowledge("recipes/config_keys.json");
    let mut dice = Random::new(seed());
    for known in &not_modelled {
        let key = known["key"].as_str().unwrap();
        let mut accepted = 0;
        for _ in 0..20 {
            let value = match (known["only"].as_array(), keys::text(key).map(|text| text.unit)) {
                (Some(only), _) => dice.pick(only).clone(),
                (None, Some(Unit::Boolean)) => json!(known["idle"][0] != "true"),
                (None, Some(Unit::Section)) => json!({}),
                _ => json!(2),
            };
            let mut config = random_config(&mut dice);
            set(&mut config, key, value);
            let gpus = dice.word(&["2x80GB", "8x24GB", "2x8x40GB"]);
            match ask(dice.pick(&models), &config, gpus, dice.between(8, 4096)) {
                Ok(job) => {
                    let notes = &job.provenance.not_modelled;
                    assert!(notes.iter().any(|note| note.written.starts_with(key)), "{config}");
                    accepted += 1;
                }
                Err(MemoryProblem::Refused { .. }) => {}
                Err(problem) => panic!("{config}: {problem}"),
            }
        }
        assert!(accepted > 0, "{key} is never accepted");
    }
}

/// The arguments of the HF Trainer: a value of a job, named as not modelled, or without effect on a training step.
#[test]
fn every_argument_of_the_trainer_is_read_named_or_without_effect() {
    let Some(home) = home() else { return };
    let program = "import dataclasses, json, transformers\n\
        print(json.dumps([f.name for f in dataclasses.fields(transformers.TrainingArguments)]))";
    let run = python(&home).args(["-c", program]).output().unwrap();
    let fields: BTreeSet<String> = serde_json::from_slice(&run.stdout).unwrap();
    let recipes: Value = knowledge("recipes/arguments.json");
    let read = recipes["names"].as_object().unwrap().values();
    let without_effect: Vec<Value> = knowledge("effects/arguments.json");
    let named = recipes["not_modelled"].as_array().unwrap();
    let listed = named.iter().chain(&without_effect).map(|entry| &entry["names"]);
    let known: Vec<&str> = read
        .chain(listed)
        .flat_map(|names| names.as_array().unwrap())
        .filter_map(Value::as_str)
        .collect();
    let unknown: Vec<&String> =
        fields.iter().filter(|field| !known.contains(&field.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let gone = without_effect.iter().flat_map(|entry| entry["names"].as_array().unwrap());
    let gone: Vec<&Value> = gone.filter(|name| !fields.contains(name.as_str().unwrap())).collect();
    assert!(gone.is_empty(), "{gone:?}");
}
