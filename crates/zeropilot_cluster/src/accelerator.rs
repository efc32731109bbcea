//! What is published about one accelerator; the facts are `knowledge/accelerators/accelerators.jsonl`.

use serde::Deserialize;

/// Who makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[allow(missing_docs, reason = "names")]
pub enum Vendor {
    #[serde(rename = "NVIDIA")]
    Nvidia,
    #[serde(rename = "AMD")]
    Amd,
    Intel,
    Huawei,
    Cambricon,
}

/// How well the facts about an accelerator are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Sources agree.
    Good,
    /// Some facts are unknown.
    Partial,
    /// A rate is computed from a sister card; the note says how.
    Derived,
    /// Sources disagree; the note says how.
    Conflict,
}

/// Matrix rates without sparsity, in 10^12 operations per second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[allow(missing_docs, reason = "names of number formats")]
pub struct DenseTflops {
    pub bf16: Option<f64>,
    pub fp16: Option<f64>,
    pub tf32: Option<f64>,
    pub fp32: Option<f64>,
    pub fp8: Option<f64>,
}

/// The link between accelerators of one node that is faster than PCIe.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FastLink {
    /// NVLink 4, HCCS, …
    pub name: String,
    /// 10^9 bytes per second one way, to all peers together.
    pub gb_s_per_direction: Option<f64>,
    /// What vendors print: both ways added up.
    pub gb_s_both_directions: Option<f64>,
    /// One way to one peer, where the link is a mesh.
    pub gb_s_per_direction_one_peer: Option<f64>,
    /// Links of one accelerator.
    pub links: Option<u32>,
    /// How it is wired.
    pub topology: Option<String>,
}

/// The slot.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Pcie {
    /// `4.0`.
    #[serde(rename = "gen")]
    pub generation: String,
    /// Lanes.
    pub lanes: u32,
    /// 10^9 bytes per second one way, on the wire.
    pub gb_s_per_direction: f64,
}

/// The best matrix rate somebody reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MeasuredRate {
    /// In 10^12 bf16 operations per second.
    pub mamf_bf16_tflops: f64,
    /// In 10^12 fp8 operations per second.
    pub mamf_fp8_tflops: Option<f64>,
    /// Where that is printed.
    pub mamf_source: String,
}

/// One accelerator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Accelerator {
    /// Its name here.
    pub name: String,
    /// Names people type for it, and those that drivers print.
    pub aliases: Vec<String>,
    /// Who makes it.
    pub vendor: Vendor,
    /// Its architecture.
    pub arch: String,
    /// The memory of the card as it is sold, in the seller's gigabytes.
    pub memory_gb_nominal: Option<u64>,
    /// The kind of memory.
    pub memory_type: String,
    /// Whether error correction, on by default, takes its share of the memory.
    pub inline_ecc: bool,
    /// How many devices the runtime makes of one card.
    pub devices_per_card: u64,
    /// The total the driver's tool prints, in MiB.
    pub driver_total_mib: Option<u64>,
    /// The total the CUDA runtime reports.
    pub cuda_visible_bytes: Option<u64>,
    /// The totals printed in out-of-memory messages of PyTorch, in GiB: the least and the most.
    pub torch_capacity_gib: Option<Vec<f64>>,
    /// Peak of the memory, in 10^9 bytes per second.
    pub memory_bandwidth_gb_s: Option<f64>,
    /// Matrix rates.
    pub dense_tflops: DenseTflops,
    /// Whether it multiplies bf16 in hardware.
    pub bf16_supported: Option<bool>,
    /// The CUDA capability, or AMD's name of the target.
    pub compute_capability: Option<String>,
    /// The link to its peers.
    pub fast_link: Option<FastLink>,
    /// The link to the host.
    pub pcie: Option<Pcie>,
    /// How many cards a server of it usually has: a habit, not a specification.
    pub typical_gpus_per_node: u64,
    /// Power of the board, in watts.
    pub tdp_w: Option<u32>,
    /// A measured rate.
    pub measured: Option<MeasuredRate>,
    /// How well this is supported.
    pub confidence: Confidence,
    /// Where it is printed.
    pub source: Vec<String>,
    /// What to know about it.
    pub note: Option<String>,
}

impl Accelerator {
    /// Whether it is known to have no bf16.
    pub fn lacks_bf16(&self) -> bool {
        self.bf16_supported == Some(false)
    }

    /// Its name as one word, which the catalogue finds again.
    pub fn slug(&self) -> String {
        self.name.replace(' ', "-")
    }

    /// The memory sold of one device as the runtime shows it, in the seller's gigabytes.
    pub fn device_gb_nominal(&self) -> Option<u64> {
        self.memory_gb_nominal.map(|card| card / self.devices_per_card)
    }

    /// How many devices a server of it usually shows.
    pub fn typical_devices_per_node(&self) -> u64 {
        self.typical_gpus_per_node * self.devices_per_card
    }

    /// Whether its fast link is a bridge between two cards, which need not be there.
    pub(crate) fn has_bridge(&self) -> bool {
        let topology = self.fast_link.as_ref().and_then(|link| link.topology.as_deref());
        topology.is_some_and(|topology| topology.contains("bridge"))
    }

    /// Whether people usually go without it.
    pub(crate) fn has_optional_link(&self) -> bool {
        let topology = self.fast_link.as_ref().and_then(|link| link.topology.as_deref());
        topology.is_some_and(|topology| topology.contains("optional"))
    }

    /// The CUDA capability as two numbers, of NVIDIA's.
    pub fn cuda_capability(&self) -> Option<(u32, u32)> {
        let (major, minor) = self.compute_capability.as_deref()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}
