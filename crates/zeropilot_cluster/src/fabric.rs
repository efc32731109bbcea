//! How long ranks take to communicate: a fixed part and a part by bytes, per algorithm.
//!
//! Ranks of a group are consecutive. A ring goes around all of them and enters every node once, so that it is as fast as
//! the slower of a GPU's link and a node's ports; every hop costs its latency. A tree has the latency of its
//! height; only sums are made along trees.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::links::{Path, Share, links};
use crate::network::Network;
use crate::profile::MachineProfile;

/// What is communicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Everybody gets the parts of all: around the ring once.
    AllGather,
    /// Everybody gets a share of the sum: around the ring once.
    ReduceScatter,
    /// Everybody gets the sum: around the ring twice.
    AllReduce,
    /// One gets the sum.
    Reduce,
    /// Everybody gets a part from each: all pairs at once.
    AllToAll,
}

/// The way it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// From neighbour to neighbour.
    Ring,
    /// Up and down, inside nodes from neighbour to neighbour.
    Tree,
}

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds.
    pub seconds: f64,
    /// The faster way.
    pub algorithm: Algorithm,
    /// Whether it leaves the node.
    pub crosses_nodes: bool,
}

/// Links of a cluster as collectives find them.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// GPUs of a node.
    pub gpus_per_node: u64,
    /// What links them.
    pub inside: Path,
    /// Bytes per second one way between GPUs of a node.
    pub inside_rate: f64,
    /// Bytes per second one way out of a node.
    pub outside_rate: f64,
    /// Seconds of a hop inside a node.
    pub inside_hop: f64,
    /// Seconds of a hop between nodes.
    pub outside_hop: f64,
    /// Seconds every call takes.
    pub call: f64,
    /// What was measured on a node; calls among all of its GPUs are taken from it.
    pub profile: Option<Arc<MachineProfile>>,
}

/// Which of the measured shares is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outlook {
    /// The worst that was measured.
    Worst,
    /// The middle.
    #[default]
    Expected,
    /// The best.
    Best,
}

impl Outlook {
    /// The share it takes.
    pub fn of(self, share: Share) -> f64 {
        match self {
            Self::Worst => share.low,
            Self::Expected => share.expected,
            Self::Best => share.high,
        }
    }
}

const GIGA: f64 = 1e9;
const MICRO: f64 = 1e-6;
/// Where nothing is known about a GPU: its slot.
const USUAL_SLOT: f64 = 31.5;

impl Fabric {
    /// Of a cluster.
    pub fn of(cluster: &Cluster, outlook: Outlook) -> Self {
        let (inside, wire) = inside(cluster);
        let share = |path| links().collective_share(path).map_or(1.0, |share| outlook.of(share));
        let network = cluster.network.or_else(|| Network::usual(cluster));
        let outside = network.map_or(GIGA, |network| network.gb_s() * GIGA);
        let latency = &links().latency;
        Self {
            gpus_per_node: cluster.gpus.layout.gpus_per_node.max(1),
            inside,
            inside_rate: wire * GIGA * share(inside),
            outside_rate: outside * share(Path::Network),
            inside_hop: latency.inside_hop_us * MICRO,
            outside_hop: latency.outside_hop_us * MICRO,
            call: latency.call_us * MICRO,
            profile: cluster.profile.clone(),
        }
    }

    /// The same for groups of every so manyth GPU, which all communicate at once and share the ports of their nodes.
    #[must_use]
    pub fn among_every(&self, stride: u64) -> Self {
        let stride = stride.max(1);
        Self {
            gpus_per_node: (self.gpus_per_node / stride).max(1),
            outside_rate: self.outside_rate / stride.min(self.gpus_per_node) as f64,
            ..self.clone()
        }
    }

    /// A fabric that costs nothing.
    pub fn free() -> Self {
        Self {
            gpus_per_node: 1,
            inside: Path::Gpu,
            inside_rate: f64::INFINITY,
            outside_rate: f64::INFINITY,
            inside_hop: 0.0,
            outside_hop: 0.0,
            call: 0.0,
            profile: None,
        }
    }

    /// What a call of `bytes` (of the whole) among `ranks` costs.
    pub fn cost(&self, pattern: Pattern, bytes: u64, ranks: u64) -> Cost {
        let nodes = ranks.div_ceil(self.gpus_per_node);
        let crosses_nodes = nodes > 1;
        if ranks <= 1 {
            return Cost { seconds: 0.0, algorithm: Algorithm::Ring, crosses_nodes };
        }
        let profile = self.profile.as_ref().filter(|_| ranks == self.gpus_per_node);
        let measured = profile.and_then(|profile| profile.of_ranks(ranks));
        if let Some(curve) = measured.and_then(|measured| measured.collectives.get(&pattern)) {
            let seconds = curve.seconds(bytes);
            return Cost { seconds, algorithm: Algorithm::Ring, crosses_nodes };
        }
        let rate =
            if crosses_nodes { self.inside_rate.min(self.outside_rate) } else { self.inside_rate };
        if pattern == Pattern::AllToAll {
            let seconds = self.call + self.exchange(bytes as f64, ranks);
            return Cost { seconds, algorithm: Algorithm::Ring, crosses_nodes };
        }
        let around = bytes as f64 * (ranks - 1) as f64 / ranks as f64 / rate;
        let hops_out = if crosses_nodes { nodes } else { 0 } as f64;
        let hops_in = (ranks - 1) as f64 - hops_out.min((ranks - 1) as f64);
        let hops = hops_in * self.inside_hop + hops_out * self.outside_hop;
        let rounds = if pattern == Pattern::AllReduce { 2.0 } else { 1.0 };
        let moved = match pattern {
            Pattern::Reduce => bytes as f64 / rate,
            _ => rounds * around,
        };
        let ring = self.call + rounds * hops + moved;
        if matches!(pattern, Pattern::AllGather | Pattern::ReduceScatter) {
            return Cost { seconds: ring, algorithm: Algorithm::Ring, crosses_nodes };
        }
        let height = f64::from(nodes.ilog2()) + if nodes.is_power_of_two() { 0.0 } else { 1.0 };
        let chain = (self.gpus_per_node.min(ranks) - 1) as f64 * self.inside_hop;
        let tree = self.call + rounds * (height * self.outside_hop + chain) + moved;
        if tree < ring {
            return Cost { seconds: tree, algorithm: Algorithm::Tree, crosses_nodes };
        }
        Cost { seconds: ring, algorithm: Algorithm::Ring, crosses_nodes }
    }
}

impl Fabric {
    /// Seconds in which every rank sends each other rank its part: what stays in the node over its links, what leaves
    /// it through the ports that its GPUs share.
    fn exchange(&self, bytes: f64, ranks: u64) -> f64 {
        let near = ranks.min(self.gpus_per_node);
        let part = bytes / ranks as f64;
        let inside = part * (near - 1) as f64 / self.inside_rate + self.inside_hop;
        if near == ranks {
            return inside;
        }
        let leaving = part * (ranks - near) as f64 * near as f64;
        inside.max(leaving / self.outside_rate + self.outside_hop)
    }
}

/// What links the GPUs of a node, and its rate one way.
fn inside(cluster: &Cluster) -> (Path, f64) {
    let card = cluster.gpus.device.accelerator();
    let slot =
        card.and_then(|card| card.pcie.as_ref()).map_or(USUAL_SLOT, |p| p.gb_s_per_direction);
    let Some(card) = card else { return (Path::Pcie, slot) };
    let fast = card.fast_link.as_ref().and_then(|link| link.gb_s_per_direction);
    // Bridges join pairs only.
    let is_bridge =
        card.has_optional_link() || card.has_bridge() && cluster.gpus.layout.gpus_per_node > 2;
    match fast {
        Some(rate) if !is_bridge => (Path::Gpu, rate),
        _ => (Path::Pcie, slot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fabric(gpus: &str) -> Fabric {
        Fabric::of(&Cluster::new(gpus.parse().unwrap()), Outlook::Expected)
    }

    /// One gigabyte around eight H100: 7/8 GB at 80 % of 450 GB/s is 2.4 ms.
    #[test]
    fn inside_a_node_the_fast_link_decides() {
        let cost = fabric("8xH100").cost(Pattern::AllGather, 1_000_000_000, 8);
        assert!((2.2e-3..2.7e-3).contains(&cost.seconds), "{cost:?}");
        assert!(!cost.crosses_nodes);
    }

    /// 32 KiB among eight take about 40 µs in the measured curve, a MiB 46 µs.
    #[test]
    fn a_small_sum_takes_tens_of_microseconds() {
        let fabric = fabric("8xH200");
        let small = fabric.cost(Pattern::AllReduce, 32 << 10, 8).seconds;
        assert!((30e-6..50e-6).contains(&small), "{small}");
        let larger = fabric.cost(Pattern::AllReduce, 1 << 20, 8).seconds;
        assert!((35e-6..60e-6).contains(&larger), "{larger}");
    }

    /// 8 GPUs of 450 GB/s one way: each sends 7/8 of 1 GB; over two nodes half of it leaves, through ports that eight share.
    #[test]
    fn an_exchange_is_bound_by_what_leaves_the_node() {
        let fabric = fabric("2x8xH100");
        let inside = fabric.cost(Pattern::AllToAll, 1_000_000_000, 8);
        let expected = 0.875e9 / fabric.inside_rate;
        assert!((inside.seconds / expected - 1.0).abs() < 0.05, "{inside:?}");
        let outside = fabric.cost(Pattern::AllToAll, 1_000_000_000, 16);
        let expected = 8.0 * 0.5e9 / fabric.outside_rate;
        assert!((outside.seconds / expected - 1.0).abs() < 0.05, "{outside:?}");
    }

    /// Every eighth GPU of two nodes: one in each, and eight such pairs share the ports, so that half of 1 GB goes out at
    /// an eighth of their rate.
    #[test]
    fn groups_across_nodes_share_their_ports() {
        let fabric = fabric("2x8xH100");
        let cost = fabric.among_every(8).cost(Pattern::AllGather, 1_000_000_000, 2);
        let expected = 0.5e9 / (fabric.outside_rate / 8.0);
        assert!((cost.seconds / expected - 1.0).abs() < 0.05, "{cost:?}");
        assert!(cost.crosses_nodes);
    }

    #[test]
    fn one_rank_has_nobody_to_talk_to() {
        assert_eq!(fabric("1xH100").cost(Pattern::AllReduce, 1 << 30, 1).seconds, 0.0);
    }

    #[test]
    fn a_tree_wins_where_there_are_many_nodes_and_few_bytes() {
        let fabric = fabric("1024x8xH100");
        assert_eq!(fabric.cost(Pattern::AllReduce, 1024, 8192).algorithm, Algorithm::Tree);
        assert_eq!(fabric.cost(Pattern::AllGather, 1024, 8192).algorithm, Algorithm::Ring);
    }

    #[test]
    fn bridged_pairs_of_many_talk_over_the_slot() {
        assert_eq!(fabric("8xH100-SXM").inside, Path::Gpu);
        assert_eq!(fabric("8xRTX-3090").inside, Path::Pcie);
    }
}
