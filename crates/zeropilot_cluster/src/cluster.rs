//! A number of equal nodes: GPUs and the host they sit in.

use std::sync::Arc;

use zeropilot_units::Bytes;

use crate::capacity::Capacity;
use crate::gpus::Gpus;
use crate::network::Network;
use crate::own_runs::OwnRun;
use crate::profile::{DeviceKind, MachineProfile, MeasuredRanks};

/// How much memory of a node a user may lock (`ulimit -l`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinnedLimit {
    /// As much as there is.
    #[default]
    Unlimited,
    /// This much per process.
    PerProcess(Bytes),
}

/// The machine around the GPUs of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host {
    /// Its memory, if it is known.
    pub ram: Option<Bytes>,
    /// What may be pinned of it.
    pub pinned: PinnedLimit,
}

/// Equal nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The GPUs.
    pub gpus: Gpus,
    /// Every node's host.
    pub host: Host,
    /// Ports between nodes, where somebody said so.
    pub network: Option<Network>,
    /// Drives of every node, where somebody said so.
    pub disk: Option<DiskRates>,
    /// What was measured on one of the nodes.
    pub profile: Option<Arc<MachineProfile>>,
    /// What the user's own runs on this device needed.
    pub own_runs: Arc<[OwnRun]>,
}

/// What the drives of a node do together, in 10^9 bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskRates {
    /// Reading.
    pub read_gb_s: f64,
    /// Writing.
    pub write_gb_s: f64,
}

impl Cluster {
    /// These GPUs in hosts of which nothing is known.
    pub fn new(gpus: Gpus) -> Self {
        Self {
            gpus,
            host: Host::default(),
            network: None,
            disk: None,
            profile: None,
            own_runs: Arc::new([]),
        }
    }

    /// Ranks, one for each GPU.
    pub fn world_size(&self) -> u64 {
        self.gpus.world_size()
    }

    /// What a rank of a node is like, where it was measured.
    pub fn measured(&self) -> Option<&MeasuredRanks> {
        self.profile.as_ref()?.rank_of(self.gpus.layout.gpus_per_node)
    }

    /// Whether ranks compute on the processors of their host; only a profile says so.
    pub fn computes_on_host(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.device.kind == DeviceKind::Cpu)
    }

    /// The memory PyTorch finds on each GPU.
    pub fn capacity(&self) -> Option<Capacity> {
        Capacity::of(self.gpus.device)
    }

    /// The host memory each rank can have, if all take the same.
    pub fn ram_per_rank(&self) -> Option<Bytes> {
        self.host.ram.map(|ram| Bytes(ram.0 / self.gpus.layout.gpus_per_node))
    }

    /// The host memory each rank can pin.
    pub fn pinned_per_rank(&self) -> Option<Bytes> {
        match (self.host.pinned, self.ram_per_rank()) {
            (PinnedLimit::Unlimited, ram) => ram,
            (PinnedLimit::PerProcess(limit), ram) => Some(ram.map_or(limit, |ram| ram.min(limit))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_the_memory_of_their_node() {
        let mut cluster = Cluster::new("2x8xH100".parse().unwrap());
        assert_eq!(cluster.world_size(), 16);
        assert_eq!(cluster.pinned_per_rank(), None);
        cluster.host.ram = Some(Bytes(2 << 40));
        assert_eq!(cluster.pinned_per_rank(), Some(Bytes(256 << 30)));
        cluster.host.pinned = PinnedLimit::PerProcess(Bytes(64 << 10));
        assert_eq!(cluster.pinned_per_rank(), Some(Bytes(64 << 10)));
        assert_eq!(cluster.ram_per_rank(), Some(Bytes(256 << 30)));
    }
}
