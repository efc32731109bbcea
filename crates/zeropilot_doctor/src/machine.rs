//! What is on a machine, as data. Finding it out is behind the feature `os`.

use zeropilot_cluster::discovery::{FoundGpu, NoDriver};
use zeropilot_units::Bytes;

use crate::packages::Python;

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The interpreter and its packages; `None` if there is none.
    pub python: Option<Python>,
    /// Programs and headers for builds.
    pub tools: Tools,
    /// GPUs, or why none are listed.
    pub gpus: Result<Vec<FoundGpu>, NoDriver>,
    /// `CUDA_VISIBLE_DEVICES`.
    pub visible_devices: Option<String>,
    /// The memory of the host.
    pub ram: Option<Bytes>,
    /// How much a process may lock (`ulimit -l`).
    pub memlock: Limit,
    /// How many files a process may open (`ulimit -n`).
    pub open_files: Limit,
    /// `/dev/shm`.
    pub shm: Option<Space>,
    /// The directories that were asked about.
    pub disks: Vec<Disk>,
    /// Locks in PyTorch's cache of extensions.
    pub extension_locks: Vec<ExtensionLock>,
}

/// A lock in PyTorch's cache of extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionLock {
    /// The file.
    pub path: String,
    /// Whether a process that can be seen from here has it open, as a build does.
    pub is_held: bool,
    /// Seconds since it was made.
    pub age: Option<u64>,
}

/// Programs and headers that the engine builds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tools {
    /// A C++ compiler.
    pub cxx: bool,
    /// NVIDIA's compiler.
    pub nvcc: bool,
    /// ninja, as a program or a package.
    pub ninja: bool,
    /// The headers of libaio.
    pub libaio: bool,
}

/// A limit of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// There is none.
    Unlimited,
    /// At most this much.
    AtMost(u64),
    /// This system does not say.
    Unknown,
}

/// Room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: Bytes,
    /// What is free for this user.
    pub free: Bytes,
}

/// A directory to swap to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its path, as the config has it.
    pub path: String,
    /// What is there.
    pub place: Place,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Missing,
    /// Something that is no directory.
    NotADirectory,
    /// A directory that this user may not write to.
    NotWritable,
    /// A directory to write to.
    Ready {
        /// Its room.
        space: Option<Space>,
        /// The kind of its file system, such as `ext4`.
        kind: Option<String>,
    },
}
