//! What was predicted for a run, beside what it needed, written into its record when it ends.

use zeropilot_config::settings::{OffloadDevice, Precision};
use zeropilot_model::lora::Targets;
use zeropilot_record::{
    Accuracy, Cause, ModelFrom, Needs, Offload, PredictedJob, SHAPE, StepParts, Verdict,
};
use zeropilot_run::Recorder;
use zeropilot_step::lower::Method;
use zeropilot_step::memory::{Answer, Question};
use zeropilot_units::Estimate;

use crate::own_runs;

/// A prediction, before the run.
#[derive(Debug, Clone)]
pub(super) struct Predicted {
    pub(super) job: PredictedJob,
    pub(super) needs: Needs,
    /// Seconds of the parts of a step.
    pub(super) parts: Option<StepParts>,
    pub(super) model_from: ModelFrom,
}

impl Predicted {
    /// Seconds of an optimizer step.
    pub(super) fn step_seconds(&self) -> Option<f64> {
        self.needs.step_seconds
    }

    /// Writes it beside what the first attempt needed, if that trained and did not run out of memory.
    pub(super) fn record(self, verdict: &Verdict, recorder: &Recorder) {
        let Some(first) = verdict.attempts.first() else { return };
        let measured = Needs::of(&first.measured, self.job.device == own_runs::CPU);
        let steps = first.last_step.unwrap_or(0);
        let accuracy = Accuracy {
            shape: SHAPE,
            id: verdict.id.clone(),
            zeropilot: env!("CARGO_PKG_VERSION").to_owned(),
            job: self.job,
            model_from: self.model_from,
            predicted: self.needs,
            measured,
            steps,
        };
        let is_cut_off = matches!(first.cause, Cause::OutOfMemory { .. });
        if steps > 0 && !is_cut_off && accuracy.compares() {
            let text = serde_json::to_string_pretty(&accuracy).unwrap_or_default();
            // A full disk must not change how a run ends.
            let _ = recorder.write("accuracy.json", &text);
        }
    }
}

/// What a job needs of GPUs.
pub(super) fn of_gpus(answer: &Answer) -> Needs {
    let bytes = |need: Estimate| Some(need.expected().0);
    Needs {
        device: bytes(answer.device()),
        allocated: bytes(answer.allocated()),
        reserved: bytes(answer.reserved()),
        step_seconds: None,
    }
}

/// The job under the names of published measurements.
pub(super) fn job(name: &str, device: String, question: &Question<'_>) -> PredictedJob {
    let (zero, recipe) = (question.zero, question.recipe);
    let place = |device: Option<&OffloadDevice>| match device {
        None => Offload::None,
        Some(OffloadDevice::Cpu) => Offload::Cpu,
        Some(OffloadDevice::Nvme(_)) => Offload::Nvme,
    };
    let layout = question.cluster.gpus.layout;
    PredictedJob {
        model: name.to_owned(),
        parameters: question.model.elements().0,
        device,
        gpus: question.cluster.world_size(),
        nodes: layout.nodes,
        zero_stage: zero.stage as u8,
        offload_optimizer: place(zero.offload_optimizer.as_ref().map(|offload| &offload.device)),
        offload_param: place(zero.offload_param.as_ref().map(|offload| &offload.device)),
        precision: match question.resolved.precision() {
            Precision::Fp32 => "fp32",
            Precision::Fp16 { .. } => "fp16",
            Precision::Bf16 { .. } => "bf16",
        }
        .to_owned(),
        method: match recipe.method {
            Method::Full => "full",
            Method::Lora(_) => "lora",
            Method::QLora { .. } => "qlora",
        }
        .to_owned(),
        lora_rank: recipe.method.lora().map(|lora| lora.rank),
        lora_targets: recipe.method.lora().map(|lora| match &lora.targets {
            Targets::FamilyDefault => "DEFAULT".to_owned(),
            Targets::AllLinear => "all-linear".to_owned(),
            Targets::Names(names) => names.join(","),
        }),
        micro_batch: question.micro_batch,
        grad_accum: question.resolved.batch().map_or(1, |batch| batch.accumulation),
        seq_len: recipe.sequence,
        grad_ckpt: recipe.checkpointing,
    }
}
