//! Messages of public threads against the cause that each thread ended with (`knowledge/messages`).

use serde::Deserialize;
use zeropilot_diagnose::{Cause, Phase, diagnose};

#[derive(Deserialize)]
struct Thread {
    source: String,
    #[serde(default)]
    later: bool,
    phase: Option<Phase>,
    cause: Cause,
    why: String,
    message: String,
}

fn threads() -> Vec<Thread> {
    let lines = include_str!("../../../knowledge/messages/out_of_memory.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a thread")).collect()
}

/// Right of the 30 that were known from the beginning, and of the 28 that came later. It is no measure of how often zeropilot is
/// right: when it first saw those 28, it was 12 times (`knowledge/messages/README.md`).
const RIGHT: [usize; 2] = [27, 23];

#[test]
fn the_cause_is_the_one_that_the_thread_ended_with() {
    let mut right = [0, 0];
    let mut missed = Vec::new();
    for thread in &threads() {
        let Thread { source, cause, why, .. } = thread;
        let found = diagnose(&thread.message).unwrap_or_else(|| panic!("{source}: nothing"));
        assert!(!found.evidence.is_empty(), "{source}");
        if found.cause == *cause {
            right[usize::from(thread.later)] += 1;
        } else {
            missed.push(format!("{source}: {:?}, not {cause:?} ({why})", found.cause));
        }
    }
    eprintln!("missed:\n{}", missed.join("\n"));
    assert_eq!(right, RIGHT, "{missed:#?}");
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
    let expected = [
        // Written by hand with arrows, not by Python.
        "NVIDIA-NeMo/RL#2871: None",
        // The frames stand behind the message, where nobody looked who wrote the phase down.
        "nianticlabs/monodepth2#236: Some(Forward)",
        // Only a progress bar shows it.
        "catalyst-team/catalyst#143: None",
    ];
    assert_eq!(wrong, expected);
}
