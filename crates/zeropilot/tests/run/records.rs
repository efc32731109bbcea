//! What is left of runs: records that others find, and the page of one whose supervisor was killed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::healthy::alone;
use crate::job::{Job, stand_in};
use crate::supervised::{or_skipped, signal};

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

/// A file system of its own for the record, which something else fills while the run goes on.
#[test]
fn a_record_on_a_full_disk_costs_the_record_and_not_the_run() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let small = "mkdir record && mount -t tmpfs -o size=256k tmpfs record || exit; \
        (until [ -s record/events.jsonl ]; do sleep 0.1; done; cat /dev/zero >record/full) 2>/dev/null & \
        \"$@\"; code=$?; df record >df.log; exit $code";
    let probe = "mount -t tmpfs tmpfs /mnt";
    let probe = Command::new("unshare").args(["-m", "sh", "-c", probe]).output();
    let probe = match probe {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    if or_skipped("no mount namespace here", probe).is_none() {
        return;
    }
    let wrapper = ["unshare", "-m", "sh", "-c", small, "sh"];
    let job = Job::new(&home, 2).running(stand_in()).wrapped(&wrapper);
    let words = alone("--steps 120 --pause 0.1");
    let (code, _) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("step 120/120"), "{printed}");
    let full = fs::read_to_string(job.path("df.log")).expect("its size");
    assert!(full.contains("100%"), "{full}");
    assert_eq!(printed.matches("is incomplete: ").count(), 1, "said once: {printed}");
    assert!(printed.contains("No space left on device"), "{printed}");
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

/// What one asks for once a run is over: on the terminal and in the list.
#[test]
fn the_end_and_the_list_say_how_far_a_run_came() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let words = alone("--steps 20 --pause 0.1 --save ckpt --save-every 8");
    let (code, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!(code, Some(0), "{printed}");
    // The stand-in prints a loss of 4 / step.
    for said in [
        "step 20/20 · loss 0.2000 · duration 0:",
        "peak host memory of a rank (RSS): ",
        "newest checkpoint: step 16, ",
        "report: zeropilot report ",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    let last = &verdict["attempts"][0];
    assert_eq!((&last["total_steps"], &last["last_loss"]), (&json!(20), &json!(0.2)));
    let saved = &verdict["checkpoint"];
    assert!(saved["step"] == json!(16) && saved["at"].is_f64(), "{verdict:#}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let listed = zeropilot(&job.path("runs"), &["runs"]);
    let line = listed.lines().nth(1).expect("a run");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        (&cells[1..4], cells[5], cells[6]),
        (&["completed", "20/20", "0.2000"][..], "0", host.trim()),
        "{listed}"
    );
    // The command that is shown works.
    let report =
        printed.lines().find_map(|line| line.trim().strip_prefix("report: zeropilot report "));
    zeropilot(&job.path("runs"), &["report", report.expect("a command")]);
    assert!(job.path("record/report.html").is_file());
}

/// The command that continues an interrupted run is shown, and works as it is.
#[test]
fn the_end_has_the_command_that_continues_the_run() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let words = alone("--steps 60 --pause 0.1 --save ckpt --save-every 2");
    let options = ["--no-preflight", "--resume-with", "--resume {}"];
    let mut run = job.start_command(&options, &words);
    run.wait_for_step(8);
    signal("TERM", run.child.id());
    assert_eq!(run.end().0, Some(143));
    let printed = job.printed();
    let shown = printed.lines().find_map(|line| line.trim().strip_prefix("continue: zeropilot "));
    let shown = shown.unwrap_or_else(|| panic!("{printed}"));
    let continued = Command::new("sh")
        .current_dir(job.directory.path())
        .env("ZEROPILOT_RUNS", job.path("runs"))
        .args(["-c", &format!("{} {shown}", env!("CARGO_BIN_EXE_zeropilot"))])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&continued.stdout).into_owned();
    assert_eq!(continued.status.code(), Some(0), "{said}");
    assert!(said.contains("step 60/60") && !said.contains("step 1/60"), "{said}");
}

/// A pipe that nobody reads would be waited for before the start, without a word.
#[test]
fn a_pipe_that_nobody_reads_is_reported() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let made = Command::new("mkfifo").arg(job.path("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    let words = alone("--steps 3");
    let (code, _) = job.start_command(&["--no-preflight", "--events", "pipe"], &words).end();
    assert_eq!(code, Some(2));
    assert!(job.printed().contains("no process reads the named pipe"), "{}", job.printed());
    assert!(!job.path("record").exists());
}
