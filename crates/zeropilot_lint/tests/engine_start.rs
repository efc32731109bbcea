//! What rules say about starting and training, asked of the real engine.
//!
//! Loading is compared elsewhere. Here the engine is built with every example of every rule that
//! looks for itself, and trains a few steps: an error ends it, a warning or a note does not, a good
//! example runs, and a safe fix of something idle changes nothing a person could notice.

use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_lint::{Example, RULES, Report, Rule, Safety, Severity, apply};
use zeropilot_oracle::{Oracle, part_of};

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
    ("F20", "SuperOffload needs a GPU"),
    ("F21", "SuperOffload needs a GPU"),
    ("P13", "quantized weights need a GPU"),
    ("X02", "quantized weights need a GPU"),
    ("X05", "quantized gradients need a GPU"),
    ("X07", "quantized gradients need a GPU"),
    ("X01", "six ranks and more do not fit a small machine"),
    ("X06", "eight ranks and more do not fit a small machine"),
    ("K32", "groups of tensor parallelism need their ranks, and one is started"),
    ("K34", "a batch of ranks that share a sequence needs its ranks, and one is started"),
    ("B16", "groups of tensor parallelism need their ranks, and one is started"),
    ("O04", "the script of the test brings no optimizer where the config has a section"),
    ("A02", "a placeholder that bare DeepSpeed drops can be anything"),
    ("V06", "one example is read by accelerate"),
];

fn can_be_shown(rule: &Rule, example: &Example) -> bool {
    rule.looks_at_configs()
        && example.front_end == FrontEnd::DeepSpeed
        && example.version.is_none()
        // A converted checkpoint is not made here.
        && !(example.script)().checkpoint.is_some_and(|checkpoint| checkpoint.is_universal)
        // A mesh needs its ranks, and one is started.
        && !example.config.contains("data_parallel_size")
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

/// With what the script of an example brings: an optimizer, a checkpoint of another run.
fn whole_question(example: &Example) -> Value {
    let script = (example.script)();
    let mut question = question(example.config);
    question["client_optimizer"] = json!(script.client_optimizer);
    if let Some(checkpoint) = script.checkpoint {
        let stage = match (checkpoint.is_stage_3, checkpoint.shards) {
            (true, _) => 3,
            (false, 0) => 0,
            (false, _) => 2,
        };
        let writer = json!({"train_batch_size": 8, "zero_optimization": {"stage": stage},
            "bf16": {"enabled": checkpoint.is_bf16 == Some(true)}});
        let ranks = checkpoint.shards.max(1);
        question["world_size"] = json!(example.world_size.unwrap_or(ranks));
        question["resume"] = json!({"text": writer.to_string(), "world_size": ranks});
    }
    question
}

/// CPUs without fp16 cannot show how the engine judges it.
fn is_fp16_missing(answer: &Value) -> bool {
    let message = answer["message"].as_str().unwrap_or_default();
    message.contains("Type fp16 is not supported on your device")
}

#[test]
fn errors_end_the_run_and_everything_else_does_not() {
    let Some(home) = zeropilot_oracle::home() else { return };
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
    // Starting the engine takes seconds.
    let cases = part_of(cases, 16);
    let questions = cases.iter().map(|(_, example, _)| whole_question(example)).collect();
    let answers = Oracle::start(&home, "start_server.py").answers(questions);
    let mut wrong = Vec::new();
    for ((code, example, expected), answer) in cases.iter().zip(answers) {
        if is_fp16_missing(&answer) {
            eprintln!("skipped: {code}, since this machine has no fp16");
        } else if answer["runs"] != Value::Bool(*expected) {
            wrong.push(format!("{code}: {} → {}", example.config, answer["message"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_safe_fix_of_what_runs_changes_nothing() {
    let Some(home) = zeropilot_oracle::home() else { return };
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
    let pairs = part_of(pairs, 16);
    let questions =
        pairs.iter().flat_map(|(_, before, after)| [question(before), question(after)]).collect();
    let answers = Oracle::start(&home, "start_server.py").answers(questions);
    let probes: Vec<&Value> = answers.iter().map(|answer| &answer["probe"]).collect();
    for ((code, before, after), probe) in pairs.iter().zip(probes.chunks(2)) {
        assert!(probe[0].is_object(), "{code}: {before} does not run");
        assert_eq!(probe[0], probe[1], "{code}: {before} and {after} differ");
    }
}

#[test]
fn what_a_script_brings_ends_the_run_where_an_error_is_told_and_nowhere_else() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let brings = |example: &&Example| {
        let script = (example.script)();
        script.client_optimizer.is_some() || script.checkpoint.is_some()
    };
    let mut cases = Vec::new();
    for rule in RULES {
        let all = rule.examples.iter().chain(rule.good).filter(brings);
        cases.extend(all.filter(|example| can_be_shown(rule, example)).map(|one| (rule.code, one)));
    }
    assert!(cases.len() >= 10, "only {}", cases.len());
    let cases = part_of(cases, 5);
    let questions = cases.iter().map(|(_, example)| whole_question(example)).collect();
    let answers = Oracle::start(&home, "start_server.py").answers(questions);
    for ((code, example), answer) in cases.iter().zip(answers) {
        if is_fp16_missing(&answer) {
            eprintln!("skipped: {code}, since this machine has no fp16");
            continue;
        }
        let is_fine = worst(&example.judge()) != Some(Severity::Error);
        let (config, message) = (example.config, &answer["message"]);
        assert_eq!(answer["runs"], Value::Bool(is_fine), "{code}: {config} → {message}");
    }
}

/// The optimizer in the code wins: without the section of the config everything is the same.
#[test]
fn an_optimizer_section_beside_one_in_the_code_changes_nothing() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let with = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "optimizer": {"type": "AdamW", "params": {"lr": 0.5}}}"#;
    let without = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1}}"#;
    let questions = [with, without].map(
        |text| json!({"text": text, "world_size": 1, "client_optimizer": "torch.optim.AdamW"}),
    );
    let answers = Oracle::start(&home, "start_server.py").answers(questions.to_vec());
    let probes: Vec<&Value> = answers.iter().map(|answer| &answer["probe"]).collect();
    assert!(probes[0].is_object(), "{}", answers[0]);
    assert_eq!(probes[0], probes[1]);
}
