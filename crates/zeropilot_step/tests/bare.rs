//! Whole bare models, adapters, frozen parts, dropout and windows included, to the byte.

// The table is for the reader of a failing run.
#![allow(clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;

use zeropilot_step::family::{build, micro_step};
use zeropilot_step::tape::{Accounting, Mark, Options};

#[test]
fn models_of_the_training_cases_equal_the_recording() {
    compare("bare.json", [false, false]);
}

#[test]
fn random_models_equal_the_recording() {
    compare("heldout.json", [false, false]);
}

#[test]
fn more_random_models_equal_the_recording() {
    compare("heldout2.json", [false, false]);
}

#[test]
fn models_with_the_zero3_linear_equal_the_recording() {
    compare("zero3_linear.json", [true, false]);
}

#[test]
fn models_with_the_zero3_hooks_equal_the_recording() {
    compare("zero3_hooks.json", [true, true]);
}

fn compare(file: &str, [zero3_linear, module_events]: [bool; 2]) {
    let mut table: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut misses = Vec::new();
    for case in common::cases(file) {
        let setup = common::setup(&case).expect("a family");
        let program = build(&setup);
        let options = Options {
            accounting: Accounting::Recorded,
            zero3_linear,
            module_events,
            ..Options::default()
        };
        let mut ledger = common::Ledger::default();
        micro_step(&*program, options).replay(&mut ledger);
        let ours = [
            ledger.between(None, Mark::ForwardDone),
            ledger.at(Mark::Saved),
            ledger.between(Some(Mark::Saved), Mark::BackwardDone),
        ];
        let recorded =
            ["forward", "saved", "backward"].map(|key| common::number(&case["peak"], key));
        let suffix = if case["lora"].is_null() { "" } else { "+lora" };
        let row = table
            .entry(format!("{}{suffix}", case["family"].as_str().expect("a family")))
            .or_default();
        row.0 += 1;
        row.1 += u32::from(ours == recorded);
        if ours != recorded {
            misses.push(format!("{}: ours {ours:?}, recorded {recorded:?}", case["name"]));
        }
    }
    for (family, (cases, equal)) in &table {
        println!("{family:16} {equal:3} of {cases:3}");
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}
