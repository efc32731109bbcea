//! What was predicted for a run, and what was measured of it: `accuracy.json` of a record.

use serde::{Deserialize, Serialize};

use crate::measured::Measured;
use crate::setup::Offload;

/// The job that a prediction was made for. The names are those of published measurements (`knowledge/field`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictedJob {
    /// The model, as it was named.
    pub model: String,
    /// Its parameters.
    pub parameters: u64,
    /// What ranks compute on: a GPU's name, or `cpu`.
    pub device: String,
    /// GPUs of all nodes.
    pub gpus: u64,
    /// Nodes.
    pub nodes: u64,
    /// ZeRO stage.
    pub zero_stage: u8,
    /// Where optimizer states are kept.
    #[serde(default)]
    pub offload_optimizer: Offload,
    /// Where weights are kept.
    #[serde(default)]
    pub offload_param: Offload,
    /// Number format of the weights.
    pub precision: String,
    /// What is trained: `full`, `lora` or `qlora`.
    pub method: String,
    /// Rank of the adapters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lora_rank: Option<u64>,
    /// Modules that have adapters, as PEFT names them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lora_targets: Option<String>,
    /// Sequences per GPU and micro-batch.
    pub micro_batch: u64,
    /// Micro-batches of an optimizer step.
    pub grad_accum: u64,
    /// Tokens of a sequence.
    pub seq_len: u64,
    /// Whether layers are recomputed in backward.
    pub grad_ckpt: bool,
}

/// What a rank needed, or was predicted to need; what is not known is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needs {
    /// Bytes of the GPU as the driver counts them; on processors, resident bytes of the process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<u64>,
    /// Bytes of tensors: `torch.cuda.max_memory_allocated`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allocated: Option<u64>,
    /// Bytes that PyTorch took from the driver: `torch.cuda.max_memory_reserved`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reserved: Option<u64>,
    /// Seconds of an optimizer step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step_seconds: Option<f64>,
}

/// Who said which model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFrom {
    /// The user, to zeropilot.
    Option,
    /// The command's own arguments.
    Command,
}

/// A prediction beside its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// The version of this shape.
    pub shape: u32,
    /// The name of the run.
    pub id: String,
    /// The version of zeropilot that predicted.
    pub zeropilot: String,
    /// What was predicted for.
    pub job: PredictedJob,
    /// Who named the model.
    pub model_from: ModelFrom,
    /// What was predicted.
    pub predicted: Needs,
    /// What was measured of the rank that needed most.
    pub measured: Needs,
    /// The last step that was seen.
    pub steps: u64,
}

impl Needs {
    /// What was measured, of what a prediction is about: on processors, resident memory, which says nothing about a GPU whose
    /// processes the driver does not name.
    pub fn of(measured: &Measured, on_processors: bool) -> Self {
        let Measured { device, resident, allocated, reserved, step_seconds, .. } = *measured;
        let device = if on_processors { resident } else { device };
        Self { device, allocated, reserved, step_seconds }
    }
}

impl Accuracy {
    /// Measured over predicted memory, of what can be compared: the driver's count first.
    pub fn memory(&self) -> Option<f64> {
        let (predicted, measured) = (&self.predicted, &self.measured);
        [
            (predicted.device, measured.device),
            (predicted.reserved, measured.reserved),
            (predicted.allocated, measured.allocated),
        ]
        .into_iter()
        .find_map(|(predicted, measured)| ratio(predicted? as f64, measured? as f64))
    }

    /// Measured over predicted time of a step.
    pub fn step(&self) -> Option<f64> {
        ratio(self.predicted.step_seconds?, self.measured.step_seconds?)
    }

    /// How far off the prediction was, memory first.
    fn distance(&self) -> f64 {
        self.memory().or_else(|| self.step()).map_or(0.0, |ratio| ratio.ln().abs())
    }

    /// Whether anything can be compared.
    pub fn compares(&self) -> bool {
        self.memory().is_some() || self.step().is_some()
    }
}

/// Runs that say how far the predictions of this version are off: the user named the model, and of each job the run counts
/// that was farthest off, since the same job again is no new evidence.
pub fn counted<'a>(runs: &'a [Accuracy], version: &str) -> Vec<&'a Accuracy> {
    let own = |run: &&Accuracy| run.zeropilot == version && run.model_from == ModelFrom::Option;
    let mut counted: Vec<&Accuracy> = Vec::new();
    for run in runs.iter().filter(own).filter(|run| run.compares()) {
        match counted.iter_mut().find(|known| known.job == run.job) {
            Some(known) if known.distance() < run.distance() => *known = run,
            Some(_) => {}
            None => counted.push(run),
        }
    }
    counted
}

fn ratio(predicted: f64, measured: f64) -> Option<f64> {
    let ratio = measured / predicted;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_job_the_run_counts_that_was_farthest_off() {
        let run = |id: &str, zeropilot: &str, model: &str, measured: u64| Accuracy {
            shape: 1,
            id: id.to_owned(),
            zeropilot: zeropilot.to_owned(),
            job: PredictedJob { model: model.to_owned(), ..PredictedJob::default() },
            model_from: ModelFrom::Option,
            predicted: Needs { device: Some(100), ..Needs::default() },
            measured: Needs { device: Some(measured), ..Needs::default() },
            steps: 9,
        };
        let guessed = Accuracy { model_from: ModelFrom::Command, ..run("e", "2", "c", 300) };
        let runs = [
            run("a", "2", "x", 101),
            run("b", "2", "x", 80),
            run("c", "1", "x", 300),
            run("d", "2", "y", 104),
            guessed,
        ];
        let ids: Vec<&str> = counted(&runs, "2").iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, ["b", "d"]);
    }

    #[test]
    fn resident_memory_is_not_that_of_a_gpu() {
        let measured = Measured { resident: Some(70), ..Measured::default() };
        assert_eq!(Needs::of(&measured, true).device, Some(70));
        assert_eq!(Needs::of(&measured, false), Needs::default());
    }
}
