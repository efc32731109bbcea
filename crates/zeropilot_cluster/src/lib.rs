//! Machines to train on.
//!
//! [`catalogue`] knows accelerators by the names people type, [`Gpus`] reads `4x8xH100`, [`Capacity`] says how much
//! memory PyTorch will find on such a card and how sure that is, and a [`Cluster`] is all of it with its hosts. [`links`]
//! are the paths data takes, a [`Network`] those between nodes; a [`Fabric`] says how long ranks talk, a [`Pace`] how fast
//! each of them computes; a [`MachineProfile`] has what somebody measured instead, an [`OwnRun`] how far predictions were off.
//! [`discovery`] turns what a driver lists into the same; a [`gauge`] says how those devices stand.
//! Models, configs and what is done with the memory are not known here; nothing touches a file, and a device only behind
//! the feature `nvml`.

mod accelerator;
mod capacity;
pub mod catalogue;
mod cluster;
mod device;
pub mod discovery;
mod fabric;
pub mod gauge;
mod gpus;
pub mod links;
mod name;
mod network;
#[cfg(feature = "nvml")]
mod nvml;
mod own_runs;
mod pace;
mod profile;

pub use accelerator::{Accelerator, Confidence, DenseTflops, FastLink, MeasuredRate, Pcie, Vendor};
pub use capacity::{Basis, Capacity};
pub use cluster::{Cluster, DiskRates, Host, PinnedLimit};
pub use device::{Device, MemoryUnit, StatedMemory};
pub use fabric::{Algorithm, Cost, Fabric, Outlook, Pattern};
pub use gpus::{Gpus, GpusError, GpusProblem, Layout};
pub use network::{Network, NetworkError};
#[cfg(feature = "nvml")]
pub use nvml::{Nvidia, NvidiaGauge};
pub use own_runs::OwnRun;
pub use pace::{AttentionKernel, Format, Pace, Shares};
pub use profile::{
    Curve, CurveError, DeviceKind, MachineProfile, MeasuredCopies, MeasuredDevice, MeasuredMemory,
    MeasuredRanks, MeasuredRates, PROFILE_FORMAT, ProfileError, Spread,
};
