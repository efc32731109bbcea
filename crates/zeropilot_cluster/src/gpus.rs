//! What people type for their GPUs: `8`, `44GB`, `5x44GB`, `8xA100-80G`, `4x8xH100`, `8卡A800`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use zeropilot_units::{Bytes, Factor, ParseQuantityError, Product, parse_product};

use crate::accelerator::Accelerator;
use crate::capacity::Capacity;
use crate::catalogue::{NotFound, find, is_label};
use crate::device::{Device, MemoryUnit, StatedMemory};

/// More GPUs than anybody has are a slip of the finger.
const MOST_GPUS: u64 = 1 << 24;

/// A GPU of less than this, or of more, is one too.
const MEMORY: Range<u64> = 500_000_000..4_000_000_000_000;

/// How many GPUs a node has unless something is known about the card.
const USUAL_PER_NODE: u64 = 8;

/// A bare number after `x` above this can be memory as well as GPUs.
const MOST_BARE_PER_NODE: u64 = 16;

/// GPUs over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Nodes.
    pub nodes: u64,
    /// GPUs in each.
    pub gpus_per_node: u64,
    /// Whether somebody said so, or the usual shape was assumed.
    pub stated: bool,
}

/// A number of equal GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpus {
    /// Where they are.
    pub layout: Layout,
    /// What each is. A card that shows itself as two devices counts twice.
    pub device: Device,
}

/// Why a text does not describe GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct GpusError {
    /// The part of the text that is meant, in bytes.
    pub span: Range<usize>,
    /// What is wrong with it.
    pub problem: GpusProblem,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum GpusProblem {
    /// There is no text.
    Empty,
    /// `0x…`.
    Zero,
    /// More than anybody has.
    TooMany {
        /// What is accepted.
        most: u64,
    },
    /// `2x4x8xH100`: more than nodes and GPUs per node.
    TooManyFactors,
    /// `8x`: nothing is multiplied.
    NothingAfterTimes {
        /// The number before it.
        count: u64,
    },
    /// `8x80`: GPUs or gigabytes?
    GpusOrGigabytes {
        /// The number before.
        left: u64,
        /// The number after.
        right: u64,
    },
    /// Digits followed by what is no unit of memory.
    NotMemory,
    /// No GPU has that little or that much memory.
    ImplausibleMemory,
    /// `4xA100-40G+4xA100-80G`: GPUs of several kinds.
    Mixed {
        /// As many of the kind with the least memory: every rank holds the same share, so that it decides.
        smallest: Gpus,
    },
    /// The card is not one of the catalogue.
    Accelerator(NotFound),
    /// The total does not divide over nodes of a usual size.
    Uneven {
        /// The total.
        count: u64,
        /// The usual size.
        usual: u64,
    },
}

impl Gpus {
    /// Ranks, one for each GPU.
    pub fn world_size(&self) -> u64 {
        self.layout.nodes * self.layout.gpus_per_node
    }

    /// The memory, if only that is known.
    pub fn stated_memory(&self) -> Option<StatedMemory> {
        match self.device {
            Device::Memory(stated) => Some(stated),
            Device::Unknown | Device::Accelerator(_) => None,
        }
    }
}

impl FromStr for Gpus {
    type Err = GpusError;

    fn from_str(text: &str) -> Result<Self, GpusError> {
        if let Some(smallest) = mixed(text) {
            let problem = GpusProblem::Mixed { smallest };
            return Err(GpusError { span: 0..text.len(), problem });
        }
        let product = parse_product(text);
        let at_end = |problem| GpusError { span: product.at.clone(), problem };
        if product.of.is_empty() {
            return Err(GpusError { span: 0..text.len(), problem: GpusProblem::Empty });
        }
        let mut counts = counts(&product)?;
        let device = match bare_number(product.of) {
            Some(count) => {
                let count = count_of(count).map_err(at_end)?;
                if let Some(&left) = counts.last().filter(|_| count > MOST_BARE_PER_NODE) {
                    return Err(at_end(GpusProblem::GpusOrGigabytes { left, right: count }));
                }
                counts.push(count);
                Device::Unknown
            }
            None => match (device(product.of), glued(product.of)) {
                (Err(GpusProblem::NotMemory), Some((count, device))) => {
                    counts.push(count_of(count).map_err(at_end)?);
                    device.map_err(at_end)?
                }
                (device, _) => device.map_err(at_end)?,
            },
        };
        let span = product.at.end - text[..product.at.end].trim_start().len()..product.at.end;
        let layout = layout(&counts, device).map_err(|problem| GpusError { span, problem })?;
        Ok(Self { layout, device })
    }
}

/// As many GPUs as all parts of `4xA100-40G+4xA100-80G` have together, of the kind with the least memory.
fn mixed(text: &str) -> Option<Gpus> {
    if !text.contains('+') {
        return None;
    }
    let kinds: Vec<Gpus> = text.split('+').map(|kind| kind.parse().ok()).collect::<Option<_>>()?;
    let memory = |gpus: &&Gpus| Capacity::of(gpus.device).map(|capacity| capacity.bytes.low());
    let device = kinds.iter().min_by_key(memory)?.device;
    let count = kinds.iter().map(Gpus::world_size).sum();
    Some(Gpus { layout: layout(&[count], device).ok()?, device })
}

fn layout(counts: &[u64], device: Device) -> Result<Layout, GpusProblem> {
    let usual = device.accelerator().map(Accelerator::typical_devices_per_node);
    match *counts {
        [] => stated(1, 1),
        [count] => spread(count, usual.unwrap_or(USUAL_PER_NODE)),
        [nodes, gpus_per_node] => stated(nodes, gpus_per_node),
        _ => Err(GpusProblem::TooManyFactors),
    }
}

fn counts(product: &Product<'_>) -> Result<Vec<u64>, GpusError> {
    let check = |factor: &Factor| {
        count_of(factor.value).map_err(|problem| GpusError { span: factor.at.clone(), problem })
    };
    product.factors.iter().map(check).collect()
}

fn count_of(count: u64) -> Result<u64, GpusProblem> {
    match count {
        0 => Err(GpusProblem::Zero),
        1..=MOST_GPUS => Ok(count),
        _ => Err(GpusProblem::TooMany { most: MOST_GPUS }),
    }
}

/// `8`, also `8卡`; but `4090` is a card.
fn bare_number(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['卡', '张']).unwrap_or(text).trim_end();
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let counts = number && !is_label(digits);
    counts.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// `8H100`: a number and a card with nothing between them.
fn glued(text: &str) -> Option<(u64, Result<Device, GpusProblem>)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, card) = text.split_at(digits);
    let device = match find(card) {
        Ok(accelerator) => Ok(Device::Accelerator(accelerator)),
        Err(NotFound::Unknown { .. }) => return None,
        Err(several) => Err(GpusProblem::Accelerator(several)),
    };
    (!count.is_empty()).then(|| (count.parse().unwrap_or(u64::MAX), device))
}

fn device(text: &str) -> Result<Device, GpusProblem> {
    if let Some(count) = text.strip_suffix(['x', 'X', '×', '*']).and_then(bare_number) {
        return Err(GpusProblem::NothingAfterTimes { count });
    }
    match find(text) {
        Ok(accelerator) => return Ok(Device::Accelerator(accelerator)),
        Err(NotFound::Unknown { .. }) if text.starts_with(|c: char| c.is_ascii_digit()) => {}
        Err(not_found) => return Err(GpusProblem::Accelerator(not_found)),
    }
    match text.parse::<Bytes>() {
        Ok(bytes) if MEMORY.contains(&bytes.0) => {
            let binary = text.to_ascii_lowercase().ends_with("ib");
            let unit = if binary { MemoryUnit::Binary } else { MemoryUnit::Decimal };
            Ok(Device::Memory(StatedMemory { bytes, unit }))
        }
        Ok(_) | Err(ParseQuantityError::OutOfRange(_)) => Err(GpusProblem::ImplausibleMemory),
        Err(_) => Err(GpusProblem::NotMemory),
    }
}

fn stated(nodes: u64, gpus_per_node: u64) -> Result<Layout, GpusProblem> {
    count_of(nodes.saturating_mul(gpus_per_node))?;
    Ok(Layout { nodes, gpus_per_node, stated: true })
}

/// A total over equal nodes of a usual size, or of a little less.
fn spread(count: u64, usual: u64) -> Result<Layout, GpusProblem> {
    if count <= usual.max(USUAL_PER_NODE) {
        return Ok(Layout { nodes: 1, gpus_per_node: count, stated: false });
    }
    let divides = |gpus: &u64| count.is_multiple_of(*gpus);
    match (usual.div_ceil(2)..=usual).rev().find(divides) {
        Some(gpus) => Ok(Layout { nodes: count / gpus, gpus_per_node: gpus, stated: false }),
        None => Err(GpusProblem::Uneven { count, usual }),
    }
}

/// As it can be typed again.
impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { nodes, gpus_per_node, .. } = self.layout;
        write!(f, "{nodes}x{gpus_per_node}")?;
        match self.device {
            Device::Unknown => Ok(()),
            Device::Memory(stated) => write!(f, "x{stated}"),
            Device::Accelerator(accelerator) => write!(f, "x{}", accelerator.slug()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::accelerators;

    fn parts(text: &str) -> (u64, u64, String) {
        let gpus: Gpus = text.parse().unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let device = match gpus.device {
            Device::Unknown => "?".to_owned(),
            Device::Memory(stated) => stated.to_string(),
            Device::Accelerator(accelerator) => accelerator.name.clone(),
        };
        (gpus.layout.nodes, gpus.layout.gpus_per_node, device)
    }

    #[test]
    fn gpus_are_written_in_many_ways() {
        let cases = [
            ("8", 1, 8, "?"),
            ("16", 2, 8, "?"),
            ("4x8", 4, 8, "?"),
            ("8卡", 1, 8, "?"),
            ("44GB", 1, 1, "44GB"),
            ("5x44GB", 1, 5, "44GB"),
            ("5*44G", 1, 5, "44GB"),
            ("2 × 46068MiB", 1, 2, "44.98828125GiB"),
            ("8xA100-80G", 1, 8, "A100 SXM4 80GB"),
            ("8 x A100-80GB", 1, 8, "A100 SXM4 80GB"),
            ("8卡A800", 1, 8, "A800 SXM4 80GB"),
            ("4x8xH100", 4, 8, "H100 SXM5 80GB"),
            ("8H100", 1, 8, "H100 SXM5 80GB"),
            ("2x8H100", 2, 8, "H100 SXM5 80GB"),
            ("8A100-80G", 1, 8, "A100 SXM4 80GB"),
            ("8xRTXPRO6000", 1, 8, "RTX PRO 6000 Blackwell"),
            ("16xH100", 2, 8, "H100 SXM5 80GB"),
            ("12xH100", 2, 6, "H100 SXM5 80GB"),
            ("H100", 1, 1, "H100 SXM5 80GB"),
            ("4090", 1, 1, "RTX 4090"),
            ("8x4090", 1, 8, "RTX 4090"),
            ("8x3090", 1, 8, "RTX 3090"),
            ("16x910C", 1, 16, "Ascend 910C"),
            ("1x72xGB200", 1, 72, "GB200"),
            ("100000xH100", 12500, 8, "H100 SXM5 80GB"),
        ];
        for (text, nodes, gpus, device) in cases {
            assert_eq!(parts(text), (nodes, gpus, device.to_owned()), "{text}");
        }
        assert!(!"16xH100".parse::<Gpus>().unwrap().layout.stated);
        assert!("2x8xH100".parse::<Gpus>().unwrap().layout.stated);
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let cases = [
            ("", "", GpusProblem::Empty),
            ("0xH100", "0", GpusProblem::Zero),
            ("0", "0", GpusProblem::Zero),
            (
                "99999999999999999999x8xT4",
                "99999999999999999999",
                GpusProblem::TooMany { most: MOST_GPUS },
            ),
            ("16777216x8xT4", "16777216x8xT4", GpusProblem::TooMany { most: MOST_GPUS }),
            ("2x4x8xH100", "2x4x8xH100", GpusProblem::TooManyFactors),
            ("8x", "8x", GpusProblem::NothingAfterTimes { count: 8 }),
            ("8x80", "80", GpusProblem::GpusOrGigabytes { left: 8, right: 80 }),
            ("5x44QB", "44QB", GpusProblem::NotMemory),
            ("5x44MB", "44MB", GpusProblem::ImplausibleMemory),
            ("8x1e30GB", "1e30GB", GpusProblem::ImplausibleMemory),
            (" 11xH100 ", "11xH100", GpusProblem::Uneven { count: 11, usual: 8 }),
        ];
        for (text, meant, problem) in cases {
            let error = text.parse::<Gpus>().unwrap_err();
            assert_eq!((&text[error.span.clone()], &error.problem), (meant, &problem), "{text}");
        }
        for text in ["4xA100-40G+4xA100-80G", "4xA100-80G + 4xA100-40G"] {
            let smallest = "8xA100-40G".parse().unwrap();
            let error = text.parse::<Gpus>().unwrap_err();
            assert_eq!(error.problem, GpusProblem::Mixed { smallest }, "{text}");
        }
        for (text, span) in [("8xA100", 2..6), ("8A100", 0..5)] {
            let error = text.parse::<Gpus>().unwrap_err();
            assert_eq!(error.span, span);
            assert!(matches!(error.problem, GpusProblem::Accelerator(NotFound::Ambiguous { .. })));
        }
    }

    fn devices() -> impl Strategy<Value = Device> {
        prop_oneof![
            Just(Device::Unknown),
            (1_u64..200_000, any::<bool>()).prop_map(|(mib, binary)| {
                let (scale, unit) = if binary {
                    (1 << 20, MemoryUnit::Binary)
                } else {
                    (1_000_000, MemoryUnit::Decimal)
                };
                Device::Memory(StatedMemory { bytes: Bytes((mib + 500) * scale), unit })
            }),
            (0..accelerators().len()).prop_map(|index| Device::Accelerator(&accelerators()[index])),
        ]
    }

    proptest! {
        #[test]
        fn shown_gpus_read_back(nodes in 1_u64..5000, gpus in 1_u64..=16, device in devices()) {
            let layout = Layout { nodes, gpus_per_node: gpus, stated: true };
            let shown = Gpus { layout, device };
            prop_assert_eq!(shown.to_string().parse::<Gpus>(), Ok(shown));
        }

        #[test]
        fn any_text_is_read_or_pointed_at(text in "\\PC{0,16}|[0-9xX* ]{0,6}[A-Z0-9 -]{0,8}(G|GB|GiB)?") {
            match text.parse::<Gpus>() {
                Ok(gpus) => prop_assert!((1..=MOST_GPUS).contains(&gpus.world_size())),
                Err(error) => prop_assert!(text.get(error.span).is_some()),
            }
        }
    }
}
