//! Whether the kernel killed for memory: counters of the control group, and the kernel's log where it may be read.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::memory_group::{MemoryGroup, memory_groups};

/// The kernel's counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OomCounters {
    /// Files that count kills, and what they said.
    counted: Vec<(PathBuf, u64)>,
}

impl OomCounters {
    /// Reads the counters of this process's control groups.
    pub(crate) fn read() -> Self {
        let mut counters = Self::default();
        counters.add("self");
        counters
    }

    /// Adds those of another process, which may be in groups of its own.
    pub(crate) fn add(&mut self, process: &str) {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let added = Self::of(&files(&groups, Path::new("/sys/fs/cgroup"))).counted;
        for (file, count) in added {
            if !self.counted.iter().any(|(known, _)| *known == file) {
                self.counted.push((file, count));
            }
        }
    }

    fn of(files: &[PathBuf]) -> Self {
        let counted = files.iter().filter_map(|file| Some((file.clone(), kills(file)?))).collect();
        Self { counted }
    }

    /// Kills since then.
    pub(crate) fn kills_since(&self) -> u64 {
        let grown = |(file, before): &(PathBuf, u64)| kills(file)?.checked_sub(*before);
        self.counted.iter().filter_map(grown).max().unwrap_or(0)
    }
}

/// Where a process of these groups finds its counters: version 2 has `memory.events`, version 1 `memory.oom_control`.
fn files(groups: &str, root: &Path) -> Vec<PathBuf> {
    let of = |group: &MemoryGroup| group.directory.join(group.version.counters());
    memory_groups(groups, root).iter().map(of).collect()
}

/// Both versions write the number behind the same name.
fn kills(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

/// Processes that the kernel's log says were killed for memory; nothing if the log may not be read.
pub(crate) fn killed_by_kernel() -> Vec<i32> {
    const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let log = fs::OpenOptions::new().read(true).custom_flags(NONBLOCK).open("/dev/kmsg");
    let Ok(mut log) = log else { return Vec::new() };
    let mut record = [0; 8192];
    let mut found = Vec::new();
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(count) => found.extend(victim(&String::from_utf8_lossy(&record[..count]))),
            // Older records were overwritten; the next read goes on behind them.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(_) => break,
        }
    }
    found
}

/// Whether processes have the same numbers here as in the kernel's log.
pub(crate) fn sees_all_numbers() -> bool {
    // The first namespace has a number of its own in every kernel.
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new(FIRST))
}

/// How many processes of a run the kernel killed. Its counters also count those of others in the same group; where its log
/// names victims, and none of them is of the run, they were of others.
pub(crate) fn own_kills(counted: u64, victims: &[i32], own: &BTreeSet<i32>) -> u64 {
    let ours = victims.iter().filter(|pid| own.contains(pid)).count() as u64;
    if ours == 0 && !victims.is_empty() { 0 } else { counted.max(ours) }
}

fn victim(record: &str) -> Option<i32> {
    let (_, rest) = record.split_once("Killed process ")?;
    record.to_lowercase().contains("out of memory").then_some(())?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_from_the_first_reading() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("memory.events");
        fs::write(&file, "low 0\noom 1\noom_kill 3\n").expect("a file");
        let before = OomCounters::of(std::slice::from_ref(&file));
        assert_eq!(before.kills_since(), 0);
        fs::write(&file, "low 0\noom 2\noom_kill 5\n").expect("a file");
        assert_eq!(before.kills_since(), 2);
    }

    #[test]
    fn the_victim_is_read_from_the_kernels_words() {
        let global = "3,1,2,-;Out of memory: Killed process 1216 (python) total-vm:1kB\n";
        let group = "3,1,2,-;Memory cgroup out of memory: Killed process 77 (python)\n";
        assert_eq!((victim(global), victim(group)), (Some(1216), Some(77)));
        assert_eq!(victim("6,1,2,-;eth0: up"), None);
    }

    #[test]
    fn a_kill_of_somebody_else_in_the_group_is_not_ours() {
        let own = BTreeSet::from([7, 8]);
        assert_eq!(own_kills(1, &[99], &own), 0);
        assert_eq!(own_kills(2, &[99, 8], &own), 2);
        assert_eq!(own_kills(1, &[], &own), 1, "the log cannot be read");
    }
}
