//! The arguments of `zeropilot simulate`.

use std::path::PathBuf;

use clap::Args;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{Machines, MemoryRequest};

use crate::bill::BillArguments;
use crate::memory::arguments::JobOptions;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot simulate --model Qwen/Qwen3-8B --gpus 8xA100-80G --stage 3 --seq-len 4096
  zeropilot simulate --model llama-3.1-70b --gpus 4x8xH100 --network 8xNDR --timeline
  zeropilot simulate --model llama-3.1-8b --gpus 8xH100 --scale 8..1024 --grad-checkpointing
  zeropilot simulate --model qwen3-8b --gpus 2x8xA100-80G --tokens 10B --cost 2.5/gpu-hour

Exit codes: 0 answered, 1 it does not fit into memory, 2 the question could not be answered";

/// The arguments, as typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateCommand {
    /// The model: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// The GPUs: `8xA100-80G`, `4x8xH100` (nodes × GPUs); otherwise those of this machine
    #[arg(long, value_name = "GPUS")]
    pub(crate) gpus: Option<String>,
    /// Links between nodes: `8xNDR`, `4xHDR`, `1x100GbE`; otherwise what is usual
    #[arg(long, value_name = "PORTS")]
    pub(crate) network: Option<String>,
    /// What the NVMe drives of a node read and write, in GB/s, such as `7/5`
    #[arg(long, value_name = "READ/WRITE")]
    pub(crate) nvme: Option<String>,
    #[command(flatten)]
    pub(crate) job: JobOptions,
    /// Draw the step in the terminal
    #[arg(long = "timeline")]
    pub(crate) step_timeline: bool,
    /// Draw the step as a picture into this file
    #[arg(long = "svg", value_name = "FILE")]
    pub(crate) step_svg: Option<PathBuf>,
    /// Write the step as a trace for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The same on so many GPUs, such as `8..1024`; every GPU keeps its batch
    #[arg(long, value_name = "LEAST..MOST")]
    pub(crate) scale: Option<String>,
    /// With --scale: all GPUs together keep their batch
    #[arg(long, requires = "scale")]
    pub(crate) strong: bool,
    #[command(flatten)]
    pub(crate) bill: BillArguments,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl SimulateCommand {
    /// The job on these GPUs, with the content of the config.
    pub(super) fn request(&self, gpus: String, config: Option<WrittenConfig>) -> MemoryRequest {
        let (network, nvme) = (self.network.clone(), self.nvme.clone());
        self.job.request(Machines { gpus, network, nvme, host_ram: None }, config, None)
    }
}

/// `8..1024`.
pub(super) fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text.split_once("..")?;
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|gpus| *gpus > 0);
    let range = (number(least)?, number(most.trim_start_matches('='))?);
    (range.0 <= range.1 && range.1 <= 1 << 24).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_people_write_them() {
        assert_eq!(range("8..1024"), Some((8, 1024)));
        assert_eq!(range("1024..8"), None);
    }
}
