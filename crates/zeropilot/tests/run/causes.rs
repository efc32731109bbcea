//! Why a run ended, where a line of the log or a signal says something else.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::job::{Job, stand_in};

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
        assert!(!job.printed().contains("outside killed a process"), "{}", job.printed());
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
