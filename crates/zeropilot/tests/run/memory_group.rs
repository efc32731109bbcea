//! A control group with a limit of memory, whichever version the machine has.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// A group that is removed with its value.
pub(crate) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// A new group with so many bytes for all its processes together, and no swap beside them.
    ///
    /// # Errors
    /// Why this machine does not allow it.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        let name = format!("zeropilot-test-{}-{bytes}", std::process::id());
        let first = Path::new(ROOT).join("memory");
        let (parent, limits): (_, &[&str]) = if first.join("memory.limit_in_bytes").exists() {
            (first, &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"])
        } else {
            (PathBuf::from(ROOT), &["memory.max"])
        };
        let directory = parent.join(name);
        let why = |what: &str, error: std::io::Error| format!("{what}: {error}");
        fs::create_dir(&directory).map_err(|error| why("no control group can be made", error))?;
        let group = Self(directory);
        for (index, limit) in limits.iter().enumerate() {
            let file = group.0.join(limit);
            match fs::write(&file, bytes.to_string()) {
                // Without the accounting of swap there is no file for it.
                Err(_) if index > 0 && !file.exists() => {}
                written => written.map_err(|error| why(limit, error))?,
            }
        }
        let swap = group.0.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0").map_err(|error| why("memory.swap.max", error))?;
        }
        Ok(group)
    }

    /// The command that puts a program into the group: `sh -c SCRIPT GROUP PROGRAM…`.
    pub(crate) fn wrapper(&self) -> [&str; 4] {
        let script = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        ["sh", "-c", script, self.0.to_str().expect("a plain name")]
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Only an empty group can be removed; a test that failed may still be ending its processes.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
