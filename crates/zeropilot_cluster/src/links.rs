//! The paths data takes: between GPUs, to the host, over the network, to disks; facts from `knowledge/links/links.json`.
//!
//! Rates are 10^9 bytes per second, one way. How long something takes is not decided here.

use std::sync::LazyLock;

use serde::Deserialize;

/// What a wire connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireKind {
    /// GPUs of one node.
    Gpu,
    /// A GPU and its host.
    Host,
    /// Nodes; the rate is that of one port.
    Network,
}

/// A documented link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Wire {
    /// Its name.
    pub name: String,
    /// What people type for it.
    pub aliases: Vec<String>,
    /// What it connects.
    pub kind: WireKind,
    /// Its rate.
    pub gb_s_per_direction: f64,
    /// Its latency in microseconds, where published.
    pub latency_us: Option<f64>,
    /// Where that is printed.
    pub source: String,
}

/// The path of a measured collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// NVLink and the like.
    Gpu,
    /// PCIe between GPUs.
    Pcie,
    /// Between nodes; the figures are per network interface.
    Network,
}

/// A collective somebody measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Collective {
    /// Its path.
    pub path: Path,
    /// On what.
    #[serde(rename = "where")]
    pub on: String,
    /// Which.
    pub collective: String,
    /// Bytes, in GiB.
    pub payload_gib: Option<f64>,
    /// NCCL's bus bandwidth.
    pub bus_gb_s: f64,
    /// The wire's rate.
    pub wire_gb_s: f64,
    /// Where it is printed.
    pub source: String,
}

/// A copy between host and GPU.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HostCopy {
    /// Over what.
    pub path: String,
    /// Whether the host's memory was pinned.
    pub pinned: bool,
    /// Its rate.
    pub gb_s: f64,
    /// The wire's rate, where it is known.
    pub wire_gb_s: Option<f64>,
    /// Where it is printed.
    pub source: String,
}

/// Drives as DeepSpeed uses them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Disk {
    /// Which.
    pub drive: String,
    /// How many together.
    pub drives: u32,
    /// As sold.
    pub rated_read_gb_s: Option<f64>,
    /// As sold.
    pub rated_write_gb_s: Option<f64>,
    /// As measured.
    pub read_gb_s: f64,
    /// As measured.
    pub write_gb_s: f64,
    /// Where it is printed.
    pub source: String,
}

/// Adam on the host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CpuAdam {
    /// On what.
    pub what: String,
    /// How fast.
    pub parameters_per_s: f64,
    /// Where it is printed.
    pub source: String,
}

/// Bus bandwidth by payload.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Curve {
    /// On what.
    #[serde(rename = "where")]
    pub on: String,
    /// Payload in KiB and rate, ascending.
    pub kib_and_gb_s: Vec<(f64, f64)>,
    /// The same across nodes.
    pub across: Option<Box<Curve>>,
}

/// What calls take besides their bytes, in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Latency {
    /// Every call.
    pub call_us: f64,
    /// Every hop inside a node.
    pub inside_hop_us: f64,
    /// Every hop between nodes.
    pub outside_hop_us: f64,
    /// How that is known.
    pub source: String,
}

/// Everything in the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Links {
    /// Documented links.
    pub wires: Vec<Wire>,
    /// Measured collectives.
    pub collectives: Vec<Collective>,
    /// What small payloads reach.
    pub payload_curve: Curve,
    /// What every call and every hop takes.
    pub latency: Latency,
    /// Copies to and from the host.
    pub host_copies: Vec<HostCopy>,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Optimizers on the host.
    pub cpu_adam: Vec<CpuAdam>,
}

static LINKS: LazyLock<Links> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("links/links.json") };
    serde_json::from_str(text).expect("a test reads the embedded file")
});

/// What is known about links.
pub fn links() -> &'static Links {
    &LINKS
}

/// A share of a wire's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The least anybody measured.
    pub low: f64,
    /// The middle of what was measured.
    pub expected: f64,
    /// The most.
    pub high: f64,
}

impl Links {
    /// The wire of this name.
    pub fn wire(&self, name: &str) -> Option<&Wire> {
        let name = name.trim();
        self.wires.iter().find(|wire| {
            let mut names = wire.aliases.iter().chain([&wire.name]);
            names.any(|own| own.eq_ignore_ascii_case(name))
        })
    }

    /// How much of the wire large collectives reach on a path, over everything measured.
    pub fn collective_share(&self, path: Path) -> Option<Share> {
        let on_path = self.collectives.iter().filter(|measured| measured.path == path);
        share(on_path.map(|measured| measured.bus_gb_s / measured.wire_gb_s).collect())
    }

    /// How much of the wire pinned copies reach.
    pub fn pinned_copy_share(&self) -> Option<Share> {
        let pinned = self.host_copies.iter().filter(|copy| copy.pinned);
        share(pinned.filter_map(|copy| Some(copy.gb_s / copy.wire_gb_s?)).collect())
    }
}

fn share(mut shares: Vec<f64>) -> Option<Share> {
    shares.sort_by(f64::total_cmp);
    let middle = |index: usize| shares.get(index).copied();
    let expected =
        f64::midpoint(middle(shares.len().checked_sub(1)? / 2)?, middle(shares.len() / 2)?);
    Some(Share { low: *shares.first()?, expected, high: *shares.last()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::accelerators;

    #[test]
    fn wires_are_found_by_what_people_type() {
        let rate = |name| links().wire(name).map(|wire| wire.gb_s_per_direction);
        assert_eq!(rate("NVLink 4"), Some(450.0));
        assert_eq!(rate("hdr"), Some(25.0));
        assert_eq!(rate("400G"), Some(50.0));
        assert_eq!(rate("PCIe4"), Some(31.5));
        assert_eq!(rate("carrier pigeon"), None);
    }

    #[test]
    fn a_name_means_one_wire() {
        let mut names: Vec<String> = links()
            .wires
            .iter()
            .flat_map(|wire| wire.aliases.iter().chain([&wire.name]))
            .map(|name| name.to_lowercase())
            .collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// 234.9 / 300 = 78 %, 200 / 300 = 67 %, 361.4 / 450 = 80 % and so on; nothing exceeds its wire.
    #[test]
    fn collectives_stay_below_the_wire() {
        for path in [Path::Gpu, Path::Pcie, Path::Network] {
            let share = links().collective_share(path).unwrap();
            assert!(0.0 < share.low && share.low <= share.expected, "{path:?} {share:?}");
            assert!(share.expected <= share.high && share.high < 1.0, "{path:?} {share:?}");
        }
        let nvlink = links().collective_share(Path::Gpu).unwrap();
        assert!((0.66..0.67).contains(&nvlink.low) && (0.75..0.82).contains(&nvlink.expected));
        assert!(links().pinned_copy_share().unwrap().high < 0.9);
    }

    /// The accelerators and the links were compiled apart and must agree.
    #[test]
    fn pcie_rates_of_accelerators_are_those_of_their_slots() {
        for card in accelerators() {
            let Some(pcie) = card.pcie.as_ref().filter(|pcie| pcie.lanes == 16) else { continue };
            let wire = links().wire(&format!("PCIe {} x16", pcie.generation)).unwrap();
            assert_eq!(pcie.gb_s_per_direction, wire.gb_s_per_direction, "{}", card.name);
        }
    }
}
