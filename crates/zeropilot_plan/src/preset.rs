//! Configs by the names people already use.

use std::fmt;
use std::str::FromStr;

use crate::zero::{Device, Stage};

/// A stage with what it offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Optimizer states partitioned.
    Zero1,
    /// Gradients too.
    Zero2,
    /// With the optimizer states in host memory.
    Zero2Offload,
    /// Weights partitioned too.
    Zero3,
    /// With optimizer states and weights in host memory.
    Zero3Offload,
    /// With both on a disk.
    Zero3Nvme,
}

impl Preset {
    /// All of them, from the fastest to the one that fits most.
    pub const ALL: [Self; 6] = [
        Self::Zero1,
        Self::Zero2,
        Self::Zero2Offload,
        Self::Zero3,
        Self::Zero3Offload,
        Self::Zero3Nvme,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero1 => "zero1",
            Self::Zero2 => "zero2",
            Self::Zero2Offload => "zero2_offload",
            Self::Zero3 => "zero3",
            Self::Zero3Offload => "zero3_offload",
            Self::Zero3Nvme => "zero3_nvme",
        }
    }

    /// Its stage.
    pub fn stage(self) -> Stage {
        match self {
            Self::Zero1 => Stage::One,
            Self::Zero2 | Self::Zero2Offload => Stage::Two,
            Self::Zero3 | Self::Zero3Offload | Self::Zero3Nvme => Stage::Three,
        }
    }

    /// Where it keeps optimizer states, and weights if its stage can.
    pub fn offload(self) -> Option<Device> {
        match self {
            Self::Zero1 | Self::Zero2 | Self::Zero3 => None,
            Self::Zero2Offload | Self::Zero3Offload => Some(Device::Cpu),
            Self::Zero3Nvme => Some(Device::Nvme),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no preset's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a preset")]
pub struct UnknownPreset(pub String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|preset| preset.name() == name);
        known.ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}
