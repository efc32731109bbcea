//! The machines a person means.

use serde::Deserialize;
use zeropilot_cluster::{Cluster, DiskRates, Gpus, GpusError, NetworkError};
use zeropilot_units::Bytes;

use crate::name::NumberFormat;
use crate::size;

/// No host that GPUs are in has less; a bare number is one of bytes, and seldom meant.
const LEAST_HOST: Bytes = Bytes(1 << 30);

/// GPUs, their hosts and what links them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Machines {
    /// GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs), or only their number; otherwise those of this machine
    #[cfg_attr(feature = "clap", arg(long, value_name = "GPUS"))]
    pub gpus: Option<String>,
    /// Memory of each host, such as `512GiB`
    #[serde(deserialize_with = "size::bytes")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub host_ram: Option<Bytes>,
    /// Links between nodes: `8xNDR`, `4xHDR`, `1x100GbE`; otherwise the usual ones for these GPUs
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORTS"))]
    pub network: Option<String>,
    /// Read and write rates of the NVMe drives of a node in GB/s, such as `7/5`
    #[cfg_attr(feature = "clap", arg(long, value_name = "READ/WRITE"))]
    pub nvme: Option<String>,
}

/// Machines that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MachinesProblem {
    /// Nobody says which GPUs.
    #[error("`gpus` is missing")]
    NoGpus,
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
    /// Machines with these GPUs, all else as usual.
    pub fn with_gpus(gpus: impl Into<String>) -> Self {
        Self { gpus: Some(gpus.into()), ..Self::default() }
    }

    /// The number format if nobody says which: bf16, or fp16 on GPUs that have none.
    pub(crate) fn usual_format(&self) -> NumberFormat {
        let gpus = self.gpus.as_deref().and_then(|text| text.parse::<Gpus>().ok());
        let card = gpus.and_then(|gpus| gpus.device.accelerator());
        match card.is_some_and(|card| card.lacks_bf16()) {
            true => NumberFormat::Fp16,
            false => NumberFormat::Bf16,
        }
    }

    /// The cluster.
    ///
    /// # Errors
    ///
    /// If a part of it cannot be read.
    pub fn cluster(&self) -> Result<Cluster, MachinesProblem> {
        let text = self.gpus.as_ref().ok_or(MachinesProblem::NoGpus)?;
        let problem = |error| MachinesProblem::Gpus { text: text.clone(), error };
        let gpus: Gpus = text.parse().map_err(problem)?;
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
