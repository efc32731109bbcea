//! The control groups that bound the memory of a process, of version 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

/// Which files a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    First,
    Second,
}

impl Version {
    /// The file that counts kills.
    pub(crate) fn counters(self) -> &'static str {
        match self {
            Self::First => "memory.oom_control",
            Self::Second => "memory.events",
        }
    }

    /// The files with the limit and with what is used of it.
    fn limit_and_usage(self) -> (&'static str, &'static str) {
        match self {
            Self::First => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Self::Second => ("memory.max", "memory.current"),
        }
    }

    /// What of the usage the kernel takes back when it is short: files that were read or written.
    fn reclaimable(self) -> [&'static str; 2] {
        match self {
            Self::First => ["total_inactive_file ", "total_active_file "],
            Self::Second => ["inactive_file ", "active_file "],
        }
    }
}

/// A group, and where it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryGroup {
    pub(crate) version: Version,
    pub(crate) directory: PathBuf,
}

/// The groups in a text of `/proc/PID/cgroup`.
pub(crate) fn memory_groups(groups: &str, root: &Path) -> Vec<MemoryGroup> {
    let group = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (version, root) = if number == "0" && controllers.is_empty() {
            (Version::Second, root.to_owned())
        } else {
            controllers.split(',').find(|controller| *controller == "memory")?;
            (Version::First, root.join("memory"))
        };
        let directory = root.join(path.trim_start_matches('/'));
        // In a container the path is that of the machine, while only the container's own group is mounted.
        let directory = if directory.is_dir() { directory } else { root };
        Some(MemoryGroup { version, directory })
    };
    groups.lines().filter_map(group).collect()
}

impl MemoryGroup {
    /// What its processes may still allocate; `None` without a limit.
    fn room(&self) -> Option<u64> {
        let (limit, usage) = self.version.limit_and_usage();
        let number = |name: &str| -> Option<u64> {
            fs::read_to_string(self.directory.join(name)).ok()?.trim().parse().ok()
        };
        let limit = number(limit)?;
        let stat = fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let reclaimable: u64 = self
            .version
            .reclaimable()
            .iter()
            .filter_map(|name| stat.lines().find_map(|line| line.strip_prefix(name)))
            .filter_map(|value| value.trim().parse::<u64>().ok())
            .sum();
        Some(limit.saturating_sub(number(usage)?.saturating_sub(reclaimable)))
    }

    /// Itself and what it is in, as a limit holds for everything below.
    fn with_those_above(&self, root: &Path) -> Vec<Self> {
        self.directory
            .ancestors()
            .take_while(|directory| directory.starts_with(root))
            .map(|directory| Self { version: self.version, directory: directory.to_owned() })
            .collect()
    }
}

/// The bytes that a process started here can have: what the machine has left, or what its groups allow.
pub fn memory_left() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let groups = memory_groups(&groups, root);
    let rooms = groups.iter().flat_map(|group| group.with_those_above(root));
    rooms.filter_map(|group| group.room()).chain(machine).min()
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        let (first, second) = (root.path().join("memory/a/b"), root.path().join("c"));
        fs::create_dir_all(&first).expect("a group");
        fs::create_dir_all(&second).expect("a group");
        let found = memory_groups("9:name=systemd:/\n4:memory:/a/b\n1:cpu:/\n0::/c\n", root.path());
        let expected = [
            MemoryGroup { version: Version::First, directory: first },
            MemoryGroup { version: Version::Second, directory: second },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_container_that_sees_only_its_own_group_finds_it() {
        let root = tempfile::tempdir().expect("a directory");
        let found = memory_groups("4:memory:/docker/0123\n", root.path());
        assert_eq!(found[0].directory, root.path().join("memory"));
    }

    #[test]
    fn what_is_left_of_a_limit_counts_the_cache_of_files_as_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).expect("a file");
        };
        let group =
            MemoryGroup { version: Version::Second, directory: directory.path().to_owned() };
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(group.room(), None);
        write("memory.max", "1000\n");
        write("memory.stat", "anon 500\ninactive_file 150\nactive_file 50\n");
        // 1000 - (700 - 150 - 50)
        assert_eq!(group.room(), Some(500));
    }

    #[test]
    fn the_machine_is_asked_for_what_is_available() {
        let text = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert!(memory_left().is_some_and(|left| left > 0));
    }
}
