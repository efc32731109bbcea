//! What rules say about starting and training, asked of the real engine.
//!
//! Loading is compared elsewhere. Here the engine is built with every example of every rule that
//! looks for itself, and trains a few steps: an error ends it, a warning or a note does not, a good
//! example runs, and a safe fix of something idle changes nothing a person could notice.

#[path = "../../zeropilot_config/tests/oracle/mod.rs"]
mod oracle;

use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_lint::{Example, RULES, Report, Rule, Safety, Severity, apply};

/// What this machine cannot show, and why.
const NOT_HERE: &[(&str, &str)] = &[
    ("O25", "the kernels of Muon are compiled for minutes"),
    ("O24", "Lamb exists only on GPUs"),
    ("F02", "NVMe needs libaio"),
    ("F03", "the good examples use NVMe, which needs libaio"),
    ("F15", "without a GPU all parameters are on the CPU already"),
    ("F16", "the good examples use NVMe, which needs libaio"),
    ("F17", "the good examples use NVMe, which needs libaio"),
    ("F18", "the good example needs a GPU"),
    ("P13", "quantized weights need a GPU"),
    ("X02", "quantized weights need a GPU"),
    ("X05", "quantized gradients need a GPU"),
    ("X01", "six ranks and more do not fit a small machine"),
    ("X06", "eight ranks and more do not fit a small machine"),
    ("O04", "the script of the test brings no optimizer where the config has a section"),
    ("A02", "a placeholder that bare DeepSpeed drops can be anything"),
    ("V06", "one example is read by accelerate"),
];

fn can_be_shown(rule: &Rule, example: &Example) -> bool {
    rule.check.is_some()
        && example.front_end == FrontEnd::DeepSpeed
        && example.version.is_none()
        // Batch sizes may speak for more ranks than the one that is started.
        && !names_its_ranks(example)
        && !NOT_HERE.iter().any(|(code, _)| *code == rule.code)
}

/// Whether all three batch sizes are written, which fit one number of ranks and no other.
fn names_its_ranks(example: &Example) -> bool {
    [
        "\"train_batch_size\"",
        "\"train_micro_batch_size_per_gpu\"",
        "\"gradient_accumulation_steps\"",
    ]
    .iter()
    .all(|key| example.config.contains(key))
}

fn worst(report: &Report) -> Option<Severity> {
    report.diagnostics.iter().map(|found| found.severity).min()
}

fn question(config: &str) -> Value {
    json!({ "text": config, "world_size": 1 })
}

/// Starting the engine takes seconds: a build asks about a sixteenth of all, `ZEROPILOT_THOROUGH=1` about all.
fn part_of<T>(all: Vec<T>) -> Vec<T> {
    const PARTS: usize = 16;
    if oracle::setting::<u8>("ZEROPILOT_THOROUGH") == Some(1) {
        return all;
    }
    all.into_iter().step_by(PARTS).collect()
}

#[test]
fn errors_end_the_run_and_everything_else_does_not() {
    let Some(home) = oracle::home() else { return };
    let mut cases = Vec::new();
    for rule in RULES {
        for example in rule.examples.iter().filter(|example| can_be_shown(rule, example)) {
            cases.push((rule.code, example, worst(&example.judge()) != Some(Severity::Error)));
        }
        for example in rule.good.iter().filter(|example| can_be_shown(rule, example)) {
            cases.push((rule.code, example, true));
        }
    }
    assert!(cases.len() > 100, "only {}", cases.len());
    let cases = part_of(cases);
    let questions = cases.iter().map(|(_, example, _)| question(example.config)).collect();
    let answers = oracle::Oracle::start(&home, "start_server.py").ask(questions);
    let mut wrong = Vec::new();
    for ((code, example, expected), answer) in cases.iter().zip(answers) {
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        if answer["runs"] != Value::Bool(*expected) {
            wrong.push(format!("{code}: {} → {}", example.config, answer["message"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_safe_fix_of_what_runs_changes_nothing() {
    let Some(home) = oracle::home() else { return };
    let mut pairs = Vec::new();
    for rule in RULES {
        for example in rule.examples.iter().filter(|example| can_be_shown(rule, example)) {
            let report = example.judge();
            let fixes = report.diagnostics.iter().filter_map(|found| found.fix.as_ref());
            for fix in fixes.filter(|fix| fix.safety == Safety::Safe) {
                if worst(&report) != Some(Severity::Error) {
                    pairs.push((rule.code, example.config, apply(example.config, &fix.edits)));
                }
            }
        }
    }
    assert!(pairs.len() >= 5, "only {}", pairs.len());
    let pairs = part_of(pairs);
    let questions =
        pairs.iter().flat_map(|(_, before, after)| [question(before), question(after)]).collect();
    let answers = oracle::Oracle::start(&home, "start_server.py").ask(questions);
    let probes: Vec<Value> = answers
        .iter()
        .map(|answer| serde_json::from_str::<Value>(answer).expect("JSON")["probe"].clone())
        .collect();
    for ((code, before, after), probe) in pairs.iter().zip(probes.chunks(2)) {
        assert!(probe[0].is_object(), "{code}: {before} does not run");
        assert_eq!(probe[0], probe[1], "{code}: {before} and {after} differ");
    }
}
