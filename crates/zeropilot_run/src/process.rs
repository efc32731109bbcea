//! Processes as `/proc` shows them.
//!
//! Launchers start ranks in sessions of their own, so a process group does not hold them together. What does is
//! descent: with a subreaper above them even orphans stay below it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use zeropilot_record::Ending;

use crate::signals;

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The one that started it, or adopted it.
    pub parent: i32,
    /// What it does: `R` runs, `S` sleeps, `T` is stopped, `Z` is dead and not yet buried.
    pub state: char,
    /// When it began, in ticks since the machine did; with the number it is unique.
    pub began: u64,
    /// Ticks it computed.
    pub ticks: u64,
    /// Resident pages.
    pages: u64,
    /// Its status, once it is dead.
    status: i32,
}

/// The size of a page where these numbers are read; `/proc` counts in pages.
fn page() -> u64 {
    rustix::param::page_size() as u64
}

impl Process {
    /// The process with this number.
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From a line of `/proc/PID/stat`. The name in it may hold anything, so fields are counted behind it.
    fn parse(pid: i32, text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Numbered as in proc(5), where the state is field 3.
        let field = |number: usize| fields.get(number - 3).copied();
        let count = |number: usize| field(number)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: field(4)?.parse().ok()?,
            state: field(3)?.chars().next()?,
            began: count(22)?,
            ticks: count(14)? + count(15)?,
            pages: count(24)?,
            status: field(52).and_then(|status| status.parse().ok()).unwrap_or(0),
        })
    }

    /// Whether it still lives.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    /// Whether somebody stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Resident bytes.
    pub fn rss(&self) -> u64 {
        self.pages * page()
    }

    /// The most bytes that were ever resident, as the kernel counts them; 0 once it is dead.
    pub fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        kibibytes.map_or(0, |kibibytes: u64| kibibytes << 10)
    }

    /// Whether it has a handler for a signal.
    pub fn handles(&self, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        signals::mask(&status, "SigCgt:") & (1 << (signal - 1)) != 0
    }

    /// The variables it was started with.
    pub fn variables(&self) -> HashMap<String, OsString> {
        let bytes = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let variable = |one: &[u8]| {
            let at = one.iter().position(|byte| *byte == b'=')?;
            let name = String::from_utf8(one[..at].to_vec()).ok()?;
            Some((name, OsString::from_vec(one[at + 1..].to_vec())))
        };
        bytes.split(|byte| *byte == 0).filter_map(variable).collect()
    }

    /// Where it runs.
    pub fn directory(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// How it ended, if it is dead and not buried.
    pub fn ending(&self) -> Option<Ending> {
        if self.state != 'Z' {
            return None;
        }
        Some(match self.status & 0x7f {
            0 => Ending::Exited((self.status >> 8) & 0xff),
            signal => Ending::Signaled(signal),
        })
    }

    /// Sends a signal, if it is still the same process.
    pub fn signal(&self, signal: Signal) {
        let same = Self::read(self.pid).is_some_and(|now| now.began == self.began);
        if same && let Some(pid) = Pid::from_raw(self.pid) {
            // It may end in between, which is what we want anyway.
            let _ = kill_process(pid, signal);
        }
    }
}

/// All processes of the machine.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(Process::read).collect()
}

/// Processes that this one started and that still live.
pub fn children(parent: i32) -> Vec<Process> {
    let own = |process: &Process| process.parent == parent && process.is_alive();
    all().into_iter().filter(own).collect()
}

/// Everything below a process, nearest first.
pub fn descendants(root: i32) -> Vec<Process> {
    below(root, all())
}

fn below(root: i32, all: Vec<Process>) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        found.extend(children.remove(&process.pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// A rank and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Its number in the world.
    pub rank: u32,
    /// Its process.
    pub process: Process,
}

/// The ranks among these: launchers tell each its number. What a rank starts itself inherits the variables, and is none.
pub fn ranks(processes: &[Process]) -> Vec<Rank> {
    let told: HashMap<i32, (u32, u32)> =
        processes.iter().filter_map(|process| Some((process.pid, told(process.pid)?))).collect();
    let is_own = |process: &&Process| told.get(&process.parent) != told.get(&process.pid);
    let mut ranks: Vec<Rank> = processes
        .iter()
        .filter(is_own)
        .filter_map(|process| Some(Rank { rank: told.get(&process.pid)?.0, process: *process }))
        .collect();
    ranks.sort_by_key(|rank| rank.rank);
    ranks
}

/// What the launcher told a process: its rank, here and in the world.
fn told(pid: i32) -> Option<(u32, u32)> {
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        variables.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok()?.parse::<u32>().ok()
        })
    };
    Some((value("RANK")?, value("LOCAL_RANK")?))
}

/// Whether a process is the one that `deepspeed` puts between itself and the ranks of a node.
pub fn is_node_launcher(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
        line.split(|byte| *byte == 0).any(|word| word == b"deepspeed.launcher.launch")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let tail = "0 ".repeat(27);
        let text = format!("7 (a) b) R 9 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 55 0 2 {tail}9");
        let process = Process::parse(7, &text).expect("a process");
        assert_eq!((process.parent, process.state, process.began), (9, 'R', 55));
        assert_eq!((process.ticks, process.rss()), (7, 2 * page()));
        assert!(process.ending().is_none());
        let dead = Process { state: 'Z', ..process };
        assert_eq!(dead.ending(), Some(Ending::Signaled(9)));
    }

    #[test]
    fn this_very_process_is_read() {
        let own = Process::read(std::process::id() as i32).expect("this process");
        assert!(own.is_alive() && own.rss() > 0);
        assert!(
            own.peak() >= own.rss() / 2,
            "the peak is no less than what is there, give or take the batching of counters"
        );
    }

    #[test]
    fn descent_is_followed_to_the_end() {
        let process = |pid, parent| Process {
            pid,
            parent,
            state: 'S',
            began: 0,
            ticks: 0,
            pages: 0,
            status: 0,
        };
        let all = vec![process(5, 4), process(2, 1), process(4, 2), process(3, 1), process(9, 8)];
        let found: Vec<i32> = below(1, all).iter().map(|process| process.pid).collect();
        assert_eq!(found, [2, 3, 4, 5]);
    }
}
