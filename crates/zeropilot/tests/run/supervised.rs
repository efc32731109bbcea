//! A run under `zeropilot run`, to which things happen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use zeropilot_record::{Event, RunEvent};

/// Nothing here takes this long, even on a machine that has ten other things to do.
const PATIENCE: Duration = Duration::from_secs(900);

pub(crate) struct Supervised {
    pub(crate) child: Child,
    directory: PathBuf,
    mark: String,
}

impl Supervised {
    pub(crate) fn new(child: Child, directory: &Path, mark: &str) -> Self {
        Self { child, directory: directory.to_owned(), mark: mark.to_owned() }
    }

    pub(crate) fn events(&self) -> Vec<RunEvent> {
        events(&self.directory)
    }

    /// Waits until something is so.
    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            let ended = self.child.try_wait().expect("a status");
            assert!(ended.is_none(), "ended before {what}: {}", self.all());
            assert!(Instant::now() < end, "not in time: {what}: {}", self.all());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until training has come so far.
    pub(crate) fn wait_for_step(&mut self, wanted: u64) {
        self.wait_until("a step", |run| {
            run.events()
                .iter()
                .any(|event| matches!(event, RunEvent::Step { step, .. } if *step >= wanted))
        });
    }

    /// The process of a rank in the last attempt.
    pub(crate) fn rank(&self, wanted: u32) -> u32 {
        let mut pids = self.events().into_iter().rev().filter_map(|event| match event {
            RunEvent::RankSeen { rank, pid } if rank == wanted => Some(pid),
            _ => None,
        });
        pids.next().expect("the rank was seen")
    }

    /// The process of the command in the last attempt.
    pub(crate) fn launcher(&self) -> u32 {
        let mut pids = self.events().into_iter().rev().filter_map(|event| match event {
            RunEvent::AttemptStarted { pid, .. } => Some(pid),
            _ => None,
        });
        pids.next().expect("the command was started")
    }

    /// Waits for the end: the exit code and the verdict, with no process left.
    pub(crate) fn end(mut self) -> (Option<i32>, Value) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(Instant::now() < end, "does not end: {}", self.all());
            std::thread::sleep(Duration::from_millis(50));
        };
        self.assert_nothing_is_left(Duration::from_secs(10));
        let verdict = fs::read_to_string(self.directory.join("record/verdict.json"));
        let verdict =
            verdict.map_or(Value::Null, |text| serde_json::from_str(&text).expect("JSON"));
        (status.code(), verdict)
    }

    /// No process of this job lives, at the latest after this long.
    pub(crate) fn assert_nothing_is_left(&self, within: Duration) {
        let end = Instant::now() + within;
        loop {
            let left = marked(&self.mark);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "processes are left: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn all(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        let err = read("err.log");
        let tail: Vec<&str> = err.lines().rev().take(40).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        format!("{}\n{}\n{:?}", tail.join("\n"), read("record/verdict.json"), self.events())
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // A test that failed must not leave ranks to those after it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What happened in the run of a directory.
pub(crate) fn events(directory: &Path) -> Vec<RunEvent> {
    let text = fs::read_to_string(directory.join("record/events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| Event::read(line).ok()).map(|event| event.happening).collect()
}

/// Living processes with this mark in their environment.
pub(crate) fn marked(mark: &str) -> Vec<(i32, String)> {
    let variable = format!("ZEROPILOT_TEST_MARK={mark}");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
        })
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Takes from a process, and all that it starts from now on, memory for data above a limit.
pub(crate) fn limit_data(pid: u32, bytes: u64) {
    let limit = format!("--data={bytes}");
    let done = Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status();
    assert!(done.expect("prlimit runs").success());
}

/// Sends a signal by name.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "kill -{name} {pid}");
}

/// The processes that load the data of a rank: copies of it.
pub(crate) fn workers(rank: u32) -> Vec<u32> {
    let line = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{rank}/task")).expect("the rank lives").flatten();
    let children = threads.filter_map(|one| fs::read_to_string(one.path().join("children")).ok());
    let children = children.collect::<Vec<String>>().concat();
    let copies = children.split_whitespace().filter(|pid| line(pid) == line(&rank.to_string()));
    copies.filter_map(|pid| pid.parse().ok()).collect()
}

/// The process of `deepspeed` on this node, between the command and the ranks.
pub(crate) fn node_launcher(mark: &str) -> u32 {
    let found =
        marked(mark).into_iter().find(|(_, line)| line.contains("deepspeed.launcher.launch"));
    u32::try_from(found.expect("the launcher of the node").0).expect("a process")
}

/// Whether a program is here that `.ci/run` installs, so that a test of it may only be skipped elsewhere.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    assert!(is_there || std::env::var_os("CI").is_none(), "{program} is missing: see .ci/run");
    is_there
}

/// Says loudly why a machine cannot try something, where it is `Err`.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn or_skipped<T>(what: &str, had: Result<T, String>) -> Option<T> {
    had.inspect_err(|why| eprintln!("SKIPPED: {what}: {why}")).ok()
}
