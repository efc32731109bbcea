//! Activations inside real training runs: in stages 0 to 2 ZeRO does not touch the forward pass, so its
//! peak must be the state at rest plus the program's own.

mod common;

use std::collections::BTreeMap;

use serde_json::Value;
use zeropilot_step::family::{build, micro_step};
use zeropilot_step::tape::{Accounting, Mark, Options};

/// Scalars, step counters and integer helpers the engine keeps, which no category of the case counts.
const HELPERS: i64 = 1500;

fn stage(case: &Value) -> u64 {
    case["config"]["zero_optimization"]["stage"].as_u64().unwrap_or(0)
}

fn at_rest(state: &Value) -> i64 {
    state.as_object().map_or(0, |parts| parts.values().filter_map(Value::as_i64).sum())
}

#[test]
fn forward_peak_is_rest_plus_activations() {
    let mut table: BTreeMap<String, (u32, u32, u32, i64)> = BTreeMap::new();
    let mut misses = Vec::new();
    for case in common::cases("training.json") {
        if stage(&case) == 3 || !case["note"].is_null() {
            continue;
        }
        let config = &case["config"];
        if config["gradient_accumulation_steps"].as_u64().unwrap_or(1) > 1 {
            continue;
        }
        let setup = common::setup(&case).expect("a family");
        let program = build(&setup);
        let options = Options { accounting: Accounting::Recorded, ..Options::default() };
        let mut ledger = common::Ledger::default();
        micro_step(&*program, options).replay(&mut ledger);
        let ours = i64::try_from(ledger.between(None, Mark::ForwardDone)).expect("small");
        let rest = at_rest(&case["after_step"]) + case["misc"].as_i64().unwrap_or(0);
        let measured = case["peak"]["forward"].as_i64().expect("a peak") - rest;
        let difference = ours - measured;
        let name = if case["lora"].is_null() { "" } else { "+lora" };
        let row = table
            .entry(format!("{}{name}", case["family"].as_str().expect("a family")))
            .or_default();
        row.0 += 1;
        row.1 += u32::from(difference == 0);
        row.2 += u32::from(difference.abs() <= HELPERS);
        if difference.abs() > row.3.abs() {
            row.3 = difference;
        }
        if difference.abs() > HELPERS {
            misses.push(format!("{} stage {}: {difference}", case["name"], stage(&case)));
        }
    }
    println!("{:16} cases exact within-helpers worst", "family");
    for (family, (cases, exact, close, worst)) in &table {
        println!("{family:16} {cases:5} {exact:5} {close:14} {worst:6}");
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}
