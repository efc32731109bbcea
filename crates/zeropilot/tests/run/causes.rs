//! Why a run ended, where a line of the log or a signal says something else.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::healthy::alone;
use crate::job::{Job, numbered, stand_in};
use crate::supervised::{or_skipped, signal, workers};

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

/// No rank and no launcher, and a shell between the program and zeropilot.
#[test]
fn a_program_that_crashes_or_is_killed_without_a_launcher_is_told_apart() {
    for (signal, cause, code) in [("SEGV", "crashed", 11), ("KILL", "launcher_killed", 12)] {
        for words in [&["sh", "-c"][..], &["bash", "-c", "sh -c \"$0\"; exit $?"]] {
            let directory = tempfile::tempdir().expect("a directory");
            let record = directory.path().join("record");
            let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
                .current_dir(directory.path())
                .env("ZEROPILOT_RUNS", directory.path().join("runs"))
                .args(["run", "--max-restarts", "0", "--record", "record", "--"])
                .args(words)
                .arg(format!("kill -{signal} $$"))
                .output()
                .expect("zeropilot runs");
            let said = String::from_utf8_lossy(&output.stderr);
            let verdict = fs::read_to_string(record.join("verdict.json")).expect("a verdict");
            let verdict: Value = serde_json::from_str(&verdict).expect("JSON");
            let ended = (output.status.code(), verdict["cause"].as_str());
            assert_eq!(ended, (Some(code), Some(cause)), "{words:?}: {said}");
        }
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

/// The others lose a rank that left without an error, and complain about that: it is named all the same.
#[test]
fn a_rank_that_leaves_early_is_named() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1).running(numbered());
    let arguments = "--steps 100000 --pause 0.3 --leave-at 8";
    let (code, verdict) = job.start(&[], "torchrun", arguments).end();
    let said = (code, verdict["cause"].as_str(), verdict["rank"].as_u64());
    assert_eq!(said, (Some(11), Some("program_failed"), Some(1)), "{}", job.printed());
    assert!(job.printed().contains("rank 1 exited while the others"), "{}", job.printed());
}

/// What PyTorch raises in the rank then is no mistake of the program's.
#[test]
fn a_data_worker_that_was_killed_is_known() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1).running(numbered());
    let mut run = job.start(&[], "torchrun", "--steps 100000 --pause 0.2 --workers 2");
    run.wait_for_step(2);
    let killed = workers(run.rank(1))[0];
    signal("KILL", killed);
    let (code, verdict) = run.end();
    let said = (code, verdict["cause"].as_str(), verdict["rank"].as_u64());
    assert_eq!(said, (Some(12), Some("rank_killed"), Some(1)), "{}", job.printed());
    let line = format!("DataLoader worker (pid {killed}) is killed by signal: Killed");
    assert!(verdict["attempts"][0]["evidence"].to_string().contains(&line), "{verdict:#}");
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

/// Exit status 0 at step 7 of 15: nothing says that the program was done.
#[test]
fn a_program_that_ends_by_itself_before_its_last_step_has_not_completed() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let words = alone("--steps 15 --stop-after 7");
    let (code, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(19), &json!("ended_early")), "{printed}");
    assert_eq!((&verdict["step"], &verdict["total"]), (&json!(7), &json!(15)));
    assert!(printed.contains("ended at step 7 of 15"), "{printed}");
}

/// Standard input is `/dev/null`, and Python says no more than that the input ended.
#[test]
fn a_program_that_asks_for_input_is_told_that_there_is_none() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2);
    fs::write(job.path("ask.py"), "name = input('name of the run: ')\n").expect("a program");
    let words = ["python3", "ask.py"].map(Into::into);
    let (code, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(11), &json!("no_input")), "{printed}");
    assert!(printed.contains("standard input is /dev/null"), "{printed}");
}

/// The loss is finite, and the norm of the gradients is not: a word beside the verdict.
#[test]
fn norms_that_stay_infinite_get_a_word() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let words = alone("--steps 20 --inf-norm-from 4");
    let (code, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(0), &json!("completed")), "{printed}");
    let word = "since step 4, the gradient norm has been NaN or infinite";
    assert_eq!(printed.matches(word).count(), 2, "when it lasts, and at the end: {printed}");
}

/// A mount namespace with a disk of 1 MiB.
#[test]
fn a_disk_that_is_full_is_named_with_its_room() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let small = "mkdir -p small && mount -t tmpfs -o size=1m tmpfs small && exec \"$@\"";
    let directory = tempfile::tempdir().expect("a directory");
    let mut probe = Command::new("unshare");
    probe.current_dir(directory.path()).args(["-m", "sh", "-c", small, "sh", "true"]);
    let probe = match probe.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    if or_skipped("no mount namespace here", probe).is_none() {
        return;
    }
    let job = Job::new(&home, 1).wrapped(&["unshare", "-m", "sh", "-c", small, "sh"]);
    let words = ["sh", "-c", "head -c 4000000 /dev/zero > small/file"].map(Into::into);
    let options = ["--no-preflight", "--checkpoints", "small"];
    let (code, verdict) = job.start_command(&options, &words).end();
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(17), &json!("disk_full")), "{printed}");
    let evidence = verdict["attempts"][0]["evidence"].as_array().expect("evidence").clone();
    let disk = evidence.iter().find_map(|one| one.get("disk")).expect("a disk");
    assert!(disk["mount"].as_str().is_some_and(|mount| mount.ends_with("/small")), "{disk}");
    assert_eq!((&disk["free"], &disk["total"]), (&json!(0), &json!(1 << 20)));
    assert!(printed.contains("0 B of 1.00 MiB free"), "{printed}");
}

/// PyTorch raises again in the rank what its data worker raised.
#[test]
fn an_exception_of_a_data_worker_names_the_worker() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    fs::write(
        job.path("workers.py"),
        "import torch\n\
         class Data(torch.utils.data.Dataset):\n\
         \x20   def __len__(self): return 64\n\
         \x20   def __getitem__(self, index):\n\
         \x20       if index == 5: raise ValueError('bad sample 5')\n\
         \x20       return torch.ones(1)\n\
         for batch in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2): pass\n",
    )
    .expect("a program");
    let words = ["torchrun", "--nproc-per-node", "1", "workers.py"].map(Into::into);
    let (code, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!((code, &verdict["cause"]), (Some(11), &json!("program_failed")), "{printed}");
    // Samples 4 to 7 are the second batch, and thus the second worker's.
    let said = "data worker 1: ValueError: bad sample 5 (";
    assert!(printed.contains(said) && printed.contains("workers.py:5)"), "{printed}");
}

/// What was printed, that all steps were done, is told before the reason of the end.
#[test]
fn a_crash_after_the_last_step_is_told_apart_from_one_before() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let program = "for step in range(1, 13): print(f'step {step}/12 loss 2.0')\n\
                   import os; os.abort()\n";
    fs::write(job.path("end.py"), program).expect("a program");
    let words = ["python3", "-u", "end.py"].map(Into::into);
    let (_, verdict) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_ne!(verdict["cause"], "completed", "{printed}");
    assert!(printed.contains("all 12 training steps were already done"), "{printed}");
}

#[test]
fn a_command_that_cannot_be_started_has_one_reason() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let words = ["no-such-program".into()];
    let (code, _) = job.start_command(&["--no-preflight"], &words).end();
    let printed = job.printed();
    assert_eq!(code, Some(2));
    assert!(
        printed.contains("no-such-program: ") && !printed.contains("did not observe"),
        "{printed}"
    );
}
