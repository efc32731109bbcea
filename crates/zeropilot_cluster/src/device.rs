//! What one of the GPUs is: a card of the catalogue, an amount of memory, or nothing that was said.

use std::fmt;

use zeropilot_units::Bytes;

use crate::accelerator::Accelerator;

/// How an amount of memory was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryUnit {
    /// GB or G: what is printed on the box, or a careless GiB.
    Decimal,
    /// GiB or MiB: what a driver or PyTorch prints.
    Binary,
}

/// Memory per GPU as somebody wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedMemory {
    /// The amount, taken by the letter: 44GB is 44 × 10^9 bytes.
    pub bytes: Bytes,
    /// The unit.
    pub unit: MemoryUnit,
}

/// One GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Device {
    /// Only the number of GPUs is known.
    Unknown,
    /// The memory is known.
    Memory(StatedMemory),
    /// The card is known.
    Accelerator(&'static Accelerator),
}

impl StatedMemory {
    /// The number in front of the unit, if that were giga.
    pub(crate) fn giga(self) -> f64 {
        let unit = match self.unit {
            MemoryUnit::Decimal => 1e9,
            MemoryUnit::Binary => Bytes::GIB.0 as f64,
        };
        self.bytes.0 as f64 / unit
    }
}

impl Device {
    /// The card, if it is known.
    pub fn accelerator(self) -> Option<&'static Accelerator> {
        match self {
            Self::Accelerator(accelerator) => Some(accelerator),
            Self::Unknown | Self::Memory(_) => None,
        }
    }
}

/// As it can be typed: `44GB`.
impl fmt::Display for StatedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            MemoryUnit::Decimal => "GB",
            MemoryUnit::Binary => "GiB",
        };
        write!(f, "{}{unit}", self.giga())
    }
}
