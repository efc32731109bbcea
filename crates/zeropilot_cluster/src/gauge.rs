//! How GPUs stand at this moment: memory, work, power, warmth, and who computes on them.
//!
//! A [`Gauge`] is read again and again; readings that somebody wrote down do as well as a device.

use zeropilot_units::Bytes;

use crate::discovery::NoDriver;

/// A process on a GPU, by its number as the driver knows it: that of the machine, not of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant {
    /// Its number.
    pub pid: u32,
    /// What it holds, if the driver says.
    pub used: Option<Bytes>,
}

/// A GPU at one moment. What a driver does not tell of a card is missing, and no reason to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Its number, in the driver's order.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Memory that is taken.
    pub used: Bytes,
    /// Memory in all.
    pub total: Bytes,
    /// Percent of the last moments in which a kernel ran.
    pub utilization: Option<u32>,
    /// Watts it draws.
    pub watts: Option<f64>,
    /// Degrees Celsius.
    pub celsius: Option<u32>,
    /// Who computes on it.
    pub tenants: Vec<Tenant>,
}

/// What tells how GPUs stand.
pub trait Gauge: Send + Sync {
    /// All GPUs of the machine, in the driver's order.
    ///
    /// # Errors
    ///
    /// When the driver does not answer.
    fn read(&self) -> Result<Vec<Reading>, NoDriver>;
}
