//! What is left of runs: records that others find, and the page of one whose supervisor was killed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::healthy::alone;
use crate::job::{Job, stand_in};
use crate::supervised::signal;

fn zeropilot(runs: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
    let output = command.env("ZEROPILOT_RUNS", runs).args(words).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two runs in one directory of checkpoints spoil each other's; the second one says so. Records that are kept elsewhere
/// are listed.
#[test]
fn a_second_run_in_a_directory_of_checkpoints_is_told_of_the_first() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = || Job::new(&home, 2).running(stand_in());
    let (first, second) = (job(), job());
    let runs = first.path("runs");
    let second = second.with("ZEROPILOT_RUNS", &runs);
    let checkpoints = first.path("ckpt").display().to_string();
    let words = |spelled: &str| alone(&format!("--steps 100000 --pause 0.2 --save {spelled}"));
    let mut running = first.start_command(&["--no-preflight"], &words("ckpt"));
    running.wait_for_step(2);
    let mut other = second.start_command(&["--no-preflight"], &words(&format!("{checkpoints}/")));
    other.wait_for_step(2);
    let listed: Value = serde_json::from_str(&zeropilot(&runs, &["runs", "--json"])).expect("JSON");
    let listed = listed.as_array().expect("runs");
    assert_eq!(listed.len(), 2, "{listed:?}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    for run in listed {
        assert_eq!((&run["state"], &run["run"]["host"]), (&json!("running"), &json!(host.trim())));
        assert_eq!(run["run"]["checkpoints"], json!(checkpoints));
    }
    for run in [&running, &other] {
        signal("TERM", run.child.id());
    }
    let said = "writes its checkpoints to";
    assert_eq!(running.end().0, Some(143));
    assert_eq!(other.end().0, Some(143));
    assert!(second.printed().contains(said), "{}", second.printed());
    assert!(!first.printed().contains(said), "{}", first.printed());
}

/// A machine that goes down, or a kill of everything: the page says that the run is lost, with its last lines.
#[test]
fn the_page_of_a_lost_run_says_so_and_has_its_last_lines() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let words = alone("--steps 100000 --pause 0.2");
    let mut run = job.start_command(&["--no-preflight"], &words);
    let tail = job.path("record/tail-1.log");
    run.wait_until("the last lines", |_| {
        fs::read_to_string(&tail).is_ok_and(|text| text.contains("step 2/"))
    });
    signal("KILL", run.child.id());
    run.child.wait().expect("it ends");
    let record = job.path("record");
    zeropilot(&job.path("runs"), &["report", &record.to_string_lossy()]);
    let page = fs::read_to_string(record.join("report.html")).expect("a page");
    assert!(page.contains("lost: zeropilot was killed") && page.contains("step 2/"), "{page}");
}
