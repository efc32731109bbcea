//! The process between zeropilot and the launcher, which lets no rank outlive a run.
//!
//! It is a subreaper, so whatever the launcher starts stays below it, in whatever session. Its standard input is a
//! socket to zeropilot: [`Order`]s come in, [`Report`]s go out, and when zeropilot is gone, killed or not, the socket
//! closes and the guard ends everything. zeropilot is a subreaper as well, for the case that the guard is killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, getpid, set_child_subreaper, wait};
use serde::{Deserialize, Serialize};
use zeropilot_record::Ending;

use crate::process::descendants;

/// What zeropilot tells the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Send a signal to everything.
    Signal(i32),
    /// Send a signal to those that handle it; it would end the others.
    Pass(i32),
    /// End everything now.
    Kill,
}

/// What the guard tells zeropilot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The command runs.
    Started(u32),
    /// The command could not be started.
    Failed(String),
    /// The command ended; what it started may still run.
    Ended(Ending),
    /// A signal was passed on to so many processes.
    Passed { signal: i32, processes: usize },
}

/// The guard's name: whoever ends zeropilot by its name must not end the one that cleans up behind it.
pub(crate) const NAME: &str = "zp-guard";

/// How long ranks may take to end once zeropilot is gone.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a command as its guard. Called by a process that was started for this alone.
pub fn guard(command: &[OsString]) -> u8 {
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return 2 };
    let socket = UnixStream::from(socket);
    // Signals of the terminal are zeropilot's to judge; a handler, unlike ignoring, is not inherited.
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::TSTP,
    ] {
        let _ = signal_hook::flag::register(signal.as_raw(), ignored.clone());
    }
    let _ = set_child_subreaper(Some(getpid()));
    let _ = std::fs::write("/proc/self/comm", NAME);
    let command = shielded(command.to_vec());
    let Some((program, arguments)) = command.split_first() else { return 2 };
    let started =
        Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).spawn();
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            tell(&socket, &Report::Failed(format!("{}: {error}", program.display())));
            return 2;
        }
    };
    tell(&socket, &Report::Started(child.id()));
    if let (Ok(orders), Ok(reports)) = (socket.try_clone(), socket.try_clone()) {
        thread::spawn(move || obey(orders, &reports));
    }
    bury(&socket, i32::try_from(child.id()).unwrap_or(0));
    0
}

/// The command with SIGUSR1 and SIGUSR2 ignored, if Slurm may send them: to warn a job, it signals every process of a step
/// and not zeropilot alone, and launchers do not handle these signals. Ranks find them as they were (`sitecustomize.py`).
fn shielded(command: Vec<OsString>) -> Vec<OsString> {
    let is_there = |program: &OsString| {
        if Path::new(program).components().count() > 1 {
            return Path::new(program).is_file();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|place| place.join(program).is_file())
    };
    // What cannot be started is best said by the system.
    if std::env::var_os("SLURM_JOB_ID").is_none() || !command.first().is_some_and(is_there) {
        return command;
    }
    let shell = ["sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh"].map(OsString::from);
    shell.into_iter().chain(command).collect()
}

/// Waits for everything below, until nothing is left.
fn bury(socket: &UnixStream, command: i32) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command => {
                let ending = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ending::Exited(code),
                    (None, Some(signal)) => Ending::Signaled(signal),
                    (None, None) => continue,
                };
                tell(socket, &Report::Ended(ending));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn obey(orders: UnixStream, reports: &UnixStream) {
    let root = getpid().as_raw_nonzero().get();
    for line in BufReader::new(orders).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(Order::Signal(signal)) => signal_all(root, signal),
            Ok(Order::Pass(signal)) => {
                let processes = pass(root, signal);
                tell(reports, &Report::Passed { signal, processes });
            }
            Ok(Order::Kill) => kill_all(root),
            Err(_) => {}
        }
    }
    // zeropilot is gone.
    signal_all(root, Signal::TERM.as_raw());
    let end = Instant::now() + GRACE;
    while Instant::now() < end && !descendants(root).is_empty() {
        thread::sleep(Duration::from_millis(50));
    }
    kill_all(root);
}

fn tell(mut socket: &UnixStream, report: &Report) {
    let line = serde_json::to_string(report).unwrap_or_default();
    // If zeropilot is gone there is nobody to tell.
    let _ = writeln!(socket, "{line}");
}

/// Sends a signal to everything below a process.
pub(crate) fn signal_all(root: i32, signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    for process in descendants(root) {
        process.signal(signal);
    }
}

/// Sends a signal to everything below a process that has a handler for it.
fn pass(root: i32, signal: i32) -> usize {
    let Some(named) = Signal::from_named_raw(signal) else { return 0 };
    let handling = descendants(root).into_iter().filter(|process| process.handles(signal));
    handling.map(|process| process.signal(named)).count()
}

/// Kills everything below a process, and what that starts meanwhile.
pub(crate) fn kill_all(root: i32) {
    loop {
        let living: Vec<_> =
            descendants(root).into_iter().filter(|process| process.is_alive()).collect();
        if living.is_empty() {
            return;
        }
        for process in living {
            process.signal(Signal::KILL);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
