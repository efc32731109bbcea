//! The stage, and what it can keep off the device.

use super::{Request, Wish};
use crate::knob::{Knob, Section};
use crate::refusal::Refusal;
use crate::zero::{Device, Offload, Stage, Zero};

pub(super) fn resolve(request: &Request, refusals: &mut Vec<Refusal>) -> Option<Zero> {
    let stage = stage(request, refusals)?;
    let by_default = request
        .preset
        .and_then(|preset| preset.offload())
        .or(request.offload.all.then_some(Device::Cpu));
    let optimizer = wanted(request.offload.optimizer, by_default);
    let parameters_by_default = by_default.filter(|_| stage == Stage::Three);
    let parameters = wanted(request.offload.parameters, parameters_by_default);
    let before = refusals.len();
    judge(stage, optimizer, parameters, request, refusals);
    if refusals.len() > before {
        return None;
    }
    let pin_memory = request.offload.pin_memory.unwrap_or(true);
    let offload = |device: Device| {
        let path = request.offload.nvme_path.clone().filter(|_| device == Device::Nvme);
        Offload { nvme_path: path, pin_memory }
    };
    Some(match stage {
        Stage::Zero => Zero::Stage0,
        Stage::One | Stage::Two => Zero::Stage1Or2 {
            partitions_gradients: stage == Stage::Two,
            optimizer_in_pinned_memory: optimizer.map(|_| pin_memory),
        },
        Stage::Three => {
            Zero::Stage3 { optimizer: optimizer.map(offload), parameters: parameters.map(offload) }
        }
    })
}

fn stage(request: &Request, refusals: &mut Vec<Refusal>) -> Option<Stage> {
    match (request.preset, request.stage) {
        (Some(preset), Some(stage)) if preset.stage() != stage => {
            refusals.push(Refusal::PresetAndStage { preset, stage });
            None
        }
        (Some(preset), _) => Some(preset.stage()),
        (None, Some(stage)) => Some(stage),
        (None, None) => {
            refusals.push(Refusal::NothingChosen);
            None
        }
    }
}

fn wanted(wish: Wish<Device>, by_default: Option<Device>) -> Option<Device> {
    match wish {
        Wish::Open => by_default,
        Wish::No => None,
        Wish::Yes(device) => Some(device),
    }
}

fn judge(
    stage: Stage,
    optimizer: Option<Device>,
    parameters: Option<Device>,
    request: &Request,
    refusals: &mut Vec<Refusal>,
) {
    let uses_disk = [optimizer, parameters].contains(&Some(Device::Nvme));
    if stage == Stage::Zero && (optimizer.is_some() || parameters.is_some()) {
        refusals.push(Refusal::OffloadAtStage0);
        return;
    }
    if stage != Stage::Three && parameters.is_some() {
        refusals.push(Refusal::ParameterOffloadBelowStage3(stage));
    }
    if stage != Stage::Three && optimizer == Some(Device::Nvme) {
        refusals.push(Refusal::NvmeBelowStage3(stage));
    }
    let has_path = request.offload.nvme_path.as_ref().is_some_and(|path| !path.trim().is_empty());
    if uses_disk && !has_path {
        refusals.push(Refusal::NvmeWithoutPath);
    }
}

/// Whether a disk is used at all.
pub(super) fn uses_disk(zero: &Zero) -> bool {
    let is_disk = |offload: &Offload| offload.device() == Device::Nvme;
    zero.optimizer_offload().as_ref().is_some_and(is_disk)
        || zero.parameter_offload().is_some_and(is_disk)
}

/// Whether the section a key stands in is written, with a disk if the key needs one.
pub(super) fn has_section_of(zero: &Zero, knob: Knob) -> bool {
    let optimizer = zero.optimizer_offload();
    let offload = match knob.section() {
        Section::Zero => return true,
        Section::OffloadOptimizer => optimizer.as_ref(),
        Section::OffloadParam => zero.parameter_offload(),
    };
    offload.is_some_and(|offload| !knob.is_for_disk() || offload.device() == Device::Nvme)
}
