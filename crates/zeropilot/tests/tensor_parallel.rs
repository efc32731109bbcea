//! A config that splits layers over GPUs: what each of them holds, and what a step sends.

use std::path::Path;

use serde_json::{Value, json};

fn config(directory: &Path, stage: u8, ranks: u64) -> String {
    let config = json!({
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": true},
        "zero_optimization": {"stage": stage},
        "tensor_parallel": {"autotp_size": ranks},
    });
    let path = directory.join("ds.json");
    std::fs::write(&path, config.to_string()).expect("a file");
    path.display().to_string()
}

/// The exit code and what is printed.
fn asked(verb: &str, config: &str, gpus: &str, more: &[&str]) -> (bool, String, String) {
    let question = [verb, "--model", "llama-3.1-8b", "--gpus", gpus, "--config", config];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args([&question[..], &["--seq-len", "4096"], more].concat())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("zeropilot runs");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn answer(verb: &str, config: &str) -> Value {
    let (_, text, error) = asked(verb, config, "8xH100", &["--json"]);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{error}"))
}

/// Of Llama-3.1-8B, attention, feed-forward parts and the output layer are split over four GPUs, embedding and norms are
/// whole: 32 × (2 × 4096² + 2 × 4096 × 1024 + 3 × 4096 × 14336) / 4 + 128256 × 4096 / 4 + 128256 × 4096 + 65 × 4096
/// elements of two bytes. ZeRO shards the master weights over the other 8 / 4 GPUs.
#[test]
fn layers_are_split_and_zero_shards_what_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let memory = answer("memory", &config(directory.path(), 1, 4));
    let layers: u64 = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336);
    let words: u64 = 128_256 * 4096;
    let elements = layers / 4 + words / 4 + words + 65 * 4096;
    let held = &memory["tensors"]["after_init"]["device"];
    assert_eq!(held["flat_parameters"], 2 * elements);
    assert_eq!(held["master_weights"], 4 * elements / 2);
    assert_eq!(memory["provenance"]["not_modelled"], json!([]));
}

/// Four GPUs see the same sequences: 8 / 4 sequences of 4096 tokens in a step. Of every layer the outputs of attention
/// and of the feed-forward part are added up in forward, the gradients of five inputs in backward, one more of the
/// output layer, and two numbers of the step.
#[test]
fn a_step_sends_what_layers_need_and_counts_sequences_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let step = answer("simulate", &config(directory.path(), 1, 4));
    let seconds = step["step"]["expected"].as_f64().expect("seconds");
    let rate = step["tokens_per_s"].as_f64().expect("a rate");
    assert!((rate * seconds - 2.0 * 4096.0).abs() < 1.0, "{rate} × {seconds}");
    let calls = step["communication"]["calls"].as_array().expect("calls");
    let among_four = calls.iter().find(|it| it["kind"] == "all_reduce" && it["ranks"] == 4);
    assert_eq!(among_four.expect("all-reduces")["calls"], 32 * (2 + 5) + 1 + 2);
}

#[test]
fn what_is_not_followed_is_named_and_what_cannot_start_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let memory = answer("memory", &config(directory.path(), 3, 4));
    let named = memory["provenance"]["not_modelled"].to_string();
    assert!(named.contains("for ZeRO stages 0 to 2 only"), "{named}");
    let (is_answered, _, error) = asked("memory", &config(directory.path(), 1, 4), "6xH100", &[]);
    assert!(!is_answered && error.contains("divides 6"), "{error}");
}

#[test]
fn a_front_end_that_splits_layers_itself_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let launch = "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen3-8B --train_type full \
        --deepspeed zero1 --deepspeed_autotp_size 2 --max_length 2048\n";
    let script = directory.path().join("train.sh");
    std::fs::write(&script, launch).expect("a file");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .arg("memory")
        .arg(&script)
        .args(["--gpus", "4xH100", "--json"])
        .output()
        .expect("zeropilot runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let named = answer["provenance"]["not_modelled"].to_string();
    assert!(named.contains("deepspeed_autotp_size"), "{named}");
}
