//! What is partitioned, and what is kept off the device.

/// A ZeRO stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing is partitioned.
    Zero,
    /// Optimizer states are.
    One,
    /// Gradients too.
    Two,
    /// Weights too.
    Three,
}

impl Stage {
    /// As written in a config.
    pub fn number(self) -> u8 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
        }
    }

    /// By its number.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Zero,
            1 => Self::One,
            2 => Self::Two,
            3 => Self::Three,
            _ => return None,
        })
    }
}

/// Where something can be kept instead of on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// Host memory.
    Cpu,
    /// A disk.
    Nvme,
}

/// Something kept off the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offload {
    /// The directory on a disk; otherwise host memory.
    pub nvme_path: Option<String>,
    /// Whether the host buffers are page-locked, which makes copies several times faster.
    pub pin_memory: bool,
}

impl Offload {
    /// Where it is kept.
    pub fn device(&self) -> Device {
        if self.nvme_path.is_some() { Device::Nvme } else { Device::Cpu }
    }
}

/// A stage with what it can keep off the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zero {
    /// Stage 0, which offloads nothing.
    Stage0,
    /// Stages 1 and 2, which keep optimizer states in host memory or on the device; they know no disk.
    Stage1Or2 {
        /// Whether gradients are partitioned.
        partitions_gradients: bool,
        /// Whether the optimizer states are in host memory, and then whether it is page-locked.
        optimizer_in_pinned_memory: Option<bool>,
    },
    /// Stage 3.
    Stage3 {
        /// Where the optimizer states are, if not on the device.
        optimizer: Option<Offload>,
        /// Where the weights are, if not on the device.
        parameters: Option<Offload>,
    },
}

impl Zero {
    /// The stage alone.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Stage0 => Stage::Zero,
            Self::Stage1Or2 { partitions_gradients: false, .. } => Stage::One,
            Self::Stage1Or2 { partitions_gradients: true, .. } => Stage::Two,
            Self::Stage3 { .. } => Stage::Three,
        }
    }

    /// Where the optimizer states are, if not on the device.
    pub fn optimizer_offload(&self) -> Option<Offload> {
        match self {
            Self::Stage0 => None,
            Self::Stage1Or2 { optimizer_in_pinned_memory, .. } => {
                optimizer_in_pinned_memory.map(|pin_memory| Offload { nvme_path: None, pin_memory })
            }
            Self::Stage3 { optimizer, .. } => optimizer.clone(),
        }
    }

    /// Where the weights are, if not on the device.
    pub fn parameter_offload(&self) -> Option<&Offload> {
        match self {
            Self::Stage3 { parameters, .. } => parameters.as_ref(),
            _ => None,
        }
    }
}
