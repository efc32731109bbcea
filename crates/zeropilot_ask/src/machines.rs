//! The machines a person means.

use serde::Deserialize;
use zeropilot_cluster::{Cluster, DiskRates, Gpus, GpusError, NetworkError};
use zeropilot_units::Bytes;

use crate::size;

/// No host that GPUs are in has less; a bare number is one of bytes, and seldom meant.
const LEAST_HOST: Bytes = Bytes(1 << 30);

/// GPUs, their hosts and what links them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// `8xA100-80G`, `5x44GB`, `4x8xH100`, `8`.
    pub gpus: String,
    /// Memory of each host.
    #[serde(default, deserialize_with = "size::bytes")]
    pub host_ram: Option<Bytes>,
    /// The ports of a node to the others: `8xNDR`; otherwise what is usual for the GPUs.
    #[serde(default)]
    pub network: Option<String>,
    /// What the drives of a node read and write, in GB/s: `7/5`.
    #[serde(default)]
    pub nvme: Option<String>,
}

/// Machines that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MachinesProblem {
    /// Not the GPUs.
    #[error("`{text}` names no GPUs")]
    Gpus {
        /// What was given.
        text: String,
        /// What is wrong with it.
        error: GpusError,
    },
    /// Not the network.
    #[error("`{text}` names no network")]
    Network {
        /// What was given.
        text: String,
        /// What is wrong with it.
        error: NetworkError,
    },
    /// Less memory than a host can have.
    #[error("{0} is no memory of a host")]
    HostRam(Bytes),
    /// Not the drives.
    #[error("`{text}` is no pair of rates")]
    Nvme {
        /// What was given.
        text: String,
    },
}

impl Machines {
    /// The cluster.
    ///
    /// # Errors
    ///
    /// If a part of it cannot be read.
    pub fn cluster(&self) -> Result<Cluster, MachinesProblem> {
        let problem = |error| MachinesProblem::Gpus { text: self.gpus.clone(), error };
        let gpus: Gpus = self.gpus.parse().map_err(problem)?;
        let mut cluster = Cluster::new(gpus);
        if let Some(little) = self.host_ram.filter(|ram| *ram < LEAST_HOST) {
            return Err(MachinesProblem::HostRam(little));
        }
        cluster.host.ram = self.host_ram;
        if let Some(text) = &self.network {
            let problem = |error| MachinesProblem::Network { text: text.clone(), error };
            cluster.network = Some(text.parse().map_err(problem)?);
        }
        if let Some(text) = &self.nvme {
            let problem = || MachinesProblem::Nvme { text: text.clone() };
            cluster.disk = Some(rates(text).ok_or_else(problem)?);
        }
        Ok(cluster)
    }
}

/// `7/5`.
fn rates(text: &str) -> Option<DiskRates> {
    let (read, write) = text.split_once('/')?;
    let rate = |text: &str| text.trim().parse::<f64>().ok().filter(|rate| *rate > 0.0);
    Some(DiskRates { read_gb_s: rate(read)?, write_gb_s: rate(write)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_read_and_write() {
        assert_eq!(rates("7/5"), Some(DiskRates { read_gb_s: 7.0, write_gb_s: 5.0 }));
        assert_eq!(rates("7"), None);
        assert_eq!(rates("7/-5"), None);
    }
}
