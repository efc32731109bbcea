//! A machine as its user measured it (`zeropilot calibrate`), in place of what the catalogue says about its kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zeropilot_units::Bytes;

use crate::device::Device;
use crate::discovery::device;
use crate::fabric::{Outlook, Pattern};
use crate::gpus::{Gpus, Layout};
use crate::pace::Format;

/// The format that is written; another one is refused.
pub const PROFILE_FORMAT: u32 = 1;

/// What was measured on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    /// The format of the file, [`PROFILE_FORMAT`].
    pub zeropilot_machine: u32,
    /// What computes.
    pub device: MeasuredDevice,
    /// Versions of what it was measured with, by the names PyPI has for them.
    pub software: BTreeMap<String, String>,
    /// By the number of ranks that measured together.
    pub measured: Vec<MeasuredRanks>,
}

/// Where kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// On the processors of the host: one thing after the other.
    Cpu,
    /// On a GPU, beside the host that starts them.
    Cuda,
}

/// A device as its driver describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredDevice {
    /// Where kernels run.
    pub kind: DeviceKind,
    /// Its name.
    pub name: String,
    /// Its memory; for processors that of the host.
    pub memory_bytes: u64,
}

/// What so many ranks measured at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRanks {
    /// Ranks of this machine.
    pub ranks: u64,
    /// Memory that is no tensor.
    pub memory: MeasuredMemory,
    /// How fast a rank is, by number format.
    pub rates: BTreeMap<Format, MeasuredRates>,
    /// Seconds of calls over the bytes of the whole.
    pub collectives: BTreeMap<Pattern, Curve>,
    /// Between host and device; where there is such a way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<MeasuredCopies>,
}

/// Memory that every process takes before it has a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredMemory {
    /// Resident host memory of a process with its libraries.
    pub process_bytes: u64,
    /// Resident bytes of a process for a byte of its tensors at their highest point, where it computes on processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_per_byte: Option<f64>,
    /// Device memory of a context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_bytes: Option<u64>,
    /// Device memory of the first communicator, with its kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub communicator_bytes: Option<u64>,
}

impl MeasuredMemory {
    /// Resident memory of a process that holds so many bytes of tensors at most; nothing where tensors are elsewhere.
    #[must_use]
    pub fn resident(&self, tensors: Bytes) -> Option<Bytes> {
        let held = Bytes::whole(tensors.0 as f64 * self.resident_per_byte?);
        Some(Bytes(self.process_bytes) + held)
    }
}

/// What a rank does in a second, and what its host takes for what it starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRates {
    /// Operations of products.
    pub products_per_s: f64,
    /// The same in backward, where operands are transposed and sums go into gradients.
    pub backward_products_per_s: f64,
    /// Operations of fused attention.
    pub attention_per_s: f64,
    /// Bytes of device memory, read and written.
    pub memory_bytes_per_s: f64,
    /// Bytes of an optimizer's update on the device.
    pub update_bytes_per_s: f64,
    /// Elements that the host updates.
    pub host_updates_per_s: f64,
    /// Of the host for a kernel.
    pub kernel_s: f64,
    /// Of the host for the hooks of a module under stage 3.
    pub hook_s: f64,
    /// Of the host around a micro step.
    pub micro_step_s: f64,
    /// Of the host around an optimizer step.
    pub step_s: f64,
    /// How far steps that were measured lie from what these rates say of them.
    pub spread: Spread,
}

/// Every step that was measured took between `low` and `high` times what rates fitted without it say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// At best.
    pub low: f64,
    /// At worst.
    pub high: f64,
    /// Steps it rests on.
    pub steps: u64,
}

impl Spread {
    /// The factor on a time.
    #[must_use]
    pub fn of(self, outlook: Outlook) -> f64 {
        match outlook {
            Outlook::Best => self.low,
            Outlook::Expected => 1.0,
            Outlook::Worst => self.high,
        }
    }
}

/// Bytes per second between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCopies {
    /// From pinned memory.
    pub to_device: f64,
    /// To pinned memory.
    pub to_host: f64,
    /// From memory that is not pinned.
    pub pageable: f64,
}

/// Seconds of a call at some sizes, the smallest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, f64)>")]
pub struct Curve(Vec<(u64, f64)>);

/// Points that make no curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a curve needs increasing sizes and positive times")]
pub struct CurveError;

impl TryFrom<Vec<(u64, f64)>> for Curve {
    type Error = CurveError;

    fn try_from(points: Vec<(u64, f64)>) -> Result<Self, CurveError> {
        let grows = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_positive = points.iter().all(|(bytes, seconds)| *bytes > 0 && *seconds > 0.0);
        (!points.is_empty() && grows && is_positive).then_some(Self(points)).ok_or(CurveError)
    }
}

impl Curve {
    /// Seconds of a call of `bytes`: between two points along a line through their logarithms; nothing is faster
    /// than the smallest, and what is beyond the largest goes at its rate.
    #[must_use]
    pub fn seconds(&self, bytes: u64) -> f64 {
        let (small, large) = self.0.split_at(self.0.partition_point(|(size, _)| *size < bytes));
        match (small.last(), large.first()) {
            (None, smallest) => smallest.map_or(0.0, |(_, seconds)| *seconds),
            (Some((size, seconds)), None) => seconds * bytes as f64 / *size as f64,
            (Some((less, fast)), Some((more, slow))) => {
                let share = (bytes as f64 / *less as f64).ln() / (*more as f64 / *less as f64).ln();
                fast * (slow / fast).powf(share)
            }
        }
    }
}

/// A profile that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Not JSON of this shape.
    #[error("{0}")]
    Shape(String),
    /// Written by another version.
    #[error("the format of the profile is {0}; this version of zeropilot reads {PROFILE_FORMAT}")]
    Format(u32),
    /// A number that nothing can have.
    #[error("{0}")]
    Number(&'static str),
}

impl MachineProfile {
    /// Reads a profile.
    ///
    /// # Errors
    ///
    /// If the text is none, is of another version, or has numbers that nothing can have.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        #[derive(Deserialize)]
        struct Version {
            zeropilot_machine: u32,
        }
        let shape = |error: serde_json::Error| ProfileError::Shape(error.to_string());
        let version: Version = serde_json::from_str(text).map_err(shape)?;
        if version.zeropilot_machine != PROFILE_FORMAT {
            return Err(ProfileError::Format(version.zeropilot_machine));
        }
        let profile: Self = serde_json::from_str(text).map_err(shape)?;
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileError> {
        let is = |holds: bool, problem| holds.then_some(()).ok_or(ProfileError::Number(problem));
        is(!self.measured.is_empty(), "`measured` is empty")?;
        for measured in &self.measured {
            is(measured.ranks > 0, "`ranks` must be at least 1")?;
            is(!measured.rates.is_empty(), "`rates` is empty")?;
            // Nothing is known about links between processors but what was measured.
            let needs_calls = self.device.kind == DeviceKind::Cpu && measured.ranks > 1;
            is(
                !needs_calls || measured.collectives.len() == 4,
                "`collectives` must contain all four operations",
            )?;
            for rates in measured.rates.values() {
                let fast = [
                    rates.products_per_s,
                    rates.backward_products_per_s,
                    rates.attention_per_s,
                    rates.memory_bytes_per_s,
                    rates.update_bytes_per_s,
                    rates.host_updates_per_s,
                ];
                let slow = [rates.kernel_s, rates.hook_s, rates.micro_step_s, rates.step_s];
                is(fast.iter().all(|rate| *rate > 0.0), "a rate must be greater than 0")?;
                is(slow.iter().all(|cost| *cost >= 0.0), "a time must not be negative")?;
                let Spread { low, high, .. } = rates.spread;
                is(low > 0.0 && low <= 1.0 && high >= 1.0, "`spread` must include 1")?;
            }
        }
        Ok(())
    }

    /// What computes, as a question about it would say.
    #[must_use]
    pub fn device(&self) -> Device {
        match self.device.kind {
            DeviceKind::Cpu => Device::Unknown,
            DeviceKind::Cuda => device(&self.device.name, Bytes(self.device.memory_bytes)),
        }
    }

    /// One node with all ranks that measured together.
    #[must_use]
    pub fn gpus(&self) -> Gpus {
        let gpus_per_node = self.measured.iter().map(|measured| measured.ranks).max().unwrap_or(0);
        Gpus { layout: Layout { nodes: 1, gpus_per_node, stated: true }, device: self.device() }
    }

    /// What so many ranks of a node measured together.
    #[must_use]
    pub fn of_ranks(&self, ranks: u64) -> Option<&MeasuredRanks> {
        self.measured.iter().find(|measured| measured.ranks == ranks)
    }

    /// What a rank of so many in a node is like. A GPU computes alike however many there are; processors do not.
    #[must_use]
    pub fn rank_of(&self, ranks: u64) -> Option<&MeasuredRanks> {
        let any = || match self.device.kind {
            DeviceKind::Cuda => self.measured.iter().max_by_key(|measured| measured.ranks),
            DeviceKind::Cpu => None,
        };
        self.of_ranks(ranks).or_else(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_points_a_call_takes_what_lies_between() {
        let curve = Curve::try_from(vec![(1024, 1e-4), (4096, 4e-4), (16384, 1e-3)]).unwrap();
        assert_eq!(curve.seconds(1), 1e-4);
        assert_eq!(curve.seconds(1024), 1e-4);
        // Twice the size in a stretch that takes four times as long for four times the size.
        assert!((curve.seconds(2048) - 2e-4).abs() < 1e-12);
        assert_eq!(curve.seconds(4096), 4e-4);
        // Beyond: at the rate of the largest.
        assert_eq!(curve.seconds(32768), 2e-3);
    }

    #[test]
    fn points_out_of_order_make_no_curve() {
        for points in [vec![], vec![(2, 1.0), (1, 1.0)], vec![(1, 0.0)], vec![(0, 1.0)]] {
            assert!(Curve::try_from(points).is_err());
        }
    }
}
