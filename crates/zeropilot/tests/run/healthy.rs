//! Runs that are as they should be, and look otherwise: they are left alone.

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::job::{Job, numbered, stand_in};
use crate::supervised::{marked, signal, workers};

fn job() -> Option<Job> {
    Some(Job::new(&zeropilot_oracle::home()?, 2).running(stand_in()))
}

/// The stand-in without a launcher: one process that is rank 0.
pub(crate) fn alone(arguments: &str) -> Vec<OsString> {
    let program = stand_in();
    let words = ["env", "RANK=0", "LOCAL_RANK=0", "python3"].map(OsString::from).into_iter();
    words
        .chain([program.into_os_string()])
        .chain(arguments.split(' ').map(OsString::from))
        .collect()
}

/// A scheduler suspends a job with everything in it, for longer than silence may last.
#[test]
fn a_job_that_was_suspended_goes_on() {
    let Some(job) = job() else { return };
    let options = ["--hang-after", "8s", "--no-preflight"];
    let mut run = job.start_command(&options, &alone("--steps 40 --pause 0.2"));
    run.wait_for_step(3);
    let all = marked(&job.mark);
    let each = |name: &str| {
        all.iter().for_each(|(pid, _)| signal(name, u32::try_from(*pid).expect("a process")));
    };
    each("STOP");
    std::thread::sleep(Duration::from_secs(12));
    each("CONT");
    // What it printed is on disk while it lives: whoever is killed leaves it behind.
    let tail = job.path("record/tail-1.log");
    run.wait_until("the last lines", |_| {
        fs::read_to_string(&tail).is_ok_and(|text| text.contains("step 2/"))
    });
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
}

/// Ctrl-Z: the run stops with zeropilot, and goes on with it.
#[test]
fn a_terminal_suspends_the_run_too() {
    let Some(job) = job() else { return };
    let options = ["--hang-after", "8s", "--no-preflight"];
    let mut run = job.start_command(&options, &alone("--steps 60 --pause 0.1"));
    run.wait_for_step(3);
    signal("TSTP", run.child.id());
    let is_stopped = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    let (own, rank) = (run.child.id(), run.rank(0));
    run.wait_until("all stop", |_| is_stopped(own) && is_stopped(rank));
    signal("CONT", own);
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
}

/// Slurm warns with SIGUSR1 before the time is up. The launcher has no handler and must not get it.
#[test]
fn a_warning_of_the_scheduler_reaches_those_that_handle_it() {
    let Some(job) = job() else { return };
    let arguments = "--steps 100000 --pause 0.05 --save ckpt --save-every 1000000 --save-on-usr1";
    let mut run = job.start(&[], "torchrun", arguments);
    run.wait_for_step(3);
    signal("USR1", run.child.id());
    let latest = job.path("ckpt/latest");
    run.wait_until("a checkpoint", |_| latest.is_file());
    signal("USR2", run.child.id());
    run.wait_until("the word", |_| job.printed().contains("did not forward signal 12"));
    signal("TERM", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!((code, &verdict["cause"]), (Some(143), &json!("interrupted")), "{}", job.printed());
}

/// A rank starts something that outlives it: no rank, and no reason to train again.
#[test]
fn what_a_rank_leaves_behind_is_no_rank() {
    let Some(job) = job() else { return };
    let options = ["--resume-with", "--resume {}"];
    let arguments = "--steps 10 --pause 0.3 --save ckpt --helper";
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    let attempts = verdict["attempts"].as_array().map(Vec::len);
    assert_eq!((code, attempts), (Some(0), Some(1)), "{verdict:#}\n{}", job.printed());

    let Some(job) = self::job() else { return };
    let arguments =
        "--steps 100 --pause 0.2 --helper --fault SIGKILL --fault-rank 1 --fault-step 10";
    let (code, verdict) = job.start(&[], "torchrun", arguments).end();
    let said = (verdict["cause"].as_str(), verdict["rank"].as_u64());
    assert_eq!((code, said), (Some(12), (Some("rank_killed"), Some(1))), "{}", job.printed());
}

/// Data workers are copies of a rank and have its number. They outlive it for a moment, under both launchers.
#[test]
fn data_workers_are_no_ranks() {
    let Some(home) = zeropilot_oracle::home() else { return };
    for launcher in ["torchrun", "deepspeed"] {
        let job = Job::new(&home, 1).running(numbered());
        let mut run = job.start(&[], launcher, "--steps 100000 --pause 0.2 --workers 2");
        run.wait_for_step(2);
        let rank = run.rank(1);
        assert_eq!(workers(rank).len(), 2, "{launcher}");
        signal("KILL", rank);
        let (code, verdict) = run.end();
        let said = (code, verdict["cause"].as_str());
        assert_eq!(said, (Some(12), Some("rank_killed")), "{launcher}: {}", job.printed());
        assert!(verdict["rank"].is_null() || verdict["rank"] == 1, "{launcher}: {verdict:#}");
    }
}

/// A thread prints for ever while the rank waits: that is a hang all the same.
#[test]
fn whoever_prints_and_makes_no_step_hangs() {
    let Some(job) = job() else { return };
    let arguments = "--steps 40 --pause 0.1 --heartbeat --fault sleep --fault-step 5";
    let options = ["--hang-after", "10s", "--no-preflight"];
    let (code, verdict) = job.start_command(&options, &alone(arguments)).end();
    assert_eq!((code, &verdict["cause"]), (Some(14), &json!("hang")), "{}", job.printed());
    let Some(job) = self::job() else { return };
    let options = ["--hang-after", "off", "--step-timeout", "5s", "--no-preflight"];
    let (code, verdict) = job.start_command(&options, &alone(arguments)).end();
    assert_eq!((code, &verdict["cause"]), (Some(14), &json!("hang")), "{}", job.printed());
}

/// A node without rank 0 prints nothing at all, and computes: that is left alone beyond the ten minutes that a start may take.
#[test]
fn a_node_that_prints_nothing_is_left_alone_as_long_as_it_computes() {
    let Some(job) = job().filter(|_| zeropilot_oracle::is_thorough()) else { return };
    let mut words = alone("--steps 2200 --pause 0.25 --compute 0.05");
    let rank = words.iter().position(|word| word == "RANK=0").expect("a rank");
    words[rank] = "RANK=1".into();
    let options = ["--hang-after", "20s", "--no-preflight"];
    let (code, verdict) = job.start_command(&options, &words).end();
    assert_eq!((code, &verdict["cause"]), (Some(0), &json!("completed")), "{}", job.printed());
    assert!(verdict["seconds"].as_f64() > Some(620.0), "{verdict:#}");
}

/// Ctrl-\ asks to end, like Ctrl-C.
#[test]
fn a_quit_ends_everything_in_order() {
    let Some(job) = job() else { return };
    let mut run = job.start_command(&["--no-preflight"], &alone("--steps 100000 --pause 0.2"));
    run.wait_for_step(2);
    signal("QUIT", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!((code, &verdict["cause"]), (Some(131), &json!("interrupted")), "{}", job.printed());
    assert_eq!(verdict["signal"], 3);
}

/// Bars that go back to the start of their line, colors, bytes that are no text, text apart from its newline, and an end
/// without one.
const PRINTER: &str = r#"
import sys, time
for i in range(12):
    for stream in (sys.stdout.buffer, sys.stderr.buffer):
        stream.write(b"\r\x1b[32m%3d%%|\xe2\x96\x88" % i); stream.flush(); time.sleep(0.02)
        stream.write(b"  | %d/12 [00:01<00:03]\x1b[0m\x1b[K" % i); stream.flush()
    sys.stdout.buffer.write(b"step %d/12 loss 1.5" % i); sys.stdout.flush(); time.sleep(0.1)
    sys.stdout.buffer.write(b"\n\n"); sys.stdout.flush()
sys.stdout.buffer.write(b"\x00\xff\xfe \xe2\x96 \r\r\n\t no end"); sys.stdout.flush()
sys.stderr.buffer.write(b"\xff\r no end"); sys.stderr.flush()
"#;

#[test]
fn what_a_program_prints_is_passed_on_byte_for_byte() {
    let directory = tempfile::tempdir().expect("a directory");
    let printed = |command: &mut Command| {
        let output = command
            .args(["python3", "-c", PRINTER])
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let bare = printed(&mut Command::new("env"));
    assert!(bare.stdout.len() > 500 && bare.stderr.len() > 300);
    let supervised = printed(Command::new(env!("CARGO_BIN_EXE_zeropilot")).args([
        "run",
        "--no-preflight",
        "--",
    ]));
    assert_eq!(supervised.stdout, bare.stdout);
    // Before and behind it zeropilot has its own words there, and none in between.
    let is_whole = supervised.stderr.windows(bare.stderr.len()).any(|part| part == bare.stderr);
    assert!(is_whole, "{}", String::from_utf8_lossy(&supervised.stderr));
}

/// A terminal that is held (Ctrl-S), a pager, a log on a lost disk: nobody reads, and the run can still be ended.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending_the_run() {
    let Some(job) = job() else { return };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let program = stand_in();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(job.directory.path())
        .args(["run", "--record", "record", "--grace", "1s", "--no-preflight", "--", "python3"])
        .arg(program)
        .args(["--steps", "100000000"])
        .env("ZEROPILOT_TEST_MARK", &job.mark)
        .env("ZEROPILOT_RUNS", job.path("runs"))
        .stdin(std::process::Stdio::null())
        .stdout(writer.try_clone().expect("a pipe"))
        .stderr(writer)
        .spawn()
        .expect("zeropilot starts");
    let steps = || crate::supervised::events(job.directory.path()).len();
    let end = std::time::Instant::now() + Duration::from_secs(300);
    // Once the pipe is full, nothing is recorded any more.
    let mut before = usize::MAX;
    while before != steps() || steps() < 3 {
        assert!(std::time::Instant::now() < end, "the pipe is never full");
        before = steps();
        std::thread::sleep(Duration::from_secs(3));
    }
    signal("TERM", child.id());
    while child.try_wait().expect("a status").is_none() {
        assert!(std::time::Instant::now() < end, "it does not end");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(child.wait().expect("a status").code(), Some(143));
    drop(reader);
}

/// `killall -9 zeropilot` and `pkill -9 -f bin/zeropilot` end the supervisor; its guard has another name and ends the rest.
#[test]
fn whoever_kills_by_name_leaves_the_guard() {
    let Some(job) = job() else { return };
    let arguments = "--steps 100000 --pause 0.2";
    let mut run = job.start_command(&["--no-preflight"], &alone(arguments));
    run.wait_for_step(3);
    for (pid, _) in marked(&job.mark) {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let words = read("cmdline");
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        if read("comm") == b"zeropilot\n" || program.ends_with(b"zeropilot") {
            signal("KILL", u32::try_from(pid).expect("a process"));
        }
    }
    run.child.wait().expect("it ends");
    run.assert_nothing_is_left(Duration::from_secs(60));
}
