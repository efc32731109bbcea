//! The user's own runs beside their predictions. The records on GPUs are made up: they test what follows from numbers, and
//! no GPU was there to measure any.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

/// A record of a run whose memory and time were this many times what was predicted.
fn record(home: &Path, number: u64, device: &str, (memory, step): (f64, f64)) {
    let directory = home.join(format!("20260101-{number:06}-1"));
    std::fs::create_dir_all(&directory).expect("a directory");
    let predicted = 40 * GIB;
    let accuracy = json!({
        "shape": 1,
        "id": format!("20260101-{number:06}-1"),
        "zeropilot": env!("CARGO_PKG_VERSION"),
        "job": {
            "model": "Qwen/Qwen3-8B", "parameters": 8_190_735_360_u64, "device": device, "gpus": 8, "nodes": 1,
            "zero_stage": 3, "precision": "bf16", "method": "full", "micro_batch": 1, "grad_accum": number,
            "seq_len": 4096, "grad_ckpt": true,
        },
        "model_from": "option",
        "predicted": {"device": predicted, "step_seconds": 10.0},
        "measured": {"device": (predicted as f64 * memory) as u64, "step_seconds": 10.0 * step},
        "steps": 30,
    });
    std::fs::write(directory.join("accuracy.json"), accuracy.to_string()).expect("a file");
}

fn zeropilot(home: &Path, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
    command.args(arguments).env("ZEROPILOT_RUNS", home).env("XDG_CONFIG_HOME", home);
    command.env("LANG", "C").env_remove("LC_ALL");
    let output = command.output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

fn json_of(home: &Path, arguments: &[&str]) -> Value {
    let (out, err) = zeropilot(home, arguments);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

const MEMORY: [&str; 8] =
    ["memory", "--model", "qwen3-8b", "--gpus", "8xA100-SXM4-80GB", "--seq-len", "2048", "--json"];
const SIMULATE: [&str; 8] = [
    "simulate",
    "--model",
    "qwen3-8b",
    "--gpus",
    "8xA100-SXM4-80GB",
    "--seq-len",
    "2048",
    "--json",
];

#[test]
fn from_nine_jobs_on_bounds_rest_on_own_runs_and_before_they_only_widen() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let published = json_of(home, &MEMORY);
    assert_eq!(published["device"]["calibration"]["own_runs"], Value::Null);
    // One run far above what is published: the upper bound follows it, the lower one stays.
    record(home, 1, "A100 SXM4 80GB", (1.5, 1.5));
    let few = json_of(home, &MEMORY);
    assert_eq!(few["device"]["calibration"]["own_runs"], json!({"runs": 1, "decide": false}));
    assert_eq!(few["device"]["low"], published["device"]["low"]);
    let expected = few["device"]["expected"].as_f64().expect("bytes");
    let high = few["device"]["high"].as_f64().expect("bytes");
    assert!((high / expected - 1.5).abs() < 1e-6, "{high} of {expected}");

    // Nine jobs that all needed 4 % more and took a tenth longer: nothing says that the next will not.
    for number in 1..=9 {
        record(home, number, "A100 SXM4 80GB", (1.04, 1.1));
    }
    let many = json_of(home, &MEMORY);
    assert_eq!(many["device"]["calibration"]["own_runs"], json!({"runs": 9, "decide": true}));
    assert_eq!(many["device"]["expected"], published["device"]["expected"]);
    assert_eq!(many["device"]["low"], many["device"]["expected"]);
    let high = many["device"]["high"].as_f64().expect("bytes");
    assert!((high / expected - 1.04).abs() < 1e-6, "{high} of {expected}");
    let step = &json_of(home, &SIMULATE)["step"];
    let of = |name: &str| step[name].as_f64().expect("seconds");
    assert!(
        (of("high") / of("expected") - 1.1).abs() < 1e-6 && of("low") == of("expected"),
        "{step}"
    );

    // Runs on other GPUs say nothing.
    let other = MEMORY.map(|word| if word.starts_with("8x") { "8xH100" } else { word });
    assert_eq!(json_of(home, &other)["device"]["calibration"]["own_runs"], Value::Null);
    let (said, _) = zeropilot(home, &MEMORY[..7]);
    assert!(said.contains("bounds from 9 of your own jobs"), "{said}");
}

#[test]
fn the_same_job_again_counts_once_and_what_does_not_count_is_marked() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let (said, _) = zeropilot(home, &["accuracy"]);
    assert!(said.contains("zeropilot run --model"), "{said}");
    record(home, 1, "A100 SXM4 80GB", (1.02, 1.0));
    let again = home.join("20260102-000001-1");
    std::fs::create_dir(&again).expect("a directory");
    let text = std::fs::read_to_string(home.join("20260101-000001-1/accuracy.json")).expect("it");
    let text = text.replace("20260101-000001-1", "20260102-000001-1");
    std::fs::write(again.join("accuracy.json"), text).expect("a file");
    let answer = json_of(home, &["accuracy", "--json"]);
    assert_eq!(answer["devices"][0]["memory"]["jobs"], 1);
    let counts: Vec<&Value> =
        answer["runs"].as_array().expect("runs").iter().map(|run| &run["counts"]).collect();
    assert_eq!(counts, [&json!(true), &json!(false)], "newest first, and equally far off");
    for language in ["en", "zh"] {
        let (said, _) = zeropilot(home, &["accuracy", "--lang", language]);
        assert!(said.contains("20260101-000001-1*") && said.contains("+2%"), "{said}");
    }
}

#[test]
fn exported_rows_can_be_shared() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    record(home, 4, "cpu", (1.0, 1.0));
    let (out, err) = zeropilot(home, &["accuracy", "--export"]);
    assert!(out.is_empty() && err.contains("no run on GPUs"), "{out}{err}");
    record(home, 5, "A100 SXM4 80GB", (1.1, 1.0));
    let row = json_of(home, &["accuracy", "--export"]);
    // 40 GiB predicted, a tenth more measured; 5 × 4096 tokens of a GPU in 10 s.
    assert_eq!((&row["peak_mem_gb"], &row["tokens_per_s_per_gpu"]), (&json!(44.0), &json!(2048.0)));
    assert!(!row.to_string().contains("20260101"), "{row}");
}

/// A directory that is mistyped is not one without runs.
#[test]
fn a_directory_that_is_not_there_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let nowhere = home.path().join("nowhere").display().to_string();
    for verb in ["accuracy", "runs"] {
        for language in ["en", "zh"] {
            let arguments = [verb, "--runs", &nowhere, "--lang", language];
            let (out, err) = zeropilot(home.path(), &arguments);
            assert!(out.is_empty() && err.contains(&nowhere), "{out}{err}");
        }
    }
}
