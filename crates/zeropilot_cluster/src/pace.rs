//! How fast one rank computes, copies and updates: rates of its accelerator and host, less what is never reached.
//!
//! The facts are `knowledge/pace/pace.json`; peaks are those of the catalogue.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::accelerator::Accelerator;
use crate::cluster::Cluster;
use crate::fabric::Outlook;
use crate::links::{Share, links};
use crate::profile::{DeviceKind, MeasuredRanks};

#[derive(Debug, Deserialize)]
struct Bounds {
    low: f64,
    expected: f64,
    high: f64,
}

impl Bounds {
    /// Of something of which more is better.
    fn rate(&self, outlook: Outlook) -> f64 {
        outlook.of(Share { low: self.low, expected: self.expected, high: self.high })
    }

    /// Of something of which less is better.
    fn cost(&self, outlook: Outlook) -> f64 {
        outlook.of(Share { low: self.high, expected: self.expected, high: self.low })
    }
}

#[derive(Debug, Deserialize)]
struct Kernels {
    products: Bounds,
    attention: Bounds,
}

#[derive(Debug, Deserialize)]
struct OfArchitecture {
    arch: String,
    #[serde(flatten)]
    kernels: Kernels,
    first_attention: Option<f64>,
    latest_attention: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct HostUpdates {
    low: f64,
    high: f64,
    by_slot: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    expected: f64,
}

#[derive(Debug, Deserialize)]
struct Facts {
    unmeasured: Expected,
    architectures: Vec<OfArchitecture>,
    other: Kernels,
    memory: Bounds,
    kernel_us: Bounds,
    last_wave: Bounds,
    hook_us: Bounds,
    micro_step_us: Bounds,
    step_us: Bounds,
    host_updates_per_s: HostUpdates,
    pageable_share: Expected,
}

static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("pace/pace.json") };
    serde_json::from_str(text).expect("a test reads the embedded file")
});

/// A number format, as far as it decides how fast matrices are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// bf16.
    Bf16,
    /// fp16.
    Fp16,
    /// fp32, in tensor cores where there are such.
    Fp32,
}

/// What one rank does in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Operations of products.
    pub products: f64,
    /// The same in backward.
    pub backward_products: f64,
    /// Operations of fused attention.
    pub attention: f64,
    /// The data sheet's operations, which shares are told of.
    pub peak: f64,
    /// Bytes of device memory.
    pub memory: f64,
    /// Bytes of an update on the device.
    pub update: f64,
    /// Seconds of the host for a kernel.
    pub kernel: f64,
    /// Whether the host computes itself, so that nothing happens beside anything else.
    pub is_host: bool,
    /// Elements of a product's result that the device could have computed while its last ones run dry.
    pub last_wave: f64,
    /// Seconds of the host for the hooks of a module.
    pub hook: f64,
    /// Seconds of the host around every micro step.
    pub micro_step: f64,
    /// Seconds of the host around every optimizer step.
    pub step: f64,
    /// Bytes from host to device, pinned.
    pub to_device: f64,
    /// Bytes from device to host, pinned.
    pub to_host: f64,
    /// What is left of a copy's rate where memory is not pinned.
    pub pageable: f64,
    /// Elements the host updates.
    pub host_updates: f64,
    /// Bytes read from disks.
    pub disk_read: f64,
    /// Bytes written to disks.
    pub disk_write: f64,
}

const TERA: f64 = 1e12;
const GIGA: f64 = 1e9;
const MICRO: f64 = 1e-6;

/// How much of what is possible is reached, and what the host takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Of the best measured matrix rate, by products.
    pub products: f64,
    /// Of the data sheet's matrix rate, by fused attention.
    pub attention: f64,
    /// Of the memory's peak.
    pub memory: f64,
    /// Seconds of the host for a kernel.
    pub kernel: f64,
    /// Elements of a product's result that the device could have computed while its last ones run dry.
    pub last_wave: f64,
    /// Seconds of the host for the hooks of a module.
    pub hook: f64,
    /// Seconds of the host around every micro step.
    pub micro_step: f64,
    /// Seconds of the host around every optimizer step.
    pub step: f64,
    /// What a node's host updates, relative to hosts of its time.
    pub host_updates: f64,
}

/// Which fused attention runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AttentionKernel {
    /// The first FlashAttention.
    First,
    /// The second, and PyTorch's own.
    #[default]
    Second,
    /// The latest for the architecture.
    Latest,
}

impl Shares {
    /// The same with another attention.
    #[must_use]
    pub fn with_attention(mut self, architecture: &str, kernel: AttentionKernel) -> Self {
        let own = FACTS.architectures.iter().find(|of| architecture.contains(&of.arch));
        let share = own.and_then(|of| match kernel {
            AttentionKernel::First => of.first_attention,
            AttentionKernel::Second => None,
            AttentionKernel::Latest => of.latest_attention,
        });
        self.attention = share.unwrap_or(self.attention);
        self
    }

    /// Those of an architecture.
    pub fn of(architecture: &str, outlook: Outlook) -> Self {
        let facts = &*FACTS;
        let own = facts.architectures.iter().find(|of| architecture.contains(&of.arch));
        let kernels = own.map_or(&facts.other, |of| &of.kernels);
        Self {
            products: kernels.products.rate(outlook),
            attention: kernels.attention.rate(outlook),
            memory: facts.memory.rate(outlook),
            kernel: facts.kernel_us.cost(outlook) * MICRO,
            last_wave: facts.last_wave.cost(outlook),
            hook: facts.hook_us.cost(outlook) * MICRO,
            micro_step: facts.micro_step_us.cost(outlook) * MICRO,
            step: facts.step_us.cost(outlook) * MICRO,
            host_updates: outlook.of(Share {
                low: facts.host_updates_per_s.low,
                expected: 1.0,
                high: facts.host_updates_per_s.high,
            }),
        }
    }
}

impl Pace {
    /// Of a rank of a cluster; nothing if its accelerator, or its rate in this format, is not known.
    pub fn of(cluster: &Cluster, format: Format, outlook: Outlook) -> Option<Self> {
        if let Some((profile, of)) = cluster.profile.as_ref().zip(cluster.measured()) {
            return Self::measured(cluster, profile.device.kind, of, format, outlook);
        }
        let card = cluster.gpus.device.accelerator()?;
        Self::with(cluster, format, Shares::of(&card.arch, outlook), outlook)
    }

    /// As it was measured; what was not is as usual for such a cluster.
    fn measured(
        cluster: &Cluster,
        kind: DeviceKind,
        of: &MeasuredRanks,
        format: Format,
        outlook: Outlook,
    ) -> Option<Self> {
        let rates = of.rates.get(&format)?;
        let slower = rates.spread.of(outlook);
        let card = cluster.gpus.device.accelerator();
        let ranks = cluster.gpus.layout.gpus_per_node.max(1) as f64;
        let slot = card.and_then(slot).map_or(rates.memory_bytes_per_s, |slot| slot * GIGA);
        let (read, write) = disk(cluster);
        let is_host = kind == DeviceKind::Cpu;
        Some(Self {
            products: rates.products_per_s / slower,
            backward_products: rates.backward_products_per_s / slower,
            attention: rates.attention_per_s / slower,
            peak: card.and_then(|card| peak(card, format)).unwrap_or(rates.products_per_s),
            memory: rates.memory_bytes_per_s / slower,
            update: rates.update_bytes_per_s / slower,
            kernel: rates.kernel_s * slower,
            is_host,
            last_wave: if is_host { 0.0 } else { FACTS.last_wave.expected },
            hook: rates.hook_s * slower,
            micro_step: rates.micro_step_s * slower,
            step: rates.step_s * slower,
            to_device: of.copies.map_or(slot, |copies| copies.to_device),
            to_host: of.copies.map_or(slot, |copies| copies.to_host),
            pageable: of.copies.map_or(1.0, |copies| copies.pageable / copies.to_device),
            host_updates: rates.host_updates_per_s / slower,
            disk_read: read * GIGA / ranks,
            disk_write: write * GIGA / ranks,
        })
    }

    /// The same with other shares.
    pub fn with(
        cluster: &Cluster,
        format: Format,
        shares: Shares,
        outlook: Outlook,
    ) -> Option<Self> {
        let card = cluster.gpus.device.accelerator()?;
        let peak = peak(card, format)?;
        let ranks = cluster.gpus.layout.gpus_per_node.max(1) as f64;
        let slot = slot(card)? * GIGA;
        let pinned = links().pinned_copy_share().map_or(1.0, |share| outlook.of(share));
        let (read, write) = disk(cluster);
        let devices = card.devices_per_card as f64;
        let products = best(card, format, peak) * shares.products;
        let memory = card.memory_bandwidth_gb_s? / devices * GIGA * shares.memory;
        Some(Self {
            products,
            backward_products: products,
            attention: peak * shares.attention,
            peak,
            memory,
            update: memory,
            kernel: shares.kernel,
            is_host: false,
            last_wave: shares.last_wave,
            hook: shares.hook,
            micro_step: shares.micro_step,
            step: shares.step,
            to_device: slot * pinned,
            to_host: slot * pinned,
            pageable: FACTS.pageable_share.expected,
            host_updates: shares.host_updates * host_updates(card) / ranks,
            disk_read: read * GIGA / ranks,
            disk_write: write * GIGA / ranks,
        })
    }
}

/// The data sheet's rate of one device, in operations per second.
fn peak(card: &Accelerator, format: Format) -> Option<f64> {
    let rates = card.dense_tflops;
    let rate = match format {
        // What it emulates, nobody has timed.
        Format::Bf16 if card.lacks_bf16() => None,
        Format::Bf16 => rates.bf16.or(rates.fp16),
        // A GeForce accumulates in 32 bits when it trains, at the rate of its bf16.
        Format::Fp16 => rates.bf16.or(rates.fp16),
        Format::Fp32 => rates.tf32.or(rates.fp32),
    };
    Some(rate? * TERA / card.devices_per_card as f64)
}

/// The best rate anybody measured, or what is likely.
fn best(card: &Accelerator, format: Format, peak: f64) -> f64 {
    let measured = card.measured.as_ref().filter(|_| format != Format::Fp32);
    measured.map_or(peak * FACTS.unmeasured.expected, |measured| {
        measured.mamf_bf16_tflops * TERA / card.devices_per_card as f64
    })
}

/// Elements per second that a host of the time of a card updates.
fn host_updates(card: &Accelerator) -> f64 {
    let rates = &FACTS.host_updates_per_s.by_slot;
    let own = card.pcie.as_ref().and_then(|pcie| rates.get(&pcie.generation));
    own.or_else(|| rates.values().next()).copied().unwrap_or(GIGA)
}

/// One way between host and device, in 10^9 bytes per second.
fn slot(card: &Accelerator) -> Option<f64> {
    if card.name.starts_with("GH") || card.name.starts_with("GB") {
        return links().wire("c2c").map(|wire| wire.gb_s_per_direction);
    }
    card.pcie.as_ref().map(|pcie| pcie.gb_s_per_direction)
}

/// Read and write of a node's drives, in 10^9 bytes per second: as stated, or one drive as DeepSpeed found it.
fn disk(cluster: &Cluster) -> (f64, f64) {
    let usual = links().disks.first().map_or((1.0, 1.0), |disk| (disk.read_gb_s, disk.write_gb_s));
    cluster.disk.map_or(usual, |disk| (disk.read_gb_s, disk.write_gb_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(gpus: &str, outlook: Outlook) -> Pace {
        Pace::of(&Cluster::new(gpus.parse().unwrap()), Format::Bf16, outlook).unwrap()
    }

    #[test]
    fn nothing_is_faster_than_its_data_sheet() {
        for gpus in ["8xA100-80G", "8xH100", "8xB200", "2xRTX-4090", "8xMI300X"] {
            let best = pace(gpus, Outlook::Best);
            assert!(best.products <= best.peak && best.attention < best.peak, "{gpus}");
        }
    }

    #[test]
    fn the_worst_is_slower_than_what_is_expected() {
        let [worst, expected, best] =
            [Outlook::Worst, Outlook::Expected, Outlook::Best].map(|it| pace("8xH100", it));
        assert!(worst.products < expected.products && expected.products < best.products);
        assert!(worst.kernel > expected.kernel && expected.kernel > best.kernel);
        assert!(worst.host_updates < best.host_updates);
    }

    #[test]
    fn an_unknown_card_has_no_pace() {
        let cluster = Cluster::new("8x44GB".parse().unwrap());
        assert_eq!(Pace::of(&cluster, Format::Bf16, Outlook::Expected), None);
    }

    #[test]
    fn a_card_without_bf16_is_not_timed_in_it() {
        let cluster = Cluster::new("8xT4".parse().unwrap());
        assert_eq!(Pace::of(&cluster, Format::Bf16, Outlook::Expected), None);
        let fp16 = Pace::of(&cluster, Format::Fp16, Outlook::Expected).unwrap();
        // 65 TFLOPS by its data sheet.
        assert_eq!(fp16.peak, 65e12);
    }
}
