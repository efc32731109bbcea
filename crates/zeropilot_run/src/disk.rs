//! Room on the disks that a run writes to.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use zeropilot_record::Evidence;

use crate::paths::resolved_here;

/// The disk with the least room among those with these paths; what is not there yet is on the disk of what holds it.
pub(crate) fn fullest(paths: impl IntoIterator<Item = PathBuf>) -> Option<Evidence> {
    let room = |path: PathBuf| {
        let path = resolved_here(&path);
        let there = path.ancestors().find(|path| path.exists())?.to_owned();
        let disk = statvfs(&there).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some((there, bytes(disk.f_bavail), bytes(disk.f_blocks)))
    };
    let (path, free, total) =
        paths.into_iter().filter_map(room).min_by_key(|(_, free, _)| *free)?;
    Some(Evidence::Disk { mount: mount(&path).display().to_string(), free, total })
}

/// The path in what the system says of a full disk: `No space left on device: '/out/a.bin'`.
pub(crate) fn told(line: &str) -> Option<PathBuf> {
    let (_, path) = line.split_once("No space left on device: '")?;
    let path = PathBuf::from(path.split_once('\'')?.0);
    path.is_absolute().then_some(path)
}

/// Where the disk of a path is mounted: the highest directory above it that is still on the same one.
fn mount(path: &Path) -> &Path {
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let own = device(path);
    path.ancestors().take_while(|above| device(above) == own).last().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_on_the_disk_of_what_would_hold_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let inside = |path: &str| fullest([directory.path().join(path)]);
        let found = inside("").expect("a disk");
        assert!(matches!(&found, Evidence::Disk { total, .. } if *total > 0), "{found:?}");
        let mount_of = |found: Option<Evidence>| match found {
            Some(Evidence::Disk { mount, .. }) => Some(mount),
            _ => None,
        };
        assert_eq!(mount_of(inside("not/there/yet")), mount_of(Some(found)));
        let shared = mount_of(fullest([PathBuf::from("/proc/self")]));
        assert_eq!(shared.as_deref(), Some("/proc"));
    }

    #[test]
    fn a_message_may_name_the_file() {
        let line = "OSError: [Errno 28] No space left on device: '/out/a.bin'";
        assert_eq!(told(line), Some(PathBuf::from("/out/a.bin")));
        assert_eq!(told("No space left on device"), None);
    }
}
