//! Configurations nobody has seen, drawn and measured on real ranks now.
//!
//! `ZEROPILOT_DRAWS` says how many (8 by default), `ZEROPILOT_SEED` repeats a run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod calls;
mod public_path;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use calls::difference;
use public_path::{Table, differences, program};
use serde_json::Value;

fn seed() -> u64 {
    let given = std::env::var("ZEROPILOT_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs() % 1_000_000_007)
    })
}

fn python(home: &Path) -> Command {
    let mut command = Command::new(home.join("engine/bin/python"));
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle"))
        .env("DS_ACCELERATOR", "cpu")
        .env("OMP_NUM_THREADS", "1")
        .stderr(Stdio::null());
    command
}

/// Cases with what the engine's ranks measured; those it refuses are left out.
fn measured(home: &Path, count: usize, seed: u64) -> Vec<(Value, Value)> {
    let arguments = ["-m", "measure.draw", &count.to_string(), &seed.to_string()];
    let drawn = python(home).args(arguments).output().unwrap();
    let cases: Vec<Value> = String::from_utf8(drawn.stdout)
        .unwrap()
        .lines()
        .enumerate()
        .map(|(id, line)| {
            let mut case: Value = serde_json::from_str(line).unwrap();
            case["id"] = Value::from(id);
            case
        })
        .collect();
    assert_eq!(cases.len(), count, "every case is drawn");
    let mut server = python(home)
        .arg("measure_server.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = server.stdin.take().unwrap();
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    answers.next().unwrap().unwrap();
    for case in &cases {
        writeln!(requests, "{case}").unwrap();
    }
    drop(requests);
    let answers: Vec<Value> =
        answers.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    server.wait().unwrap();
    let is_measured = |answer: &Value| {
        let ranks = answer["ranks"].as_array();
        ranks.is_some_and(|ranks| ranks.iter().all(|rank| rank["skipped_steps"].is_null()))
    };
    cases.into_iter().zip(answers).filter(|(_, answer)| is_measured(answer)).collect()
}

#[test]
fn fresh_draws_are_as_predicted() {
    let Some(home) = std::env::var_os("ZEROPILOT_ORACLE_HOME").map(PathBuf::from) else {
        assert!(std::env::var_os("CI").is_none(), "CI needs the engine: set ZEROPILOT_ORACLE_HOME");
        println!("skipped: ZEROPILOT_ORACLE_HOME does not say where the engine is");
        return;
    };
    let count = std::env::var("ZEROPILOT_DRAWS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let seed = seed();
    println!("seed {seed}, {count} cases");
    let cases = measured(&home, count, seed);
    println!("{} of them measured", cases.len());
    assert!(cases.len() * 2 >= count, "the engine takes most of them");
    let mut table = Table::default();
    let mut other_calls = Vec::new();
    for (index, (case, answer)) in cases.iter().enumerate() {
        let mut case = case.clone();
        case["base_optimizer"] = answer["base_optimizer"].clone();
        case["name"] =
            Value::from(format!("case {index} ({}): {}", case["family"], case["config"]));
        // Ranks that did not all say the same are told one by one.
        case["traffic"] = match &answer["traffic"] {
            Value::Array(ranks) => ranks[0].clone(),
            traffic => traffic.clone(),
        };
        other_calls.extend(difference(&case, &program(&case)).0);
        for rank in answer["ranks"].as_array().unwrap() {
            let name = format!(
                "case {index} ({}) rank {}: {}",
                case["family"], rank["rank"], case["config"]
            );
            table.add(&name, differences(&case, rank));
        }
    }
    table.print();
    let equal = cases.len() - other_calls.len();
    println!("calls: {equal} of {} equal", cases.len());
    other_calls.iter().for_each(|difference| println!("  {difference}"));
    assert!(other_calls.len() * 5 <= cases.len(), "calls differ: seed {seed}");
    let rests = ["rest after_init", "rest after_backward", "rest after_step"];
    for what in rests {
        // Categories nobody has met yet must not stop a build; most of the draws must be exact.
        assert!(table.of(what).0 >= 0.8, "{what}: seed {seed}");
    }
    for what in ["peak forward", "peak backward", "peak step"] {
        let (near, worst) = table.of(what);
        // A rare combination may miss by more than any that was met; most must be near.
        assert!(near >= 0.6, "{what}: {near}, worst {worst} %, seed {seed}");
    }
}
