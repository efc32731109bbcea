//! Element sizes of everything the engine keeps, and which wrapper it keeps it in.

use zeropilot_config::settings::{DataType, MasterWeights, Precision, Stage};

use super::run::{Engine, Run};

/// Bytes per element of each kind of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dtypes {
    /// Parameters and gradients of the model.
    pub model: u64,
    /// What gradients are added up in.
    pub accumulation: u64,
    /// What gradients are sent in.
    pub communication: u64,
    /// The copy the optimizer updates.
    pub master: u64,
    /// One Adam moment.
    pub moment: u64,
    /// Gradients are sent in another format than the model's, be it of the same size.
    pub casts_to_send: bool,
    /// They are added up in another format than the one they are sent in.
    pub casts_to_add: bool,
    /// Stages 1 and 2 add gradients up in fp32 in this engine.
    adds_up_in_fp32: bool,
}

/// Which of the engine's optimizers runs around the base optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// None: the base optimizer works on the model's own parameters.
    Bare,
    /// One flat 16-bit buffer and one flat fp32 copy (stage 0).
    FlatMixed,
    /// A 16-bit tensor and an fp32 copy per parameter (stage 0).
    PerTensorMixed,
    /// The bf16 optimizer of stage 1 with fp32 accumulation.
    Bf16,
    /// Stages 1 and 2.
    Partitioned,
    /// Stage 3.
    Sharded,
}

impl Dtypes {
    /// For a run.
    pub fn of(run: &Run<'_>) -> Self {
        let model = match run.precision {
            Precision::Fp32 => DataType::Fp32,
            Precision::Fp16 { .. } => DataType::Fp16,
            Precision::Bf16 { .. } => DataType::Bf16,
        };
        let accumulation = run.accumulation_type.unwrap_or(model);
        let communication = run.communication_type.unwrap_or(model);
        let (master, moment) = master_and_moment(run.precision);
        Self {
            model: model.element_size().bytes(),
            accumulation: accumulation.element_size().bytes(),
            communication: communication.element_size().bytes(),
            master,
            moment,
            casts_to_send: communication != model,
            casts_to_add: accumulation != communication,
            adds_up_in_fp32: run.adds_up_in_fp32(),
        }
    }

    /// Whether reduced gradients are added into one flat fp32 buffer instead of kept in the model's format.
    pub fn is_compact(self) -> bool {
        self.model == 2 && self.accumulation == 4 && self.adds_up_in_fp32
    }
}

fn master_and_moment(precision: Precision) -> (u64, u64) {
    match precision {
        Precision::Fp32 => (4, 4),
        Precision::Fp16 { master_weights, .. } => (master_bytes(master_weights), 4),
        Precision::Bf16 { master_weights, optimizer_states_in_bf16, .. } => {
            (master_bytes(master_weights), if optimizer_states_in_bf16 { 2 } else { 4 })
        }
    }
}

fn master_bytes(master: MasterWeights) -> u64 {
    match master {
        MasterWeights::Fp32 => 4,
        MasterWeights::SixteenBit => 2,
    }
}

impl Wrapper {
    /// For a run.
    pub fn of(run: &Run<'_>) -> Self {
        let dtypes = Dtypes::of(run);
        let bf16 = matches!(run.precision, Precision::Bf16 { .. });
        if run.engine == Engine::PyTorch {
            return Self::Bare;
        }
        let adds_up_apart =
            bf16 && dtypes.accumulation == 4 && run.zero.offload_optimizer.is_none();
        let is_fused = run.optimizer == super::BaseOptimizer::FusedAdam;
        let without_zero = if is_fused { Self::FlatMixed } else { Self::PerTensorMixed };
        match run.zero.stage {
            Stage::Zero if dtypes.model == 4 => Self::Bare,
            Stage::Zero if run.partitions_without_zero() => Self::Bf16,
            Stage::Zero => without_zero,
            Stage::One if adds_up_apart && run.loses_stage_1() => without_zero,
            Stage::One if adds_up_apart => Self::Bf16,
            Stage::One | Stage::Two => Self::Partitioned,
            Stage::Three => Self::Sharded,
        }
    }

    /// Whether a gradient is added to the fp32 ones, and released, as soon as it is there.
    pub(super) fn adds_at_once(run: &Run<'_>) -> bool {
        let is_asked = matches!(run.precision, Precision::Bf16 { immediate_grad_update: true, .. });
        is_asked && run.can_add_at_once() && Self::of(run) == Self::Bf16
    }
}
