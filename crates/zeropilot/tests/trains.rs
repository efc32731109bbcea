//! What `zeropilot new` writes trains: real ranks of the real engine make three optimizer steps with it.
//!
//! Every preset in every precision is written for the bare engine, the HF Trainer and accelerate, and handed to the
//! program in `examples/` that a reader would take. A build trains a dozen of these combinations,
//! `ZEROPILOT_THOROUGH=1` all of them, and then compares `docs/presets.md` (`ZEROPILOT_UPDATE_PRESETS=1` writes it).
//! What a machine cannot run, fp16 on some CPUs and disks without libaio, is judged by the engine's loader.

#[path = "trains/combination.rs"]
mod combination;
#[path = "trains/table.rs"]
mod table;

use combination::{Combination, PRECISIONS, PRESETS, PROGRAMS, Program};
use serde_json::{Value, json};
use table::Outcome;
use zeropilot_oracle::{Oracle, is_thorough};

const STEPS: usize = 3;
/// Ranks that hang are given up after this long; a machine at work on something else is slow.
const SECONDS: u64 = 240;

/// A dozen that has every preset, precision and program in it several times, and the disk.
const EACH_BUILD: [(&str, &str, &str); 15] = [
    ("zero1", "bf16", "deepspeed"),
    ("zero2", "fp16", "deepspeed"),
    ("zero2_offload", "fp32", "deepspeed"),
    ("zero3", "bf16", "deepspeed"),
    ("zero3_offload", "fp16", "deepspeed"),
    ("zero1", "fp32", "hf-trainer"),
    ("zero2_offload", "bf16", "hf-trainer"),
    ("zero3", "fp16", "hf-trainer"),
    ("zero3_offload", "bf16", "hf-trainer"),
    ("zero2", "bf16", "accelerate"),
    ("zero2_offload", "fp16", "accelerate"),
    ("zero3", "fp32", "accelerate"),
    ("zero3_nvme", "bf16", "deepspeed"),
    ("zero3_nvme", "bf16", "hf-trainer"),
    ("zero3_nvme", "bf16", "accelerate"),
];

/// Runs a program on two ranks and gives the steps it says it made.
fn run(oracle: &mut Oracle, script: &str, arguments: &[String], loads_only: bool) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = combination::examples().join(script);
    let question = json!({
        "script": script,
        "arguments": arguments,
        "directory": directory.path(),
        "world_size": 2,
        "seconds": SECONDS,
        "loads_only": loads_only,
    });
    let answer = oracle.answers(vec![question]).remove(0);
    let codes = answer["codes"].as_array().expect("codes");
    assert!(codes.iter().all(|code| *code == 0), "{script:?} {arguments:?}: {answer:#}");
    answer
}

/// The losses a program prints: `step 1 loss 4.1` in our loops, `{'loss': '4.1', ...}` from the Trainer.
fn losses(answer: &Value) -> Vec<f64> {
    let loss = |line: &str| {
        let ours = line.strip_prefix("step ").and_then(|line| line.split(' ').nth(2));
        let theirs = || line.strip_prefix("{'loss': '").and_then(|line| line.split('\'').next());
        ours.or_else(theirs)?.parse::<f64>().ok()
    };
    answer["output"].as_str().unwrap_or_default().lines().filter_map(loss).collect()
}

fn assert_trained(what: &str, answer: &Value) {
    let losses = losses(answer);
    assert_eq!(losses.len(), STEPS, "{what}: {answer:#}");
    assert!(losses.iter().all(|loss| loss.is_finite()), "{what}: {losses:?}");
}

/// Writes the config, trains with it, and says how far it got.
fn try_out(oracle: &mut Oracle, combination: &Combination) -> Outcome {
    let written = combination.write();
    let greeting = oracle.greeting();
    let lacks = |what: &str| greeting[what] == json!(false);
    let loads_only = combination.preset == "zero3_nvme" && lacks("nvme")
        || combination.precision == "fp16" && lacks("fp16");
    let arguments = combination.arguments(&written, STEPS);
    let answer = run(oracle, combination.program.script(), &arguments, loads_only);
    if loads_only {
        let output = answer["output"].as_str().unwrap_or_default();
        assert!(output.contains("config accepted"), "{combination}: {answer:#}");
        return Outcome::Loads;
    }
    assert_trained(&combination.to_string(), &answer);
    Outcome::Trains
}

#[test]
fn what_is_written_trains() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut oracle = Oracle::start(&home, "train_server.py");
    let is_chosen = |combination: &Combination| {
        let name = (combination.preset, combination.precision, combination.program.name());
        is_thorough() || EACH_BUILD.contains(&name)
    };
    let mut outcomes = Vec::new();
    for combination in Combination::all().filter(is_chosen) {
        let outcome = try_out(&mut oracle, &combination);
        outcomes.push((combination, outcome));
    }
    let all = PRESETS.len() * PRECISIONS.len() * PROGRAMS.len();
    assert_eq!(outcomes.len(), if is_thorough() { all } else { EACH_BUILD.len() });
    if is_thorough() {
        table::update(&outcomes);
    }
    if oracle.greeting()["fp16"] == json!(false) {
        leave_out_fp16(&mut outcomes);
    }
    table::assert_claims_hold(&outcomes);
}

/// A machine without fp16 cannot show that anything trains with it.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn leave_out_fp16(outcomes: &mut Vec<(Combination, Outcome)>) {
    eprintln!("skipped: what docs/presets.md says of fp16, which this machine does not have");
    outcomes.retain(|(combination, _)| combination.precision != "fp16");
}

/// The examples that the combinations above do not reach.
#[test]
fn the_other_examples_train() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut oracle = Oracle::start(&home, "train_server.py");
    let stages: &[&'static str] = if is_thorough() { &["zero2", "zero3"] } else { &["zero3"] };
    for &preset in stages {
        for script in ["lora.py", "t5_translation.py"] {
            let combination =
                Combination { preset, precision: "bf16", program: Program::HfTrainer };
            let written = combination.write();
            let answer = run(&mut oracle, script, &combination.arguments(&written, STEPS), false);
            assert_trained(script, &answer);
        }
        let combination = Combination { preset, precision: "bf16", program: Program::DeepSpeed };
        let written = combination.write();
        let arguments = combination.arguments(&written, STEPS);
        assert_trained("distillation.py", &run(&mut oracle, "distillation.py", &arguments, false));
    }
}

/// The line a reader types, with the launcher itself.
#[test]
fn an_example_starts_under_torchrun() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let combination =
        Combination { preset: "zero2", precision: "bf16", program: Program::DeepSpeed };
    let written = combination.write();
    let output = std::process::Command::new(home.join("engine/bin/torchrun"))
        .args(["--standalone", "--nproc-per-node", "2"])
        .arg(combination::examples().join("engine_loop.py"))
        .args(combination.arguments(&written, STEPS))
        .envs(zeropilot_oracle::surroundings(&home))
        .output()
        .expect("torchrun starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_trained("torchrun", &json!({"output": stdout}));
}
