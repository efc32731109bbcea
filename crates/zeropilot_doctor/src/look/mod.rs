//! Looking around on this machine. No Python is run, and nothing is loaded but the GPU driver's library.

mod extension_lock;
mod python;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_cluster::discovery::Driver;
use zeropilot_units::Bytes;

use crate::machine::{Disk, Limit, Machine, Place, Space, Tools};
use crate::packages::Python;

pub use self::extension_lock::extension_locks;

impl Machine {
    /// Looks around, with the paths a config names.
    pub fn look(
        python: Option<&Path>,
        paths: &[String],
        driver: &dyn Driver,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Self {
        let python = Python::find(python, environment);
        let tools = tools(python.as_ref(), environment);
        let (memlock, open_files) = limits();
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        Self {
            python,
            tools,
            gpus: driver.gpus(),
            visible_devices: environment("CUDA_VISIBLE_DEVICES")
                .map(|value| value.to_string_lossy().into_owned()),
            ram: fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_in(&text)),
            memlock,
            open_files,
            shm: space(Path::new("/dev/shm")),
            disks: paths
                .iter()
                .map(|path| Disk { path: path.clone(), place: place(Path::new(path), &mounts) })
                .collect(),
            extension_locks: extension_locks(environment),
        }
    }
}

/// What a process may lock, and how many files it may open.
#[cfg(unix)]
fn limits() -> (Limit, Limit) {
    use rustix::process::{Resource, getrlimit};
    let limit = |resource| getrlimit(resource).current.map_or(Limit::Unlimited, Limit::AtMost);
    (limit(Resource::Memlock), limit(Resource::Nofile))
}

#[cfg(not(unix))]
fn limits() -> (Limit, Limit) {
    (Limit::Unknown, Limit::Unknown)
}

/// `MemTotal:       65775448 kB`.
fn memory_in(text: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib << 10))
}

fn tools(python: Option<&Python>, environment: &dyn Fn(&str) -> Option<OsString>) -> Tools {
    let path = environment("PATH").unwrap_or_default();
    let has =
        |name: &str| std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    let cuda_home = ["CUDA_HOME", "CUDA_PATH"].iter().find_map(|name| environment(name));
    let cuda_home = cuda_home.map_or_else(|| PathBuf::from("/usr/local/cuda"), PathBuf::from);
    let named_compiler = environment("CXX").is_some_and(|compiler| {
        Path::new(&compiler).is_file() || compiler.to_str().is_some_and(&has)
    });
    let headers = ["/usr/include", "/usr/local/include"].map(PathBuf::from);
    let conda = environment("CONDA_PREFIX").map(|prefix| PathBuf::from(prefix).join("include"));
    Tools {
        cxx: named_compiler || ["c++", "g++", "clang++"].iter().any(|name| has(name)),
        nvcc: has("nvcc") || cuda_home.join("bin").join("nvcc").is_file(),
        ninja: has("ninja") || python.is_some_and(|python| python.package("ninja").is_some()),
        libaio: headers.into_iter().chain(conda).any(|place| place.join("libaio.h").is_file()),
    }
}

#[cfg(unix)]
fn space(path: &Path) -> Option<Space> {
    let found = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(found.f_frsize));
    Some(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
}

#[cfg(not(unix))]
fn space(_: &Path) -> Option<Space> {
    None
}

fn place(path: &Path, mounts: &str) -> Place {
    match fs::metadata(path) {
        Err(_) => Place::Missing,
        Ok(found) if !found.is_dir() => Place::NotADirectory,
        Ok(_) if !is_writable(path) => Place::NotWritable,
        Ok(_) => Place::Ready { space: space(path), kind: kind(path, mounts) },
    }
}

#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.permissions().readonly())
}

/// The kind of the file system that holds a path: that of the longest mount point above it.
fn kind(path: &Path, mounts: &str) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let point = words.next()?.replace("\\040", " ");
        let kind = words.next()?;
        path.starts_with(&point).then_some((point.len(), kind))
    });
    // Of two at one point the later one lies on top.
    mounted.max_by_key(|(length, _)| *length).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use zeropilot_cluster::discovery::{FoundGpu, NoDriver};

    use super::*;

    struct NoGpus;

    impl Driver for NoGpus {
        fn gpus(&self) -> Result<Vec<FoundGpu>, NoDriver> {
            Err(NoDriver::NoLibrary)
        }
    }

    #[test]
    fn a_real_machine_is_looked_at() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("file"), "").expect("a file");
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let paths = [path(""), path("file"), path("missing")];
        let machine = Machine::look(None, &paths, &NoGpus, &|name| std::env::var_os(name));
        assert!(
            matches!(&machine.disks[0].place, Place::Ready { space: Some(space), .. } if space.free <= space.total)
        );
        assert_eq!(machine.disks[1].place, Place::NotADirectory);
        assert_eq!(machine.disks[2].place, Place::Missing);
        if cfg!(target_os = "linux") {
            assert!(machine.ram.is_some_and(|ram| ram.0 > 1 << 20));
            assert!(machine.open_files != Limit::Unknown);
        }
    }

    #[test]
    fn memory_and_mounts_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            memory_in("MemFree: 1 kB\nMemTotal:       65775448 kB\n"),
            Some(Bytes(67_354_058_752))
        );
        assert_eq!(memory_in("MemTotal: x"), None);
        let mounts = "a / overlay rw 0 0\nb /tmp tmpfs rw 0 0\n";
        assert_eq!(kind(Path::new("/"), mounts).as_deref(), Some("overlay"));
    }
}
