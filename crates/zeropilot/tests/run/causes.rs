//! Why a run ended, where a line of the log or a signal says something else.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::job::{Job, stand_in};
use crate::supervised::or_skipped;

/// What became of two ranks of the stand-in under a launcher.
fn ended(options: &[&str], launcher: &str, arguments: &str) -> Option<(Job, Option<i32>, Value)> {
    let job = Job::new(&zeropilot_oracle::home()?, 2).running(stand_in());
    let (code, verdict) = job.start(options, launcher, arguments).end();
    Some((job, code, verdict))
}

#[test]
fn a_shortage_that_was_survived_is_not_why_a_later_exception_ended_the_run() {
    let Some((job, code, verdict)) = ended(
        &["--fallback"],
        "torchrun",
        "--steps 9 --pause 0.1 --warn-step 3 --warning CUDA_out_of_memory:torch.OutOfMemoryError \
         --fault key --fault-step 8 --fault-rank 1",
    ) else {
        return;
    };
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(11), &json!("program_failed")), "{printed}");
    assert_eq!(
        (&verdict["rank"], verdict["attempts"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );
    assert!(
        printed.contains("KeyError: 'labels_typo' (") && printed.contains("stand_in.py:"),
        "{printed}"
    );
}

#[test]
fn a_crash_is_the_programs_own_and_a_watchdogs_abort_is_a_timeout() {
    for (fault, cause, code) in [("SIGSEGV", "crashed", 11), ("watchdog", "collective_timeout", 13)]
    {
        let arguments =
            format!("--steps 9 --pause 0.2 --fault {fault} --fault-step 4 --fault-rank 1");
        let Some((job, ended, verdict)) = ended(&[], "torchrun", &arguments) else { return };
        let said = (ended, verdict["cause"].as_str());
        assert_eq!(said, (Some(code), Some(cause)), "{}", job.printed());
        assert!(
            !job.printed().contains("to find out what killed the process"),
            "{}",
            job.printed()
        );
    }
}

/// As earlyoom or systemd-oomd do it.
#[test]
fn a_rank_that_gets_sigterm_under_deepspeed_was_killed() {
    let arguments = "--steps 100 --pause 0.2 --fault SIGTERM --fault-step 8 --fault-rank 1";
    let Some((job, code, verdict)) = ended(&[], "deepspeed", arguments) else { return };
    let said = (code, verdict["cause"].as_str(), verdict["signal"].as_i64());
    assert_eq!(said, (Some(12), Some("rank_killed"), Some(15)), "{}", job.printed());
}

#[test]
fn a_port_that_is_taken_is_named() {
    let listener = TcpListener::bind(("0.0.0.0", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let launcher = format!("torchrun --nproc-per-node 2 --master-port {port}");
    let Some((job, code, verdict)) = ended(&[], &launcher, "--steps 3") else { return };
    let said = (code, verdict["cause"].as_str());
    assert_eq!(said, (Some(21), Some("no_rendezvous")), "{}", job.printed());
}

#[test]
fn numbers_that_are_none_are_named_with_their_first_step_and_stop_a_run_that_asks() {
    let arguments = "--steps 12 --nan-from 8";
    let Some((job, code, verdict)) = ended(&[], "torchrun", arguments) else { return };
    assert_eq!((code, &verdict["cause"]), (Some(15), &json!("not_finite")), "{}", job.printed());
    assert!(job.printed().contains("since step 8"), "{}", job.printed());
    let arguments = "--steps 100000 --pause 0.2 --nan-from 8";
    let Some((job, code, verdict)) = ended(&["--stop-on-nan"], "torchrun", arguments) else {
        return;
    };
    assert_eq!((code, &verdict["cause"]), (Some(15), &json!("not_finite")), "{}", job.printed());
}

const ENDS: &str = include_str!("../../../../knowledge/messages/ends.jsonl");

#[test]
fn what_libraries_print_when_a_run_ends_is_recognized() {
    let directory = tempfile::tempdir().expect("a directory");
    for line in ENDS.lines() {
        let end: Value = serde_json::from_str(line).expect("a line of JSON");
        fs::write(directory.path().join("said"), end["message"].as_str().expect("a message"))
            .expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .args(["run", "--record", "record", "--", "sh", "-c", "cat said >&2; exit 1"])
            .output()
            .expect("zeropilot runs");
        let verdict = fs::read(directory.path().join("record/verdict.json")).expect("a verdict");
        let verdict: Value = serde_json::from_slice(&verdict).expect("JSON");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(verdict["cause"], end["cause"], "{}: {said}", end["source"]);
    }
}

/// As `zeropilot diagnose` says it of the same lines.
#[test]
fn memory_that_ran_out_is_explained_at_the_end() {
    let arguments = "--steps 9 --fault oom --fault-step 4 --fault-rank 1";
    let Some((job, code, verdict)) = ended(&[], "torchrun", arguments) else { return };
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(10), &json!("out_of_memory")), "{printed}");
    let diagnosed = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(["diagnose", "--json", "record/tail-1.log"])
        .current_dir(job.directory.path())
        .output()
        .expect("zeropilot runs");
    let diagnosed: Value = serde_json::from_slice(&diagnosed.stdout).expect("JSON");
    let kept = fs::read(job.path("record/diagnosis.json")).expect("a diagnosis");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!((&kept["cause"], &kept["evidence"]), (&diagnosed["cause"], &diagnosed["evidence"]));
    assert!(kept["cause"].is_string(), "{kept:#}");
    assert!(
        printed.contains("cause of the memory shortage") && printed.contains("Change first"),
        "{printed}"
    );
}

/// A mount namespace with a `/dev/shm` of 4 MB, and data workers that share batches of 16 MB.
#[test]
fn shared_memory_that_is_too_small_is_named() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let small = "mount -t tmpfs -o size=4m tmpfs /dev/shm && exec \"$@\"";
    let probe = Command::new("unshare").args(["-m", "sh", "-c", small, "sh", "true"]).output();
    let probe = match probe {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    if or_skipped("no mount namespace here", probe).is_none() {
        return;
    }
    let job = Job::new(&home, 1).wrapped(&["unshare", "-m", "sh", "-c", small, "sh"]);
    fs::write(
        job.path("workers.py"),
        "import torch\n\
         class Data(torch.utils.data.Dataset):\n\
         \x20   def __len__(self): return 64\n\
         \x20   def __getitem__(self, index): return torch.ones(1 << 20)\n\
         for batch in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2): pass\n",
    )
    .expect("a program");
    let words = ["torchrun", "--nproc-per-node", "1", "workers.py"].map(Into::into);
    let (code, verdict) = job.start_command(&[], &words).end();
    let said = (code, verdict["cause"].as_str());
    assert_eq!(said, (Some(22), Some("shared_memory_full")), "{}", job.printed());
    assert!(job.printed().contains("--shm-size"), "{}", job.printed());
}
