//! Every call of the communication library in a steady step of real runs, one by one and in order: what is sent, how
//! much of it, among how many ranks, and whether the engine waits for it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod calls;
mod public_path;

use calls::difference;
use serde_json::{Value, json};

const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/measured/");

fn cases(file: &str) -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(format!("{MEASURED}{file}")).unwrap()).unwrap()
}

/// A case of the older file in the words of the sweep.
fn with_config(case: &Value) -> Value {
    let model = &case["model"];
    let mut config = json!({
        "model_type": model["arch"].as_str().unwrap_or("llama"),
        "hidden_size": model["h"],
        "num_attention_heads": model["a"],
        "num_key_value_heads": model["k"],
        "intermediate_size": model["i"],
        "vocab_size": model["v"],
        "num_hidden_layers": model["L"],
        "max_position_embeddings": 128,
        "tie_word_embeddings": model["tie"].as_u64().unwrap_or(0) == 1 || model["tie"] == true,
    });
    if let Some(width) = model["d"].as_u64() {
        config["head_dim"] = json!(width);
    }
    let mut case = case.clone();
    case["hf_config"] = config;
    // Checkpointing makes the embedding's output need a gradient.
    case["input_require_grads"] = case["checkpointing"].clone();
    case
}

/// Runs that differ in how some prefetches are grouped, not in what is gathered in all: a frozen stack that is recomputed
/// under a limit smaller than a layer, and adapters on GPT-2 beside secondary copies.
const EXCEPTIONS: [&str; 2] = ["D:D78-s3-bf16-W2", "drawn-20"];

fn compare(cases: &[Value]) -> Vec<String> {
    let (mut compared, mut different) = (0, Vec::new());
    for case in cases {
        let (difference, calls) = difference(case, &public_path::program(case));
        compared += calls;
        if !EXCEPTIONS.contains(&case["name"].as_str().unwrap()) {
            different.extend(difference);
        }
    }
    println!("{} of {} runs differ, {compared} calls compared", different.len(), cases.len());
    different.iter().take(20).for_each(|difference| println!("{difference}"));
    different
}

#[test]
fn every_call_of_a_step() {
    // Where every step of stage 3 is skipped nothing persistent is ever gathered: not a steady step.
    let is_steady = |case: &Value| {
        !case["overflow_steps"].is_array() || case["config"]["zero_optimization"]["stage"] != 3
    };
    let all = cases("zero-traffic-cases.json");
    assert_eq!(all.len(), 954);
    let cases: Vec<Value> = all.iter().filter(|case| is_steady(case)).map(with_config).collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

#[test]
fn every_call_of_a_step_of_eighteen_families() {
    assert_eq!(compare(&cases("sweep.json")), Vec::<String>::new());
}
