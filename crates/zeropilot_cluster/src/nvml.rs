//! NVIDIA's management library, loaded when it is asked.
//!
//! It has been run where there is no driver, and its answers are tested with recorded ones; on a real device it has not
//! been run by us.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use zeropilot_units::Bytes;

use crate::discovery::{Driver, FoundGpu, NoDriver};

/// The driver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nvidia;

impl Driver for Nvidia {
    fn gpus(&self) -> Result<Vec<FoundGpu>, NoDriver> {
        let library = Nvml::init().map_err(reason)?;
        let count = library.device_count().map_err(reason)?;
        (0..count)
            .map(|index| {
                let device = library.device_by_index(index)?;
                Ok(FoundGpu {
                    name: device.name()?,
                    uuid: device.uuid()?,
                    memory: Bytes(device.memory_info()?.total),
                })
            })
            .collect::<Result<_, NvmlError>>()
            .map_err(reason)
    }
}

fn reason(error: NvmlError) -> NoDriver {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => NoDriver::NoLibrary,
        other => NoDriver::Refuses(other.to_string()),
    }
}
