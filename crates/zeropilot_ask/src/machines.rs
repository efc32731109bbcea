//! The machines a person means.

use std::sync::Arc;

use serde::Deserialize;
use zeropilot_cluster::{
    Cluster, DeviceKind, DiskRates, Gpus, GpusError, MachineProfile, NetworkError, OwnRun,
};
use zeropilot_units::Bytes;

use crate::name::NumberFormat;
use crate::size;

/// No host that GPUs are in has less; a bare number is one of bytes, and seldom meant.
const LEAST_HOST: Bytes = Bytes(1 << 30);

/// GPUs, their hosts and what links them.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Machines {
    /// Set the GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs per node), or only their number; if omitted, the GPUs of this machine
    #[cfg_attr(feature = "clap", arg(long, value_name = "GPUS"))]
    pub gpus: Option<String>,
    /// Set the host memory of each node, such as `512GiB`
    #[serde(deserialize_with = "size::bytes")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub host_ram: Option<Bytes>,
    /// Set the links between nodes: `8xNDR`, `4xHDR`, `1x100GbE`; if omitted, the usual links for these GPUs
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORTS"))]
    pub network: Option<String>,
    /// Set the read and write speed of a node's NVMe drives in GB/s, such as `7/5`
    #[cfg_attr(feature = "clap", arg(long, value_name = "READ/WRITE"))]
    pub nvme: Option<String>,
    /// What was measured on one of the nodes, in place of what is usual; only a front that has read a file sets it.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub machine: Option<Arc<MachineProfile>>,
    /// What the user's own runs on such devices needed; only a front that has read records sets it.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub own_runs: Arc<[OwnRun]>,
}

/// Machines that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MachinesProblem {
    /// Nobody says which GPUs.
    #[error("`gpus` is missing")]
    NoGpus,
    /// Not the GPUs.
    #[error("`{text}` does not describe GPUs")]
    Gpus {
        /// What was given.
        text: String,
        /// What is wrong with it.
        error: GpusError,
    },
    /// Not the network.
    #[error("`{text}` does not describe a network")]
    Network {
        /// What was given.
        text: String,
        /// What is wrong with it.
        error: NetworkError,
    },
    /// Less memory than a host can have.
    #[error("{0} is not a plausible host memory size")]
    HostRam(Bytes),
    /// Not the drives.
    #[error("`{text}` is not a read and a write speed")]
    Nvme {
        /// What was given.
        text: String,
    },
    /// The profile is of another device.
    #[error("the machine profile describes {measured}, not {asked}")]
    OtherDevice {
        /// What was measured.
        measured: String,
        /// What is asked about.
        asked: String,
    },
    /// Processors are not alike for every number of ranks.
    #[error("the machine profile has no measurement with {asked} ranks")]
    OtherRanks {
        /// What is asked about.
        asked: u64,
        /// What was measured.
        measured: Vec<u64>,
    },
    /// A profile of processors says nothing about the memory of GPUs.
    #[error("the machine profile describes CPUs, not GPUs")]
    NoGpuMeasured,
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

    fn gpus(&self) -> Result<Gpus, MachinesProblem> {
        match (&self.gpus, &self.machine) {
            (Some(text), _) => text.parse().map_err(|error| {
                let text = text.clone();
                MachinesProblem::Gpus { text, error }
            }),
            (None, Some(profile)) => Ok(profile.gpus()),
            (None, None) => Err(MachinesProblem::NoGpus),
        }
    }

    /// Refuses a profile that is not of what is asked about.
    fn fits(&self, profile: &MachineProfile, gpus: &Gpus) -> Result<(), MachinesProblem> {
        if gpus.device != profile.device() {
            let measured = profile.device.name.clone();
            let asked = self.gpus.clone().unwrap_or_default();
            return Err(MachinesProblem::OtherDevice { measured, asked });
        }
        let asked = gpus.layout.gpus_per_node;
        let is_alone = gpus.layout.nodes == 1;
        let is_host = profile.device.kind == DeviceKind::Cpu;
        if profile.rank_of(asked).is_none() || is_host && !is_alone {
            let measured = profile.measured.iter().map(|of| of.ranks).collect();
            return Err(MachinesProblem::OtherRanks { asked: gpus.world_size(), measured });
        }
        Ok(())
    }

    /// Refuses a profile of processors where the memory of GPUs is asked about.
    ///
    /// # Errors
    ///
    /// If there is one.
    pub(crate) fn with_gpus_measured(&self) -> Result<(), MachinesProblem> {
        let is_host = |profile: &Arc<MachineProfile>| profile.device.kind == DeviceKind::Cpu;
        match self.machine.as_ref().is_some_and(is_host) {
            true => Err(MachinesProblem::NoGpuMeasured),
            false => Ok(()),
        }
    }

    /// The cluster.
    ///
    /// # Errors
    ///
    /// If a part of it cannot be read.
    pub fn cluster(&self) -> Result<Cluster, MachinesProblem> {
        let mut cluster = Cluster::new(self.gpus()?);
        cluster.own_runs = Arc::clone(&self.own_runs);
        if let Some(profile) = &self.machine {
            self.fits(profile, &cluster.gpus)?;
            cluster.profile = Some(Arc::clone(profile));
        }
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
