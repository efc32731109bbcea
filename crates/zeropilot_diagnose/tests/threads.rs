//! Messages of public threads against the cause that each thread ended with (`knowledge/messages`).

use serde::Deserialize;
use zeropilot_diagnose::{Cause, Phase, diagnose};

#[derive(Deserialize)]
struct Thread {
    source: String,
    phase: Option<Phase>,
    cause: Cause,
    why: String,
    message: String,
}

fn threads() -> Vec<Thread> {
    let lines = include_str!("../../../knowledge/messages/out_of_memory.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a thread")).collect()
}

/// Of 30 messages; of those that are missed the cause stands only in the thread, not in the lines.
const RIGHT: usize = 27;

#[test]
fn the_cause_is_the_one_that_the_thread_ended_with() {
    let threads = threads();
    assert!(threads.len() >= 25);
    let mut missed = Vec::new();
    for thread in &threads {
        let found =
            diagnose(&thread.message).unwrap_or_else(|| panic!("{}: nothing", thread.source));
        if found.cause != thread.cause {
            let Thread { source, cause, why, .. } = thread;
            missed.push(format!("{source}: {:?}, not {cause:?} ({why})", found.cause));
        }
        assert!(!found.evidence.is_empty(), "{}", thread.source);
    }
    eprintln!("missed {} of {}:\n{}", missed.len(), threads.len(), missed.join("\n"));
    assert_eq!(threads.len() - missed.len(), RIGHT, "{missed:#?}");
}

#[test]
fn the_phase_is_the_one_that_the_traceback_shows() {
    let wrong: Vec<String> = threads()
        .iter()
        .filter_map(|thread| {
            let found = diagnose(&thread.message)?.phase;
            (found != thread.phase).then(|| format!("{}: {found:?}", thread.source))
        })
        .collect();
    // Written by hand with arrows, not by Python.
    assert_eq!(wrong, ["NVIDIA-NeMo/RL#2871: None"]);
}
