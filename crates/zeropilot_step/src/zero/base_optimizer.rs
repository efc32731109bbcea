//! The optimizers under ZeRO's wrapper, and the states they keep for what they update.

use super::rest::Category;

/// The optimizer under ZeRO's wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseOptimizer {
    /// DeepSpeed's fused Adam.
    FusedAdam,
    /// PyTorch's Adam or AdamW: a `step` tensor per optimizer tensor.
    TorchAdam,
    /// DeepSpeed's Adam on the host, which offload implies.
    CpuAdam,
    /// Adam whose moments are kept in eight bits (bitsandbytes).
    EightBitAdam,
    /// Lion on the device: one moment.
    Lion,
    /// Lion on the host, which allocates a second moment it never uses.
    CpuLion,
    /// PyTorch's Adagrad: a sum of squares.
    Adagrad,
    /// Adagrad on the host.
    CpuAdagrad,
    /// Adafactor. ZeRO hands it flat partitions, so that it never factors anything.
    Adafactor,
    /// SGD without momentum.
    Sgd,
    /// SGD with momentum.
    Momentum,
}

/// Elements that share a scale in eight-bit states.
const EIGHT_BIT_BLOCK: u64 = 256;

impl BaseOptimizer {
    /// States for `elements` elements, whose own format would have `element` bytes.
    pub(super) fn states(self, elements: u64, element: u64) -> Vec<(Category, u64)> {
        let first = (Category::FirstMoment, elements * element);
        let second = (Category::SecondMoment, elements * element);
        match self {
            Self::FusedAdam | Self::TorchAdam | Self::CpuAdam | Self::CpuLion => {
                vec![first, second]
            }
            Self::EightBitAdam => {
                let bytes = elements + elements.div_ceil(EIGHT_BIT_BLOCK) * 4;
                vec![(Category::FirstMoment, bytes), (Category::SecondMoment, bytes)]
            }
            Self::Lion | Self::Momentum => vec![first],
            Self::Adagrad | Self::CpuAdagrad | Self::Adafactor => vec![second],
            Self::Sgd => Vec::new(),
        }
    }

    /// Whether it keeps a counter per tensor.
    pub(super) fn counts_steps(self) -> bool {
        matches!(self, Self::TorchAdam | Self::Adagrad)
    }

    /// Whether its states exist from its construction on, not from the first step on.
    pub(super) fn begins_with_states(self) -> bool {
        self == Self::Adagrad
    }

    /// States made for the tensors the caller gave it, which ZeRO's own have replaced since; nobody uses them, and they
    /// stay.
    pub(super) fn abandoned(self, bytes: u64, tensors: u64) -> u64 {
        if self == Self::Adagrad { bytes + 4 * tensors } else { 0 }
    }
}
