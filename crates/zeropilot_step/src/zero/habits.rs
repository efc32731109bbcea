//! What engines before the newest do differently with memory and calls, as real ranks of each version showed it
//! (`knowledge/measured/versions.json`).

use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::{DataType, Precision, Stage};

use super::run::Run;

impl Run<'_> {
    pub(super) fn flattens_on_device(&self) -> bool {
        flattens_on_device(self.version)
    }

    /// Stages 1 and 2 make their buckets when the first gradient is there; older engines before backward begins.
    pub(super) fn makes_buckets_late(&self) -> bool {
        self.version >= EngineVersion::V0_17
    }

    /// Stages 1 and 2 have a buffer on the host for updated weights of an offloaded optimizer.
    pub(super) fn stages_on_host(&self) -> bool {
        self.version >= EngineVersion::V0_17
    }

    /// Stages 1 and 2 add gradients up in fp32 where the config says so; older engines read it and do not.
    pub(super) fn adds_up_in_fp32(&self) -> bool {
        self.version >= EngineVersion::V0_19
    }

    /// Without ZeRO, older engines give bf16 to the optimizer of stage 1, which partitions its states.
    pub(super) fn partitions_without_zero(&self) -> bool {
        let is_bf16 = matches!(self.precision, Precision::Bf16 { .. });
        is_bf16 && self.zero.stage == Stage::Zero && self.version < EngineVersion::V0_17
    }

    /// 0.17 takes stage 1 in bf16 with fp32 gradients for training without ZeRO: every rank has all states.
    pub(super) fn loses_stage_1(&self) -> bool {
        self.version >= EngineVersion::V0_17 && self.version < EngineVersion::V0_18
    }

    /// The bf16 optimizer of older engines leaves gradients with the parameters after a step.
    pub(super) fn keeps_gradients(&self) -> bool {
        self.version < EngineVersion::V0_16 || self.partitions_without_zero()
    }

    /// Whether the bf16 optimizer can add a gradient as soon as it is there.
    pub(super) fn can_add_at_once(&self) -> bool {
        self.version >= EngineVersion::V0_17
    }

    /// Bytes per element that looking for infinities takes for a moment: older engines make an fp32 copy of a
    /// gradient, masks of what is infinite, what is no number and what is either, and a number of each.
    pub(super) fn infinity_test(&self) -> u64 {
        if self.version >= EngineVersion::V0_19 { 0 } else { 4 + 3 + 4 }
    }

    /// While stage 3 attaches its hooks, older engines hold a gathered parameter twice.
    pub(super) fn gathers_twice(&self) -> bool {
        self.version < EngineVersion::V0_18
    }
}

/// Whether stages 1 and 2 join a group of parameters on the device; older engines take it to the host and back.
pub fn flattens_on_device(version: EngineVersion) -> bool {
    version >= EngineVersion::V0_18
}

/// Whether stage 3 casts adapters on a partitioned base to the model's format; newer engines leave them in fp32.
pub fn casts_adapters(engine: EngineVersion) -> bool {
    engine < EngineVersion::V0_19
}

/// Something that an engine before the newest does with memory and that no prediction follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFollowed {
    /// When the bf16 optimizer of stage 1 copies gradients that it adds up in fp32.
    Fp32Gradients,
    /// In which order stage 3 gathers where few parameters may be alive.
    FewLive,
}

/// What a run on an engine does that its prediction does not follow.
pub fn not_followed(resolved: &ResolvedConfig) -> Vec<NotFollowed> {
    let (engine, zero) = (resolved.version(), resolved.zero());
    let mut all = Vec::new();
    let adds_up_in_fp32 = resolved.gradient_accumulation_type() == Some(DataType::Fp32);
    if zero.stage == Stage::One && adds_up_in_fp32 && engine < EngineVersion::V0_16 {
        all.push(NotFollowed::Fp32Gradients);
    }
    if zero.stage == Stage::Three && engine < EngineVersion::V0_15 {
        all.push(NotFollowed::FewLive);
    }
    all
}
