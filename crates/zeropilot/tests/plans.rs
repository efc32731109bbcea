//! Rules of thumb against the arithmetic: `docs/plans.md` is written from these questions.
//!
//! `ZEROPILOT_UPDATE_DOCS=1` writes it anew. What must hold of every answer is computed here from the number of
//! parameters alone, without the memory model.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use zeropilot_model::catalogue;
use zeropilot_record::Strategy;
use zeropilot_text::Language;
use zeropilot_view::strategy_words;

/// A question people ask, and what they are told.
struct Case {
    model: &'static str,
    gpus: &'static str,
    method: &'static str,
    length: u64,
    /// What is usually said.
    folklore: &'static str,
    /// What the arithmetic says.
    arithmetic: &'static str,
}

const fn case(
    (model, method, gpus, length): (&'static str, &'static str, &'static str, u64),
    folklore: &'static str,
    arithmetic: &'static str,
) -> Case {
    Case { model, gpus, method, length, folklore, arithmetic }
}

const CASES: [Case; 25] = [
    case(
        ("qwen3-8b", "full", "5x44GB", 4096),
        "ZeRO-3 for an 8B on 44 GB GPUs",
        "right: stage 2 keeps 2Ψ of weights and 12Ψ/5 of states, 36 GB before gradients and activations",
    ),
    case(
        ("Qwen3-30B-A3B", "lora", "5x44GB", 2048),
        "LoRA needs only ZeRO-2",
        "wrong: below stage 3, every GPU stores all weights, 2 × 30.5B = 61 GB",
    ),
    case(
        ("Qwen3-30B-A3B", "qlora", "5x44GB", 2048),
        "quantize the base model instead",
        "does not help: the experts of a layer are one three-dimensional parameter, which 4-bit loading leaves in 16-bit",
    ),
    case(
        ("Qwen3-30B-A3B", "full", "8xA100-80G", 2048),
        "ZeRO-2 trains a 30B on 80 GB GPUs",
        "wrong: 2 × 30.5B of weights + 12 × 30.5B / 8 of states = 107 GB",
    ),
    case(
        ("llama-2-7b", "full", "1x24GB", 2048),
        "a 7B trains on 24 GB",
        "only with CPU offload: weights, gradients and states are 16 × 6.7B = 108 GB",
    ),
    case(
        ("llama-2-7b", "lora", "1x24GB", 2048),
        "LoRA for a 7B on 24 GB",
        "right: the frozen weights use 13.5 GB, and the rest is small",
    ),
    case(
        ("llama-3.1-70b", "full", "8xA100-80G", 2048),
        "70B on eight 80 GB GPUs with ZeRO-3",
        "not without CPU offload: 14 × 70.6B / 8 = 123 GB of weights and states",
    ),
    case(
        ("llama-3.1-70b", "lora", "8xA100-80G", 2048),
        "LoRA for a 70B on eight 80 GB GPUs",
        "right with stage 3: each GPU stores 17.6 of 141 GB of weights. In stages 0 to 2, the weights do not fit",
    ),
    case(
        ("llama-3.1-70b", "qlora", "2x24GB", 512),
        "a 70B on two gaming GPUs",
        "wrong: before ZeRO-3 partitions the model, transformers loads all of it on every GPU. This is 35 GB in 4-bit, \
         plus the embedding and the output layer in 16-bit, 2.1 GB each",
    ),
    case(
        ("llama-3.1-405b", "full", "2048x8xH100", 8192),
        "pre-training on 16,384 GPUs needs more than ZeRO",
        "not for memory: 14 × 405B / 16384 = 0.35 GB of states",
    ),
    case(
        ("llama-3.1-405b", "full", "8x8xH100", 4096),
        "64 H100 GPUs for a 405B",
        "not without CPU offload: 14 × 406B / 64 = 89 GB",
    ),
    case(
        ("llama-3.1-8b", "full", "8xA100-80G", 4096),
        "ZeRO-2 for an 8B on eight 80 GB GPUs",
        "right, and stage 1 also fits. Weights and states use 2Ψ + 12Ψ/8 = 28 GB, and gradients use another 2Ψ",
    ),
    case(
        ("llama-3.1-8b", "full", "4xA100-40G", 4096),
        "four 40 GB GPUs for an 8B",
        "stage 3 stores 14 × 8B / 4 = 28 GB per GPU. The logits over a vocabulary of 128,256 decide whether the job fits",
    ),
    case(
        ("llama-3.1-8b", "full", "8xRTX4090", 2048),
        "eight 24 GB GPUs for an 8B",
        "not without CPU offload: weights and optimizer states use 14 × 8B / 8 = 14 GB, and gradients, activations and logits need more than the rest",
    ),
    case(
        ("qwen2.5-0.5b", "full", "1x24GB", 2048),
        "always use ZeRO",
        "wrong: on a single GPU, there are no other ranks to partition states over; training without ZeRO fits",
    ),
    case(
        ("qwen2.5-1.5b", "full", "1x24GB", 2048),
        "a 1.5B fits on 24 GB",
        "not without offload: 16 × 1.54B = 24.7 GB, and the GPU has 24.0 GB (22.4 GiB)",
    ),
    case(
        ("gpt2-xl", "full", "1x16GB", 1024),
        "16 GB is enough for GPT-2 XL",
        "only with CPU offload: 16 × 1.56B = 25 GB",
    ),
    case(
        ("flan-t5-xxl", "full", "8xA100-40G", 512),
        "ZeRO-2 for an 11B on 40 GB GPUs",
        "wrong: 2 × 11.1B + 12 × 11.1B / 8 = 39 GB before gradients and activations; stage 3 fits",
    ),
    case(
        ("mixtral-8x7b", "full", "8xH100", 4096),
        "only two experts run, so little memory is needed",
        "wrong: all 46.7B parameters train, and their states use 14 × 46.7B / 8 = 82 GB",
    ),
    case(
        ("mistral-7b", "full", "2xA100-80G", 4096),
        "two 80 GB GPUs for a 7B",
        "not with stage 2: weights and states use 2Ψ + 12Ψ/2 = 58 GB. The rest is too small for gradients and activations; stage 3 fits",
    ),
    case(
        ("llama-2-13b", "full", "8xA100-40G", 4096),
        "ZeRO-3 reduces memory by a factor of 64",
        "on 8 GPUs, it reduces model states by a factor of 8: 14 × 13B / 8 = 23 GB",
    ),
    case(
        ("llama-2-70b", "full", "2x8xA100-80G", 4096),
        "sixteen 80 GB GPUs for a 70B",
        "weights and states use 14 × 69B / 16 = 60 GB, plus gradients of one bucket and recomputed activations",
    ),
    case(
        ("deepseek-v3", "full", "64x8xH100", 4096),
        "ZeRO alone cannot train a 671B",
        "right in this case, but not because of the states, 14 × 671B / 512 = 18 GB. Stage 3 gathers all experts of a \
         layer (11.3B) at once. Their weights and gradients use 22.5 GB each",
    ),
    case(
        ("qwen2.5-72b", "qlora", "1xA100-80G", 2048),
        "a 72B on one 80 GB GPU",
        "right in 4-bit: 36 GB of weights and their scales",
    ),
    case(
        ("gemma-2-9b", "lora", "1x24GB", 2048),
        "LoRA for a 9B on 24 GB",
        "the frozen weights use 18.5 GB. The logits over a vocabulary of 256,000 decide whether the job fits",
    ),
];

fn plan(case: &Case) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .args(["plan", "--json", "--model", case.model, "--gpus", case.gpus])
        .args(["--method", case.method, "--seq-len", &case.length.to_string()])
        .output()
        .expect("the binary runs");
    let code = output.status.code().expect("an exit code");
    assert!(code < 2, "{}: {}", case.model, String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Bytes no rank can do without in full training: weights of two bytes, and twelve of the optimizer, shared as the
/// stage says; nothing of them where they may lie on the host.
fn floor(way: &Value, parameters: u64, ranks: u64) -> u64 {
    let share = |bytes: u64, is_shared: bool| if is_shared { bytes / ranks } else { bytes };
    let stage = number(way, "/stage");
    let is_here = |key: &str| way[key] == "none";
    let weights = if is_here("offload_param") { share(2 * parameters, stage == 3) } else { 0 };
    let states = if is_here("offload_optimizer") { share(12 * parameters, stage > 0) } else { 0 };
    weights + states
}

/// What fits needs more than the parameters alone, and those fit.
fn is_above_the_floor(case: &Case, plan: &Value) {
    let model = catalogue::find(case.model).expect("in the catalogue").model().expect("a model");
    let (ranks, capacity) = (number(plan, "/world_size"), number(plan, "/capacity"));
    let alternatives = plan["alternatives"].as_array().expect("rows").iter();
    for option in alternatives.chain(Some(&plan["recommended"])).filter(|option| !option.is_null())
    {
        let floor = floor(&option["strategy"], model.elements().0, ranks);
        let need = number(option, "/memory/device/expected");
        assert!(need > floor && floor < capacity, "{}: {option}", case.model);
    }
}

fn way(way: &Value) -> String {
    let strategy: Strategy = serde_json::from_value(way.clone()).expect("a strategy");
    let mut text = strategy_words(&strategy, Language::English);
    if way["gradient_checkpointing"] == true {
        text.push_str(", gradient checkpointing");
    }
    text
}

fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1_u64 << 30) as f64)
}

fn row(case: &Case) -> String {
    let plan = plan(case);
    if case.method == "full" {
        is_above_the_floor(case, &plan);
    }
    let rejected = plan["rejected"].as_array().expect("rows").iter();
    let rejected =
        rejected.filter(|row| row["strategy"]["offload_optimizer"] == "none").map(|row| {
            format!("ZeRO-{} by {}", row["strategy"]["stage"], gib(number(row, "/over_by")))
        });
    let rejected = rejected.collect::<Vec<_>>().join(", ");
    let choice = &plan["recommended"];
    let (chosen, need) = if choice.is_null() {
        ("no strategy fits".to_owned(), "–".to_owned())
    } else {
        let need = gib(number(choice, "/memory/device/expected"));
        (way(&choice["strategy"]), format!("{need} of {}", gib(number(&plan, "/capacity"))))
    };
    let Case { model, gpus, method, length, folklore, arithmetic } = case;
    format!(
        "| {model}, {method}, {length} tokens | {gpus} | {chosen} | {need} | {} | “{folklore}”: {arithmetic} |\n",
        if rejected.is_empty() { "–" } else { &rejected }
    )
}

#[test]
fn the_table_of_plans_is_what_the_planner_says() {
    let mut text = "# ZeRO rules of thumb, checked\n\n\
        `cargo test -p zeropilot --test plans` with `ZEROPILOT_UPDATE_DOCS=1` writes this page from the output of `zeropilot plan`. \
        Sizes are GiB per GPU. For each stage without offload, “too large” shows how far the upper bound of its \
        smallest strategy exceeds the GPU's memory. \
        The plans assume enough host memory. Ψ is the number of parameters. Per parameter, a bf16 weight uses 2 \
        bytes, and Adam's states and the fp32 master weights use 12.\n\n\
        | question | GPUs | recommended strategy | needs | too large | common claim, and the arithmetic |\n\
        | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    text.extend(CASES.iter().map(row));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plans.md");
    if std::env::var_os("ZEROPILOT_UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).expect("docs can be written");
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, text, "run with ZEROPILOT_UPDATE_DOCS=1");
}
