//! `zeropilot plan` as a user runs it: the rules of thumb, where they are right and where they are not.

use std::process::Command;

use serde_json::Value;

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
    for rung in plan["fallbacks"].as_array().expect("rungs") {
        let need = number(rung, "/memory/device/expected");
        assert!(need < below, "{need} after {below}");
        below = need;
        // The global batch is kept on every rung.
        assert_eq!(number(rung, "/config/train_batch_size"), 40);
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
    let (lora, _) = plan(&["--model", "llama-3.1-8b", "--gpus", "1x24GB", "--method", "lora"]);
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
    for (language, words) in [("en", "name the card"), ("zh", "写明型号")] {
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
