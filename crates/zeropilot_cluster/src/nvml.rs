//! NVIDIA's management library, loaded when it is asked.
//!
//! It has been run where there is no driver, and what is made of its answers is tested without it; on a real device it
//! has not been run by us.

use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use zeropilot_units::Bytes;

use crate::discovery::{Driver, FoundGpu, NoDriver};
use crate::gauge::{Gauge, Reading, Tenant};

/// The driver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nvidia;

impl Driver for Nvidia {
    fn gpus(&self) -> Result<Vec<FoundGpu>, NoDriver> {
        let library = Nvml::init().map_err(reason)?;
        each(&library, |_, device| {
            let memory = device.memory_info()?;
            Ok(FoundGpu {
                name: device.name()?,
                uuid: device.uuid()?,
                memory: Bytes(memory.total),
                free: Bytes(memory.free),
            })
        })
    }
}

/// The driver's library, kept for many readings.
#[derive(Debug)]
pub struct NvidiaGauge {
    library: Nvml,
}

impl NvidiaGauge {
    /// Loads the library.
    ///
    /// # Errors
    ///
    /// When there is none, or it does not answer.
    pub fn open() -> Result<Self, NoDriver> {
        Nvml::init().map(|library| Self { library }).map_err(reason)
    }
}

impl Gauge for NvidiaGauge {
    fn read(&self) -> Result<Vec<Reading>, NoDriver> {
        each(&self.library, |index, device| {
            let memory = device.memory_info()?;
            let tenants = device.running_compute_processes().unwrap_or_default();
            Ok(Reading {
                index,
                name: device.name()?,
                used: Bytes(memory.used),
                total: Bytes(memory.total),
                utilization: device.utilization_rates().ok().map(|rates| rates.gpu),
                watts: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
                celsius: device.temperature(TemperatureSensor::Gpu).ok(),
                tenants: tenants
                    .into_iter()
                    .map(|process| Tenant { pid: process.pid, used: used(process.used_gpu_memory) })
                    .collect(),
            })
        })
    }
}

fn each<T>(
    library: &Nvml,
    read: impl Fn(u32, &Device<'_>) -> Result<T, NvmlError>,
) -> Result<Vec<T>, NoDriver> {
    let count = library.device_count().map_err(reason)?;
    (0..count)
        .map(|index| read(index, &library.device_by_index(index)?))
        .collect::<Result<_, NvmlError>>()
        .map_err(reason)
}

fn used(memory: UsedGpuMemory) -> Option<Bytes> {
    match memory {
        UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
        UsedGpuMemory::Unavailable => None,
    }
}

fn reason(error: NvmlError) -> NoDriver {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => NoDriver::NoLibrary,
        other => NoDriver::Refuses(other.to_string()),
    }
}
