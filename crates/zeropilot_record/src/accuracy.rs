//! What was predicted for a run, and what was measured of it: `accuracy.json` of a record.

use serde::{Deserialize, Serialize};

use crate::event::{Event, RunEvent};
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

/// Steps after the first that are not timed: kernels are chosen and caches filled in them.
const WARM_UP: u64 = 2;
/// Intervals between steps that a time per step rests on at least.
const INTERVALS: usize = 3;

impl Needs {
    /// What the first attempt of a run needed, and its last step; a later one may run with another config. Resident memory
    /// counts only where ranks compute on processors: it says nothing about a GPU whose processes the driver does not name.
    pub fn measured(events: &[Event], on_processors: bool) -> (Self, u64) {
        let mut needs = Self::default();
        let mut steps: Vec<(f64, u64)> = Vec::new();
        for event in events {
            match &event.happening {
                RunEvent::AttemptStarted { attempt: 2.., .. } => break,
                RunEvent::Step { step, .. } => steps.push((event.at, *step)),
                RunEvent::Memory { ranks } if on_processors => {
                    needs.device = needs.device.max(ranks.iter().map(|rank| rank.rss).max());
                }
                RunEvent::Gpus { gpus } if !on_processors => {
                    let of_ranks = gpus.iter().flat_map(|gpu| {
                        let ranks = gpu.processes.iter().filter_map(|process| process.rank);
                        ranks.filter_map(|rank| gpu.of_rank(rank))
                    });
                    needs.device = needs.device.max(of_ranks.max());
                }
                RunEvent::Allocator { allocated, reserved } => {
                    needs.allocated = needs.allocated.max(*allocated);
                    needs.reserved = needs.reserved.max(*reserved);
                }
                _ => {}
            }
        }
        needs.step_seconds = step_seconds(&steps);
        (needs, steps.last().map_or(0, |(_, step)| *step))
    }
}

/// The usual time of a step: what half of the intervals between recorded steps took at most. Evaluation and saving fall
/// into few of them.
fn step_seconds(steps: &[(f64, u64)]) -> Option<f64> {
    let first = steps.first()?.1;
    let warm = steps.iter().filter(|(_, step)| *step >= first + WARM_UP);
    let warm: Vec<&(f64, u64)> = warm.collect();
    let mut each: Vec<f64> = warm
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1 && pair[1].0 > pair[0].0)
        .map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1) as f64)
        .collect();
    each.sort_by(f64::total_cmp);
    (each.len() >= INTERVALS).then(|| each[each.len() / 2])
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
    use crate::event::RankMemory;
    use crate::setup::Setup;

    fn step(at: f64, step: u64) -> Event {
        Event::new(at, RunEvent::Step { step, loss: None })
    }

    fn started(attempt: u32) -> Event {
        let strategy = Setup::AsGiven;
        Event::new(0.0, RunEvent::AttemptStarted { attempt, strategy, pid: 1 })
    }

    fn resident(bytes: u64) -> Event {
        let ranks = vec![RankMemory { rank: 0, rss: 1 }, RankMemory { rank: 1, rss: bytes }];
        Event::new(0.0, RunEvent::Memory { ranks })
    }

    #[test]
    fn a_pause_for_saving_does_not_count_as_a_slow_step() {
        // Two seconds a step from step 3 on, and half a minute between 5 and 6.
        let steps = [(0.0, 1), (9.0, 2), (11.0, 3), (13.0, 4), (15.0, 5), (47.0, 6), (49.0, 7)];
        let events: Vec<Event> = steps.iter().map(|(at, number)| step(*at, *number)).collect();
        let (needs, last) = Needs::measured(&events, true);
        assert_eq!((needs.step_seconds, last), (Some(2.0), 7));
        assert_eq!(Needs::measured(&events[..4], true).0.step_seconds, None, "too few");
    }

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
    fn the_fullest_rank_of_the_first_attempt_counts() {
        let events = [started(1), resident(70), resident(50), started(2), resident(90)];
        let (needs, _) = Needs::measured(&events, true);
        assert_eq!(needs, Needs { device: Some(70), ..Needs::default() });
        assert_eq!(Needs::measured(&events, false).0, Needs::default(), "not that of a GPU");
    }
}
