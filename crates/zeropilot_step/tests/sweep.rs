//! 292 configurations of 18 families on real ranks, asked as a user asks.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod public_path;

use public_path::{Table, differences};
use serde_json::Value;

#[test]
fn the_sweep_is_as_measured() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/measured/sweep.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut table = Table::default();
    for case in &cases {
        for rank in case["ranks"].as_array().unwrap() {
            let name = format!("{} rank {}", case["name"], rank["rank"]);
            table.add(&name, differences(case, rank));
        }
    }
    table.print();
    for what in table.names() {
        let (near, worst) = table.of(what);
        match what.as_str() {
            // Whoever builds a model under zero.Init with unpinned offload finds frozen shares elsewhere in one case.
            "rest after_init host" | "rest after_backward host" | "rest after_step host" => {
                assert!(near > 0.995, "{what}: {near}");
            }
            "rest after_backward pinned" => assert!(near > 0.998, "{what}: {near}"),
            _ if what.starts_with("rest") => assert_eq!(near, 1.0, "{what}"),
            "peak init" => assert!(near > 0.99, "{what}: {near}"),
            "peak step" => assert!(near > 0.99 && worst < 1.0, "{what}: {near}, {worst} %"),
            // T5 1.1 is 2,304 bytes too high in ten of the rank-runs.
            _ => assert!(near > 0.97 && worst < 5.0, "{what}: {near}, {worst} %"),
        }
    }
}
