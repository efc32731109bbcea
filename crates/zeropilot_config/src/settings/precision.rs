//! Which number format the model computes in, and what the optimizer keeps beside it.

use zeropilot_units::ElementSize;

use super::reading::{count, flag, flag_or_on, ratio};
use crate::python::PyValue;
use crate::resolve::ResolvedConfig;

/// The format of parameters and gradients in the engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// Neither 16-bit section is on.
    Fp32,
    /// `fp16`.
    Fp16 {
        /// How the loss is scaled.
        loss_scale: LossScale,
        /// What the optimizer keeps.
        master_weights: MasterWeights,
    },
    /// `bf16`.
    Bf16 {
        /// Whether gradients are added up as soon as they are there.
        immediate_grad_update: bool,
        /// What the optimizer keeps.
        master_weights: MasterWeights,
        /// Whether its states are bf16 too.
        optimizer_states_in_bf16: bool,
        /// Whether gradients are searched for infinities before a step.
        checks_overflow: bool,
    },
}

impl Precision {
    /// The size of an element of parameters and gradients.
    pub fn element_size(self) -> ElementSize {
        match self {
            Self::Fp32 => ElementSize::Four,
            Self::Fp16 { .. } | Self::Bf16 { .. } => ElementSize::Two,
        }
    }
}

/// The scale that keeps small fp16 gradients from vanishing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossScale {
    /// Found while training, starting at two to this power.
    Dynamic {
        /// The power.
        initial_power: u64,
    },
    /// Always this.
    Static(f64),
}

/// What the optimizer updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterWeights {
    /// An fp32 copy of the parameters: four bytes each, beside the 16-bit ones.
    Fp32,
    /// The 16-bit parameters themselves.
    SixteenBit,
}

impl Precision {
    pub(super) fn read(resolved: &ResolvedConfig) -> Self {
        let fp16 = resolved.value("float16_config");
        if let PyValue::Dict(_) = fp16 {
            return Self::from_sections(&fp16, &resolved.value("bfloat16_config"));
        }
        Self::from_attributes(resolved)
    }

    fn from_sections(fp16: &PyValue, bf16: &PyValue) -> Self {
        // The engine asks for this one whether or not fp16 is on.
        let in_fp16 = flag(fp16, "fp16_master_weights_and_grads");
        if flag(fp16, "enabled") {
            let loss_scale = match ratio(fp16, "loss_scale", 0.0) {
                0.0 => LossScale::Dynamic { initial_power: count(fp16, "initial_scale_power", 16) },
                scale => LossScale::Static(scale),
            };
            return Self::Fp16 { loss_scale, master_weights: master(in_fp16) };
        }
        if flag(bf16, "enabled") {
            return Self::Bf16 {
                immediate_grad_update: flag(bf16, "immediate_grad_update"),
                master_weights: master(in_fp16 || flag(bf16, "bf16_master_weights_and_grads")),
                optimizer_states_in_bf16: flag(bf16, "bf16_optimizer_states"),
                checks_overflow: flag_or_on(bf16, "check_grad_overflow"),
            };
        }
        Self::Fp32
    }

    /// Engines before 0.17 keep single values instead of sections.
    fn from_attributes(resolved: &ResolvedConfig) -> Self {
        let on = |attribute: &str| resolved.value(attribute).is_true();
        if on("fp16_enabled") {
            let scale = resolved.value("loss_scale").number();
            let loss_scale = match scale {
                Some(scale) if !scale.is_zero() => LossScale::Static(scale.approximate()),
                _ => LossScale::Dynamic { initial_power: initial_power(resolved) },
            };
            let master_weights = master(on("fp16_master_weights_and_gradients"));
            return Self::Fp16 { loss_scale, master_weights };
        }
        if on("bfloat16_enabled") {
            return Self::Bf16 {
                immediate_grad_update: on("bfloat16_immediate_grad_update"),
                master_weights: MasterWeights::Fp32,
                optimizer_states_in_bf16: false,
                checks_overflow: false,
            };
        }
        Self::Fp32
    }
}

fn initial_power(resolved: &ResolvedConfig) -> u64 {
    match resolved.value("initial_dynamic_scale") {
        PyValue::Int(scale) => scale.bits().saturating_sub(1),
        _ => 0,
    }
}

fn master(sixteen_bit: bool) -> MasterWeights {
    if sixteen_bit { MasterWeights::SixteenBit } else { MasterWeights::Fp32 }
}
