//! Advisories that can be shown on CPU ranks are shown: the affected engine has the defect, the fixed one has not.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use zeropilot_lint::advisory::{Reproduced, advisories};
use zeropilot_oracle::{Oracle, home};

#[test]
fn defects_are_in_the_affected_engine_and_not_in_the_fixed_one() {
    let Some(home) = home() else { return };
    let mut cases: BTreeMap<&str, Vec<(&str, bool)>> = BTreeMap::new();
    for advisory in advisories() {
        if let Some(Reproduced { affected, fixed }) = &advisory.reproduced {
            cases.entry(affected).or_default().push((&advisory.id, true));
            cases.entry(fixed).or_default().push((&advisory.id, false));
        }
    }
    let count: usize = cases.values().map(Vec::len).sum();
    assert!(count >= 56, "{count}");
    let mut wrong = Vec::new();
    for (version, cases) in cases {
        let mut oracle = Oracle::start_with_engine(&home, "advisory_server.py", version);
        let questions = cases.iter().map(|(id, _)| json!({"advisory": id})).collect();
        for ((id, expected), line) in cases.iter().zip(oracle.ask(questions)) {
            let answer: Json = serde_json::from_str(&line).expect("an answer");
            if answer["shows"] != json!(expected) {
                wrong.push(format!("{id} on {version}: {}", answer["seen"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
