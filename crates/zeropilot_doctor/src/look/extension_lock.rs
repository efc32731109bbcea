//! Locks in PyTorch's cache of extensions. A build makes a file `lock` beside it, keeps that open and removes it in the end
//! (`torch/utils/file_baton.py`); of a build that was killed the file stays, and whoever needs the extension waits for ever.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::machine::ExtensionLock;

/// The locks of the user's cache.
pub fn extension_locks(environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<ExtensionLock> {
    let Some(root) = root(environment) else { return Vec::new() };
    // `NAME/lock` where the directory is named by a variable, else `py311_cu128/NAME/lock`.
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let first = below(&root);
    let second: Vec<PathBuf> = first.iter().flat_map(|path| below(path)).collect();
    let mut paths: Vec<PathBuf> = first.into_iter().chain(second).collect();
    paths.sort();
    let locks = paths.into_iter().map(|path| path.join("lock")).filter(|path| path.is_file());
    let mut locks: Vec<PathBuf> = locks.collect();
    locks.dedup();
    let held = if locks.is_empty() { Vec::new() } else { open_files() };
    let lock = |path: PathBuf| {
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let made = fs::metadata(&path).and_then(|file| file.modified()).ok();
        ExtensionLock {
            is_held: held.contains(&real),
            age: made.and_then(|made| made.elapsed().ok()).map(|age: Duration| age.as_secs()),
            path: path.display().to_string(),
        }
    };
    locks.into_iter().map(lock).collect()
}

fn root(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("TORCH_EXTENSIONS_DIR").or_else(|| {
        let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
        Some(cache?.join("torch_extensions"))
    })
}

/// Files that processes of this user have open.
fn open_files() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let files =
        processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok()).flatten();
    files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_holds_is_told_from_one_that_a_build_holds() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().join("torch_extensions");
        for name in ["py311_cu128/cpu_adam", "utils", "done"] {
            fs::create_dir_all(root.join(name)).expect("a directory");
        }
        fs::write(root.join("py311_cu128/cpu_adam/lock"), "").expect("a file");
        let held = fs::File::create(root.join("utils/lock")).expect("a file");
        let cache = |name: &str| (name == "XDG_CACHE_HOME").then(|| home.path().into());
        let found = extension_locks(&cache);
        let told: Vec<(bool, bool)> =
            found.iter().map(|lock| (lock.path.ends_with("cpu_adam/lock"), lock.is_held)).collect();
        let can_see = cfg!(target_os = "linux");
        assert_eq!(told, [(true, false), (false, can_see)], "{found:?}");
        drop(held);
        let named = |name: &str| (name == "TORCH_EXTENSIONS_DIR").then(|| root.clone().into());
        assert_eq!(extension_locks(&named).len(), 2);
        assert!(extension_locks(&|_| None).is_empty());
    }
}
