//! Inside the layers: bare models without ZeRO, measured against the real engine.
//!
//! Forward before the logits, backward after the head and the bytes saved in between must equal the
//! measurement to the byte.

mod common;

use std::collections::BTreeMap;

use zeropilot_step::family::{build, micro_step};
use zeropilot_step::tape::{Accounting, Mark, Options};

/// To the byte.
const TOLERANCE: i64 = 0;

#[derive(Default)]
struct Row {
    cases: u32,
    forward: u32,
    backward: u32,
    saved: u32,
    worst: i64,
}

#[test]
fn layers_equal_the_measurement() {
    let mut table: BTreeMap<String, Row> = BTreeMap::new();
    let mut misses = Vec::new();
    for case in common::cases("layers.json") {
        let setup = common::setup(&case).expect("every family has a program");
        let program = build(&setup);
        let options = Options { accounting: Accounting::Recorded, ..Options::default() };
        let trace = micro_step(&*program, options);
        let mut ledger = common::Ledger::default();
        trace.replay(&mut ledger);
        // A classifier has no logits of a vocabulary to leave out: the whole run was measured.
        let (forward, backward) = if ledger.has(Mark::Head) {
            (
                ledger.between(None, Mark::Head),
                ledger.between(Some(Mark::HeadDone), Mark::BackwardDone),
            )
        } else {
            let whole = ledger.between(None, Mark::BackwardDone);
            (whole, whole)
        };
        let differences = [
            signed(forward) - signed(common::number(&case, "forward_peak_before_logits")),
            signed(backward) - signed(common::number(&case, "backward_peak_after_head")),
            signed(ledger.at(Mark::Saved)) - signed(common::number(&case, "saved")),
        ];
        let row = table.entry(case["family"].as_str().unwrap_or("?").to_owned()).or_default();
        let [is_forward, is_backward, is_saved] =
            differences.map(|difference| difference.abs() <= TOLERANCE);
        row.cases += 1;
        row.forward += u32::from(is_forward);
        row.backward += u32::from(is_backward);
        row.saved += u32::from(is_saved);
        for difference in differences {
            if difference.abs() > row.worst.abs() {
                row.worst = difference;
            }
        }
        if !(is_forward && is_backward && is_saved) {
            misses.push(format!("{}: {differences:?}", case["name"]));
        }
    }
    println!("{:12} cases forward backward saved worst", "family");
    for (family, row) in &table {
        println!(
            "{family:12} {:5} {:7} {:8} {:5} {:5}",
            row.cases, row.forward, row.backward, row.saved, row.worst
        );
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("a small size")
}
