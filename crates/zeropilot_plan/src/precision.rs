//! The number format of training.

/// What weights and gradients are kept in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// 16 bits with the range of 32: no loss scale.
    Bf16,
    /// 16 bits with a small range, so that the loss is scaled.
    Fp16(LossScale),
    /// 32 bits.
    Fp32,
}

/// By what the loss is multiplied so that small gradients survive in fp16.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossScale {
    /// Always by the same.
    Static(f64),
    /// By as much as does not overflow.
    Dynamic(DynamicLossScale),
}

/// How the scale is searched. What is not said is the engine's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DynamicLossScale {
    /// It begins with two to the power of this.
    pub initial_scale_power: Option<u64>,
    /// It doubles after so many steps without an overflow.
    pub window: Option<u64>,
    /// Overflows at which it is halved; without `consecutive_hysteresis` they need not be in a row.
    pub hysteresis: Option<u64>,
    /// It never falls below this.
    pub minimum: Option<u64>,
}

impl Default for LossScale {
    fn default() -> Self {
        Self::Dynamic(DynamicLossScale::default())
    }
}

impl Precision {
    /// The name of its section, or `fp32`, which has none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp16(_) => "fp16",
            Self::Fp32 => "fp32",
        }
    }
}
