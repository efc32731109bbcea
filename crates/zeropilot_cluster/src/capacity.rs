//! How much memory PyTorch finds on a GPU, which is less than what is printed on the box.
//!
//! Where nobody published the number for a card, it is estimated from the cards of the same kind for which somebody
//! did: the catalogue is the only source of margins.

use std::sync::LazyLock;

use zeropilot_units::{Bytes, Estimate};

use crate::accelerator::{Accelerator, Vendor};
use crate::catalogue::accelerators;
use crate::device::{Device, MemoryUnit, StatedMemory};

/// What a capacity rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// PyTorch or the CUDA runtime printed it on this card.
    Published,
    /// The driver printed a total on this card; the runtime shows a little less.
    DriverTotal,
    /// Only the memory sold is known.
    Nominal,
    /// Written as GB, taken by the letter as powers of ten: careful for every card and nearly exact for those whose
    /// error correction takes its share.
    StatedDecimal,
    /// Written as GiB or MiB, taken as what is usable.
    StatedBinary,
}

/// The total memory of one GPU as PyTorch reports it, before anything runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// How much.
    pub bytes: Estimate,
    /// How that is known.
    pub basis: Basis,
}

/// Shares of one figure in another, over all cards that publish both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Margin {
    least: f64,
    most: f64,
}

impl Margin {
    fn over(shares: impl Iterator<Item = f64>) -> Option<Self> {
        shares.fold(None, |margin, share| {
            let Self { least, most } = margin.unwrap_or(Self { least: share, most: share });
            Some(Self { least: least.min(share), most: most.max(share) })
        })
    }

    fn of(self, whole: Bytes) -> Estimate {
        let middle = f64::midpoint(self.least, self.most);
        Estimate::new(share(whole, self.least), share(whole, middle), share(whole, self.most))
    }
}

fn share(whole: Bytes, share: f64) -> Bytes {
    Bytes::whole((whole.0 as f64 * share).round())
}

fn gib(amount: f64) -> Bytes {
    share(Bytes::GIB, amount)
}

/// What PyTorch printed on this card: the least and the most.
fn published(accelerator: &Accelerator) -> Option<(Bytes, Bytes)> {
    if let Some(printed) = &accelerator.torch_capacity_gib {
        let margin = Margin::over(printed.iter().copied())?;
        return Some((gib(margin.least), gib(margin.most)));
    }
    accelerator.cuda_visible_bytes.map(|bytes| (Bytes(bytes), Bytes(bytes)))
}

fn nominal(accelerator: &Accelerator) -> Option<Bytes> {
    accelerator.device_gb_nominal().map(|gigabytes| Bytes(gigabytes * Bytes::GIB.0))
}

fn driver_total(accelerator: &Accelerator) -> Option<Bytes> {
    accelerator.driver_total_mib.map(|mib| Bytes(mib << 20))
}

/// Shares of the published capacity in what `whole` says, among the cards that `alike` picks.
fn margin(
    whole: fn(&Accelerator) -> Option<Bytes>,
    alike: impl Fn(&Accelerator) -> bool,
) -> Option<Margin> {
    let shares = accelerators().iter().filter(|card| alike(card)).filter_map(|card| {
        let ((least, most), whole) = (published(card)?, whole(card)?);
        // PyTorch prints two decimals, which can round up to more than the whole.
        Some([least, most].map(|bytes| (bytes.0 as f64 / whole.0 as f64).min(1.0)))
    });
    Margin::over(shares.flatten())
}

struct Margins {
    driver_nvidia: Margin,
    nominal_any: Margin,
}

static MARGINS: LazyLock<Margins> = LazyLock::new(|| Margins {
    driver_nvidia: margin(driver_total, |card| card.vendor == Vendor::Nvidia)
        .expect("a test asks for every capacity"),
    nominal_any: margin(nominal, |_| true).expect("a test asks for every capacity"),
});

impl Capacity {
    /// The memory of this GPU, if anything is known about it.
    pub fn of(device: Device) -> Option<Self> {
        match device {
            Device::Unknown => None,
            Device::Memory(stated) => Some(Self::stated(stated)),
            Device::Accelerator(accelerator) => Self::of_accelerator(accelerator),
        }
    }

    fn of_accelerator(accelerator: &Accelerator) -> Option<Self> {
        if let Some((least, most)) = published(accelerator) {
            // Which driver it will be is not known, so that the smaller figure is the one to count on.
            let bytes = Estimate::new(least, least, most);
            return Some(Self { bytes, basis: Basis::Published });
        }
        let nvidia = accelerator.vendor == Vendor::Nvidia;
        if let Some(total) = driver_total(accelerator).filter(|_| nvidia) {
            let bytes = MARGINS.driver_nvidia.of(total);
            return Some(Self { bytes, basis: Basis::DriverTotal });
        }
        let alike = |card: &Accelerator| {
            card.vendor == accelerator.vendor && card.inline_ecc == accelerator.inline_ecc
        };
        let margin = margin(nominal, alike).unwrap_or(MARGINS.nominal_any);
        let bytes = margin.of(nominal(accelerator)?);
        Some(Self { bytes, basis: Basis::Nominal })
    }

    fn stated(stated: StatedMemory) -> Self {
        let giga = gib(stated.giga());
        match stated.unit {
            MemoryUnit::Decimal => {
                let least = share(giga, MARGINS.nominal_any.least);
                let bytes = Estimate::new(least, stated.bytes, giga);
                Self { bytes, basis: Basis::StatedDecimal }
            }
            MemoryUnit::Binary => {
                let least = share(stated.bytes, MARGINS.driver_nvidia.least);
                let bytes = Estimate::new(least, stated.bytes, stated.bytes);
                Self { bytes, basis: Basis::StatedBinary }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;

    fn capacity(name: &str) -> Capacity {
        Capacity::of(Device::Accelerator(find(name).unwrap())).unwrap()
    }

    fn stated(bytes: u64, unit: MemoryUnit) -> Capacity {
        Capacity::of(Device::Memory(StatedMemory { bytes: Bytes(bytes), unit })).unwrap()
    }

    #[test]
    fn every_card_with_known_memory_has_a_capacity_below_what_is_sold() {
        for card in accelerators() {
            let Some(capacity) = Capacity::of(Device::Accelerator(card)) else {
                assert_eq!(card.memory_gb_nominal, None, "{}", card.name);
                continue;
            };
            let sold = nominal(card).unwrap();
            assert!(capacity.bytes.high() <= sold, "{}", card.name);
            assert!(capacity.bytes.low().0 as f64 > sold.0 as f64 * 0.9, "{}", card.name);
        }
    }

    #[test]
    fn printed_totals_are_taken_as_printed() {
        let a100 = capacity("A100-40G");
        assert_eq!(a100.basis, Basis::Published);
        // 39.43 GiB
        assert_eq!(a100.bytes.expected(), Bytes(42_337_640_120));
    }

    /// A driver's 143,771 MiB are 140.4 GiB, and PyTorch prints 139.8 on it.
    #[test]
    fn a_driver_total_bounds_what_pytorch_prints() {
        let h200 = capacity("H200");
        assert_eq!(h200.basis, Basis::DriverTotal);
        assert!(h200.bytes.contains(gib(139.8)), "{}", h200.bytes);
    }

    #[test]
    fn two_dies_are_two_devices() {
        assert!(capacity("MI250X").bytes.high() <= gib(64.0));
    }

    #[test]
    fn gigabytes_by_hand_are_read_carefully() {
        let typed = stated(44_000_000_000, MemoryUnit::Decimal);
        assert_eq!(typed.bytes.expected(), Bytes(44_000_000_000));
        assert!(typed.bytes.contains(gib(44.0)), "{}", typed.bytes);
        // Sold as 48 GB, printed as 44.42 GiB, error correction on.
        assert!(stated(48_000_000_000, MemoryUnit::Decimal).bytes.contains(gib(44.42)));
        // Sold as 80 GB, printed as 79.15 GiB.
        assert!(stated(80_000_000_000, MemoryUnit::Decimal).bytes.contains(gib(79.15)));
        // nvidia-smi's total of an L40S, of which PyTorch finds 44.42 GiB.
        assert!(stated(46068 << 20, MemoryUnit::Binary).bytes.contains(gib(44.42)));
    }
}
