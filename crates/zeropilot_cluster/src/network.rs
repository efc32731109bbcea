//! The links between nodes: ports of one kind, as people type them (`8xNDR`, `100GbE`).

use std::fmt;
use std::str::FromStr;

use zeropilot_units::parse_product;

use crate::cluster::Cluster;
use crate::links::{Wire, WireKind, links};

/// Ports of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// How many.
    pub ports: u64,
    /// Of what.
    pub wire: &'static Wire,
    /// Whether somebody said so, or what is usual was assumed.
    pub stated: bool,
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// No such wire.
    #[error("{0:?} is not a known link")]
    Unknown(String),
    /// A wire inside a node.
    #[error("{0:?} does not connect nodes")]
    Inside(String),
    /// No port, or more than a node has.
    #[error("a node has 1 to {MOST_PORTS} ports")]
    Ports,
}

const MOST_PORTS: u64 = 64;

impl Network {
    /// One way, 10^9 bytes per second, all ports of a node together.
    pub fn gb_s(&self) -> f64 {
        self.ports as f64 * self.wire.gb_s_per_direction
    }

    /// What a node of these GPUs usually has: a port per GPU as fast as its generation in a full server, one of
    /// 100 Gbit/s in others and where GPUs have no fast link.
    pub fn usual(cluster: &Cluster) -> Option<Self> {
        let ports = cluster.gpus.layout.gpus_per_node;
        let card = cluster.gpus.device.accelerator();
        let fast = card.and_then(|card| card.fast_link.as_ref()).map(|link| link.name.as_str());
        let is_full = card.is_some_and(|card| ports >= card.typical_devices_per_node());
        let (ports, name) = match fast.filter(|_| is_full) {
            Some("NVLink 5" | "NVLink 4") => (ports, "NDR"),
            Some("NVLink 3") => (ports, "HDR"),
            Some("NVLink 2") => (ports.div_ceil(2), "EDR"),
            Some(_) => (ports, "NDR"),
            None => (1, "100GbE"),
        };
        let wire = links().wire(name)?;
        Some(Self { ports: ports.min(8), wire, stated: false })
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let whole = links().wire(text).map(|wire| (1, wire));
        let (ports, wire) = match whole {
            Some(found) => found,
            None => {
                let product = parse_product(text);
                let ports = product.factors.iter().map(|factor| factor.value).product();
                let unknown = || NetworkError::Unknown(product.of.to_owned());
                (ports, links().wire(product.of).ok_or_else(unknown)?)
            }
        };
        if wire.kind != WireKind::Network {
            return Err(NetworkError::Inside(wire.name.clone()));
        }
        if !(1..=MOST_PORTS).contains(&ports) {
            return Err(NetworkError::Ports);
        }
        Ok(Self { ports, wire, stated: true })
    }
}

/// As it can be typed again.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.wire.aliases.first().unwrap_or(&self.wire.name);
        write!(f, "{}x{}", self.ports, name.to_uppercase().replace("GBE", "GbE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_typed_as_ports_and_wires() {
        let rate = |text: &str| text.parse::<Network>().map(|network| network.gb_s());
        assert_eq!(rate("8xNDR"), Ok(400.0));
        assert_eq!(rate("4 x HDR"), Ok(100.0));
        assert_eq!(rate("25GbE"), Ok(3.125));
        assert_eq!(rate("NVLink 4"), Err(NetworkError::Inside("NVLink 4".to_owned())));
        assert_eq!(rate("0xNDR"), Err(NetworkError::Ports));
        assert_eq!(rate("2xpigeons"), Err(NetworkError::Unknown("pigeons".to_owned())));
    }

    #[test]
    fn shown_networks_read_back() {
        for text in ["8xNDR", "1x100GbE", "4xEDR"] {
            let network: Network = text.parse().unwrap();
            assert_eq!(network.to_string(), text);
        }
    }
}
