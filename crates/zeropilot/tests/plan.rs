//! `zeropilot plan` as a user runs it: the rules of thumb, where they are right and where they are not.

use std::process::Command;

use serde_json::{Value, json};
use zeropilot_oracle::Oracle;

fn plan(arguments: &[&str]) -> (Value, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .args(["plan", "--json"])
        .args(arguments)
        .output()
        .expect("the binary runs");
    let code = output.status.code().expect("an exit code");
    assert!(code < 2, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).expect("JSON"), code)
}

fn stages(rows: &Value) -> Vec<u64> {
    let rows = rows.as_array().expect("rows").iter();
    rows.filter_map(|row| row["strategy"]["stage"].as_u64()).collect()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

#[test]
fn full_8b_on_five_44_gb_cards_needs_zero_3() {
    let (plan, code) = plan(&["--model", "qwen3-8b", "--gpus", "5x44GB", "--seq-len", "4096"]);
    assert_eq!((code, number(&plan, "/recommended/strategy/stage")), (0, 3));
    assert!(stages(&plan["rejected"]).contains(&2), "{}", plan["rejected"]);
    assert!(number(&plan, "/recommended/memory/device/high") <= number(&plan, "/capacity"));
}

#[test]
fn every_rung_of_the_ladder_needs_less_and_is_a_whole_config() {
    let (plan, _) = plan(&["--model", "qwen3-8b", "--gpus", "5x44GB", "--global-batch", "40"]);
    let mut below = number(&plan, "/recommended/memory/device/expected");
    for fallback in plan["fallbacks"].as_array().expect("fallbacks") {
        let need = number(fallback, "/memory/device/expected");
        assert!(need < below, "{need} after {below}");
        below = need;
        // The global batch is kept on every fallback.
        assert_eq!(number(fallback, "/config/train_batch_size"), 40);
    }
    assert_eq!(number(&plan, "/recommended/config/train_batch_size"), 40);
}

#[test]
fn lora_on_a_30b_mixture_needs_zero_3_too() {
    let (plan, code) = plan(&["--model", "Qwen3-30B-A3B", "--gpus", "5x44GB", "--method", "lora"]);
    assert_eq!((code, number(&plan, "/recommended/strategy/stage")), (0, 3));
    assert!(stages(&plan["rejected"]).contains(&2));
}

#[test]
fn full_70b_on_eight_80_gb_cards_needs_offload() {
    let (plan, _) = plan(&["--model", "llama-3.1-70b", "--gpus", "8xA100-80G"]);
    assert_eq!(plan["recommended"]["strategy"]["offload_optimizer"], "cpu");
}

#[test]
fn where_nothing_fits_the_number_of_gpus_that_would_is_said() {
    let arguments = ["--model", "llama-3.1-70b", "--gpus", "2x24GB", "--host-ram", "64GiB"];
    let (plan, code) = plan(&arguments);
    assert_eq!(code, 1);
    assert!(plan["recommended"].is_null() && number(&plan, "/gpus_needed") > 2, "{plan}");
}

/// Eight processes of 3 GiB each are 24 GiB, and the host has 9.3: no layer is too large, and no shorter sequence helps.
#[test]
fn a_host_that_is_too_small_is_called_that_in_both_languages() {
    let arguments = ["--model", "qwen3-8b", "--gpus", "8xH100", "--host-ram", "10GB"];
    let (json, code) = plan(&arguments);
    assert_eq!((code, &json["limits"]), (1, &serde_json::json!(["host"])));
    let need = number(&json, "/host_ram_needed");
    assert!(need > (8 * 3) << 30, "{need}");
    let enough = format!("--host-ram {}GiB", need.div_ceil(1 << 30));
    for (language, limit) in [("en", "Host memory is the limit"), ("zh", "瓶颈是主机内存")] {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .env_clear()
            .args(["plan", "--lang", language])
            .args(arguments)
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(limit) && said.contains(&enough), "{said}");
        assert!(!said.contains("layer does not fit") && !said.contains("--seq-len"), "{said}");
    }
}

/// 16 bytes per parameter on one card of 24 GB: an 8B does not train without the host, its adapters do.
#[test]
fn one_small_card_trains_adapters() {
    let (full, _) = plan(&["--model", "llama-3.1-8b", "--gpus", "1x24GB"]);
    assert_eq!(full["recommended"]["strategy"]["offload_optimizer"], "cpu");
    let adapters = ["--method", "lora", "--seq-len", "1024"];
    let question = ["--model", "llama-3.1-8b", "--gpus", "1x24GB"];
    let (lora, _) = plan(&[&question[..], &adapters].concat());
    assert_eq!(lora["recommended"]["strategy"]["offload_optimizer"], "none");
}

/// Hours and money of an offer.
fn bill(offer: &Value) -> Option<(f64, f64)> {
    Some((offer["cost_estimate"]["gpu_hours"].as_f64()?, offer["cost_estimate"]["cost"].as_f64()?))
}

#[test]
fn cost_leaves_gpus_aside_whose_links_cost_more_than_they_bring() {
    let question = ["--model", "qwen2.5-0.5b", "--gpus", "2x8xA100-80G", "--network", "1x10GbE"];
    let price = ["--tokens", "10B", "--cost", "2.5/gpu-hour"];
    let (cheap, code) = plan(&[&question[..], &price, &["--objective", "cost"]].concat());
    assert_eq!(code, 0);
    let offers = cheap["by_gpu_count"].as_array().expect("offers");
    let gpus = |offer: &Value| number(offer, "/nodes") * number(offer, "/gpus_per_node");
    assert_eq!(offers.iter().map(gpus).collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
    let world = number(&cheap, "/world_size");
    assert!(world < 16, "ten gigabit Ethernet joins two nodes");
    let chosen = offers.iter().find(|offer| gpus(offer) == world).expect("the choice is offered");
    let (hours, money) = bill(chosen).expect("the speed is known");
    assert!((money - hours * 2.5).abs() < 1e-6 * money, "{money} for {hours} hours");
    // The most GPUs within a twentieth of the least that any number costs.
    let least = offers.iter().filter_map(bill).map(|(hours, _)| hours).fold(f64::MAX, f64::min);
    let near = offers.iter().filter(|offer| bill(offer).is_some_and(|(it, _)| it <= least * 1.05));
    assert_eq!(near.map(gpus).max(), Some(world), "{offers:?}");
    assert_eq!(bill(&cheap), bill(chosen));
    // All of them cost what the plan for all of them says: seconds of a step × GPUs for the tokens of a step.
    let (all, _) = plan(&[&question[..], &price].concat());
    assert_eq!(number(&all, "/world_size"), 16);
    let step = all["recommended"]["step_seconds"]["expected"].as_f64().expect("a time");
    let batch = number(&all, "/recommended/config/train_batch_size") as f64;
    let wanted = 10e9 / (batch * 2048.0) * step * 16.0 / 3600.0;
    for (hours, _) in [&all, &offers[4]].into_iter().filter_map(bill) {
        assert!((hours - wanted).abs() < 1e-6 * wanted, "{hours}, but {wanted} by hand");
    }
}

#[test]
fn cost_needs_to_know_the_card() {
    for (language, words) in [("en", "name the GPU model"), ("zh", "写明型号")] {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .env_clear()
            .args(["--lang", language, "plan", "--model", "qwen3-8b", "--gpus", "5x44GB"])
            .args(["--objective", "cost"])
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

fn notes(answer: &Value) -> String {
    answer["provenance"]["notes"].to_string()
}

/// Compute capability 7: no bf16 in hardware, so that its speed is not known either.
#[test]
fn a_card_without_bf16_is_planned_in_fp16_unless_bf16_is_asked_for() {
    let question = ["--model", "qwen3-1.7b", "--gpus", "8xV100-SXM2-32GB", "--seq-len", "1024"];
    let (usual, _) = plan(&question);
    assert_eq!(usual["recommended"]["config"]["fp16"]["enabled"], true);
    assert!(
        usual["recommended"]["config"]["bf16"].is_null()
            && !usual["recommended"]["step_seconds"].is_null()
    );
    assert!(notes(&usual).contains("V100 SXM2 32GB does not support bf16"), "{}", notes(&usual));
    let (asked, _) = plan(&[&question[..], &["--precision", "bf16"]].concat());
    assert_eq!(asked["recommended"]["config"]["bf16"]["enabled"], true);
    assert!(asked["recommended"]["step_seconds"].is_null());
    assert!(notes(&asked).contains("use fp16"), "{}", notes(&asked));
    let (newer, _) = plan(&["--model", "qwen3-1.7b", "--gpus", "8xA100-80G"]);
    assert_eq!(newer["recommended"]["config"]["bf16"]["enabled"], true);
    assert!(!notes(&newer).contains("bf16"), "{}", notes(&newer));
}

/// The choice and the alternatives.
fn offered(plan: &Value) -> Vec<&Value> {
    std::iter::once(&plan["recommended"])
        .chain(plan["alternatives"].as_array().expect("rows"))
        .collect()
}

#[test]
fn hpz_is_the_gpus_of_a_node_and_plain_zero_3_is_offered_beside_it() {
    let question = ["--model", "qwen3-8b", "--network", "1x25GbE", "--seq-len", "4096"];
    let (plan_of_two, _) =
        plan(&[&question[..], &["--gpus", "2x8xA100-80G", "--global-batch", "256"]].concat());
    let kinds: Vec<(u64, u64)> = offered(&plan_of_two)
        .into_iter()
        .filter(|one| one["strategy"]["offload_optimizer"] == "none")
        .map(|one| (number(one, "/strategy/stage"), number(one, "/strategy/hpz")))
        .collect();
    for kind in [(3, 1), (3, 8)] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert!(kinds.iter().all(|(_, hpz)| [1, 8].contains(hpz)), "{kinds:?}");
    let (one_node, _) = plan(&[&question[..], &["--gpus", "8xA100-80G"]].concat());
    assert!(offered(&one_node).iter().all(|one| number(one, "/strategy/hpz") == 1));
    assert!(notes(&one_node).contains("--network has no effect"), "{}", notes(&one_node));
    assert!(!notes(&plan_of_two).contains("--network"), "{}", notes(&plan_of_two));
}

/// Seconds of a step for each of its sequences on a GPU.
fn pace(one: &Value) -> f64 {
    let sequences =
        number(one, "/strategy/micro_batch") * number(one, "/strategy/gradient_accumulation_steps");
    one["step_seconds"]["expected"].as_f64().expect("a time") / sequences as f64
}

/// ZeRO-1 is the fastest on eight H100 and nearly fills them; ZeRO-2 takes 1 % longer and leaves a fifth free.
#[test]
fn what_is_as_fast_and_leaves_headroom_is_recommended() {
    let question = ["--model", "llama-3.1-8b", "--gpus", "8xH100", "--seq-len", "4096"];
    let (plan, _) = plan(&[&question[..], &["--global-batch", "128"]].concat());
    let least = offered(&plan).into_iter().map(pace).fold(f64::INFINITY, f64::min);
    assert!(pace(&plan["recommended"]) <= least * 1.05, "{}", plan["recommended"]);
    let headroom = number(&plan, "/capacity") - number(&plan, "/recommended/memory/device/high");
    assert!(headroom >= number(&plan, "/capacity") / 20, "{headroom} left");
    assert_eq!(plan["recommended"]["strategy"]["offload_optimizer"], "none");
}

/// Trainers compare a config with arguments of their own, so that each line must say what the config does.
#[test]
fn only_launchers_whose_program_reads_the_config_are_offered() {
    let question = ["--model", "qwen3-8b", "--gpus", "8xA100-80G", "--global-batch", "64"];
    for (target, launchers) in [
        ("deepspeed", &["deepspeed", "torchrun"][..]),
        ("accelerate", &["accelerate"]),
        ("hf-trainer", &["accelerate", "deepspeed", "llamafactory", "swift", "torchrun"]),
    ] {
        let (plan, _) = plan(&[&question[..], &["--for", target]].concat());
        let lines = plan["recommended"]["launch"].as_object().expect("lines");
        let mut names: Vec<&str> = lines.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, launchers);
        let says_batch = |line: &Value| line.to_string().contains("per_device_train_batch_size");
        let is_trainer = target == "hf-trainer";
        assert!(lines.values().all(|line| says_batch(line) == is_trainer), "{lines:?}");
    }
}

/// Says what became of the config, as the Trainer does before it trains.
const FILLS: &str = "\
import sys
from types import SimpleNamespace
from transformers import HfArgumentParser, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
args.hf_deepspeed_config.trainer_config_finalize(args, SimpleNamespace(config=SimpleNamespace(hidden_size=64)), 10)
micro = args.hf_deepspeed_config.get_value('train_micro_batch_size_per_gpu')
sys.stdout.write(f'micro {micro}\\n')
";

/// The lines are run as they are printed, with the real launchers and the real Trainer.
#[test]
fn the_trainer_accepts_the_config_with_the_lines_that_are_printed() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let question = ["--model", "qwen2.5-0.5b", "--gpus", "2xA100-80G", "--global-batch", "12"];
    let (plan, _) = plan(&[&question[..], &["--for", "hf-trainer"]].concat());
    let micro = number(&plan, "/recommended/strategy/micro_batch");
    let questions = ["deepspeed", "torchrun"].map(|launcher| {
        let choice = &plan["recommended"];
        let line = choice["launch"][launcher].as_str().expect("a line");
        let files = json!({"train.py": FILLS, "ds_config.json": choice["config"].to_string()});
        json!({"command": format!("{line} --use_cpu"), "files": files})
    });
    for answer in Oracle::start(&home, "script_server.py").answers(questions.to_vec()) {
        assert_eq!(answer["code"], 0, "{answer:#}");
        let printed = answer["output"].as_str().expect("text");
        assert!(printed.contains(&format!("micro {micro}")), "{printed}");
    }
}

/// Sixteen bytes for each of 70 billion parameters are 1.02 TiB, more than four GPUs of 24 GB hold: most of them are on the host.
#[test]
fn plans_that_nobody_would_run_are_warned_of() {
    let question = ["--model", "llama-3.1-70b", "--gpus", "4xRTX-4090", "--seq-len", "4096"];
    let notes = |more: &[&str]| {
        let (plan, _) = plan(&[&question[..], more].concat());
        plan["provenance"]["notes"].to_string()
    };
    let open = notes(&[]);
    assert!(open.contains("TiB of host memory on every node"), "{open}");
    let said = notes(&["--host-ram", "2TiB", "--tokens", "10B"]);
    assert!(!said.contains("of host memory on every node"), "{said}");
    assert!(said.contains("10 billion tokens takes") && said.contains(" days"), "{said}");
}

#[test]
fn what_is_given_is_kept_in_everything_that_is_offered() {
    let given = ["--stage", "3", "--offload", "optimizer", "--micro-batch", "2"];
    let question = ["--model", "qwen3-8b", "--gpus", "5x44GB", "--grad-checkpointing"];
    let (plan, code) = plan(&[&question[..], &given].concat());
    assert_eq!(code, 0);
    let offered = offered(&plan);
    assert!(!offered.is_empty());
    for one in offered.into_iter().chain(plan["fallbacks"].as_array().expect("fallbacks")) {
        let config = &one["config"];
        assert_eq!(number(config, "/zero_optimization/stage"), 3);
        assert_eq!(config["zero_optimization"]["offload_optimizer"]["device"], "cpu");
        assert_eq!(config["zero_optimization"].get("offload_param"), None);
        assert_eq!(number(config, "/train_micro_batch_size_per_gpu"), 2);
        assert_eq!(one["strategy"]["gradient_checkpointing"], true, "{one}");
    }
}

#[test]
fn stage_1_offloads_its_optimizer_if_it_is_told_to() {
    let question =
        ["--model", "qwen3-0.6b", "--gpus", "2x24GB", "--stage", "1", "--offload=optimizer"];
    let (plan, _) = plan(&question);
    let zero = &plan["recommended"]["config"]["zero_optimization"];
    assert_eq!((&zero["stage"], &zero["offload_optimizer"]["device"]), (&json!(1), &json!("cpu")));
}

#[test]
fn an_optimizer_counts_where_a_trainer_builds_it() {
    let of = |more: &[&str]| {
        let held = ["--stage", "3", "--offload", "none", "--micro-batch", "1"];
        let question = ["--model", "qwen3-8b", "--gpus", "8xA100-80G", "--grad-checkpointing"];
        let (plan, code) = plan(&[&question[..], &held, more].concat());
        assert_eq!(code, 0);
        (number(&plan, "/recommended/memory/device/expected") as f64, notes(&plan))
    };
    let named = ["--optimizer", "adamw8bit"];
    let (usual, _) = of(&[]);
    let (written, unused) = of(&named);
    let (built, used) = of(&[&named[..], &["--for", "hf-trainer"]].concat());
    assert_eq!(usual, written);
    assert!(unused.contains("--optimizer has no effect"), "{unused}");
    assert!(!used.contains("--optimizer"), "{used}");
    // Two moments of 8.19 billion weights, in one byte instead of four each, over 8 GPUs; the prediction is a range around
    // its expectation.
    let saved = 8.19e9 * 2.0 * 3.0 / 8.0;
    assert!(((usual - built) / saved - 1.0).abs() < 0.05, "{usual} and {built}");
}

#[test]
fn where_what_is_given_does_not_fit_the_free_choice_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(["plan", "--lang", "en", "--model", "qwen3-8b", "--gpus", "5x44GB"])
        .args(["--stage", "2", "--offload", "none"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("without --stage, --offload: ZeRO-3"), "{said}");
    // ZeRO-2 keeps all weights on each GPU, whatever their number.
    assert!(said.contains("with any number of them, ZeRO-2 still needs"), "{said}");
}

#[test]
fn what_cannot_be_combined_is_an_error_with_a_way_out() {
    for (given, help) in [
        (&["--stage", "2", "--offload", "all"][..], "stages 1 and 2 offload only the optimizer"),
        (&["--micro-batch", "3", "--global-batch", "40"], "such as 45"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .args(["plan", "--lang", "en", "--model", "qwen3-8b", "--gpus", "5x44GB"])
            .args(given)
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(help), "{said}");
    }
}
