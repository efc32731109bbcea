//! The GPUs of this machine, as its driver lists them.
//!
//! A [`Driver`] is asked for names and memory and nothing else, so that a list that somebody recorded answers as well as
//! a device. The one for NVIDIA's library is behind the feature `nvml`.

use zeropilot_units::Bytes;

use crate::accelerator::Accelerator;
use crate::catalogue;
use crate::device::{Device, MemoryUnit, StatedMemory};
use crate::gpus::{Gpus, Layout};

/// A GPU that a driver lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundGpu {
    /// Its name, such as `NVIDIA A100-SXM4-80GB`.
    pub name: String,
    /// Its identity, such as `GPU-8932f937-d72c-4106-c12f-20bd9faed9f6`.
    pub uuid: String,
    /// All of its memory, as the driver counts it.
    pub memory: Bytes,
    /// What nobody held of it when it was listed.
    pub free: Bytes,
}

/// Why no GPU could be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDriver {
    /// The driver's library is not on this machine.
    NoLibrary,
    /// The library is there and refuses, for this reason.
    Refuses(String),
}

/// What lists GPUs.
pub trait Driver {
    /// All GPUs of the machine, in the driver's order.
    ///
    /// # Errors
    ///
    /// When there is no driver, or it does not answer.
    fn gpus(&self) -> Result<Vec<FoundGpu>, NoDriver>;
}

/// What `CUDA_VISIBLE_DEVICES` leaves of the GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible<'g> {
    /// The GPUs a program sees, in the order it sees them.
    pub gpus: Vec<&'g FoundGpu>,
    /// The first entry that names no GPU: CUDA ignores it and everything after it.
    pub unknown: Option<String>,
}

/// The GPUs that a program sees under a value of `CUDA_VISIBLE_DEVICES`; all of them if it is not set.
///
/// Numbers are taken in the driver's order, which is CUDA's own where all GPUs are alike.
pub fn visible<'g>(gpus: &'g [FoundGpu], variable: Option<&str>) -> Visible<'g> {
    let Some(variable) = variable else {
        return Visible { gpus: gpus.iter().collect(), unknown: None };
    };
    let mut seen = Visible { gpus: Vec::new(), unknown: None };
    for entry in variable.split(',').map(str::trim).filter(|_| !variable.trim().is_empty()) {
        let found = match entry.parse::<usize>() {
            Ok(index) => gpus.get(index),
            Err(_) if entry.starts_with("GPU-") => {
                gpus.iter().find(|gpu| gpu.uuid.starts_with(entry))
            }
            Err(_) => None,
        };
        match found {
            Some(gpu) => seen.gpus.push(gpu),
            None => {
                seen.unknown = Some(entry.to_owned());
                break;
            }
        }
    }
    seen
}

/// Why found GPUs are no [`Gpus`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotGpus {
    /// There are none.
    None,
    /// They are not all alike; these are their names.
    Different(Vec<String>),
}

/// GPUs of one machine that are all alike.
///
/// # Errors
///
/// If there are none, or of several kinds: a plan is for equal ones.
pub fn equal_gpus(found: &[&FoundGpu]) -> Result<Gpus, NotGpus> {
    let first = found.first().ok_or(NotGpus::None)?;
    if found.iter().any(|gpu| gpu.name != first.name || gpu.memory != first.memory) {
        let mut names: Vec<String> = found.iter().map(|gpu| gpu.name.clone()).collect();
        names.sort();
        names.dedup();
        return Err(NotGpus::Different(names));
    }
    let layout = Layout { nodes: 1, gpus_per_node: found.len() as u64, stated: true };
    Ok(Gpus { layout, device: device(&first.name, first.memory) })
}

/// The card of the catalogue, if its name and its memory agree; else what the driver counts.
pub(crate) fn device(name: &str, memory: Bytes) -> Device {
    let name = name.trim_start_matches("NVIDIA").trim();
    let agrees = |card: &&Accelerator| {
        card.device_gb_nominal().is_some_and(|nominal| {
            let share = memory.0 as f64 / (nominal * Bytes::GIB.0) as f64;
            (0.9..=1.01).contains(&share)
        })
    };
    match catalogue::find(name).ok().filter(agrees) {
        Some(card) => Device::Accelerator(card),
        None => Device::Memory(StatedMemory { bytes: memory, unit: MemoryUnit::Binary }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Capacity;

    /// Names and totals as `nvidia-smi` prints them.
    fn gpu(name: &str, mib: u64, uuid: &str) -> FoundGpu {
        let memory = Bytes(mib << 20);
        FoundGpu { name: name.to_owned(), uuid: uuid.to_owned(), memory, free: memory }
    }

    #[test]
    fn equal_gpus_become_a_node() {
        let found = vec![gpu("NVIDIA L40S", 46068, "GPU-a"); 4];
        let gpus = equal_gpus(&found.iter().collect::<Vec<_>>()).expect("equal");
        assert_eq!(gpus.world_size(), 4);
        // PyTorch prints 44.42 GiB on it.
        let capacity = Capacity::of(gpus.device).expect("known memory");
        assert!(capacity.bytes.contains(Bytes((44.42 * Bytes::GIB.0 as f64) as u64)));
    }

    #[test]
    fn a_card_nobody_knows_is_taken_by_its_memory() {
        let found = gpu("NVIDIA Future 1", 100_000, "GPU-a");
        let gpus = equal_gpus(&[&found]).expect("one");
        assert!(gpus.device.accelerator().is_none());
        assert!(Capacity::of(gpus.device).is_some());
    }

    #[test]
    fn different_gpus_and_none_are_said() {
        let (one, other) = (gpu("A", 1 << 14, "GPU-a"), gpu("B", 1 << 14, "GPU-b"));
        let both = NotGpus::Different(vec!["A".to_owned(), "B".to_owned()]);
        assert_eq!(equal_gpus(&[&one, &other]), Err(both));
        assert_eq!(equal_gpus(&[]), Err(NotGpus::None));
    }

    #[test]
    fn the_variable_hides_reorders_and_stops_at_what_is_not_there() {
        let gpus = [gpu("A", 1, "GPU-aa"), gpu("A", 1, "GPU-bb"), gpu("A", 1, "GPU-cc")];
        let seen = |variable| {
            let seen = visible(&gpus, variable);
            let names: Vec<&str> = seen.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
            (names, seen.unknown)
        };
        assert_eq!(seen(None).0.len(), 3);
        assert_eq!(seen(Some("2, 0")), (vec!["GPU-cc", "GPU-aa"], None));
        assert_eq!(seen(Some("GPU-b")), (vec!["GPU-bb"], None));
        assert_eq!(seen(Some("0,7,1")), (vec!["GPU-aa"], Some("7".to_owned())));
        assert_eq!(seen(Some("")), (vec![], None));
        assert_eq!(seen(Some("-1")), (vec![], Some("-1".to_owned())));
    }
}
