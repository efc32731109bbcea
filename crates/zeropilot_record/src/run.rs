//! What a run is, and what became of it: `run.json` and `verdict.json` of a record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SHAPE;
use crate::cause::{Cause, Ending, Phase};
use crate::evidence::Evidence;
use crate::measured::Measured;
use crate::node::NodeOf;
use crate::setup::Setup;

/// When a prediction is at its peak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fullest {
    /// In which phase.
    pub phase: Phase,
    /// The module or parameter nearest to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub near: Option<String>,
}

/// What a rank is predicted to need in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PhaseNeeds {
    /// The phase.
    pub phase: Phase,
    /// Bytes at most.
    pub bytes: u64,
    /// Seconds of it in an optimizer step, if speeds are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds: Option<f64>,
}

/// A run, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The version of this shape.
    pub shape: u32,
    /// The name of the run.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub started_at: f64,
    /// The command as it was given, secrets replaced.
    pub command: Vec<String>,
    /// Where it was given.
    pub directory: String,
    /// The name of the machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Where it writes checkpoints, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoints: Option<String>,
    /// The config the command points to, if one was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config: Option<String>,
    /// How many ranks the command starts, if it says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub world_size: Option<usize>,
    /// Predicted bytes per device, if a model was named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicted: Option<u64>,
    /// When a device is that full.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fullest: Option<Fullest>,
    /// The same phase by phase.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub phases: Vec<PhaseNeeds>,
    /// Predicted seconds of an optimizer step, if speeds are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicted_step_seconds: Option<f64>,
    /// The job of several nodes that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<NodeOf>,
    /// Optimizer steps the command asks for, if it says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_steps: Option<u64>,
    /// Tokens of an optimizer step over all ranks, if sequence and batch are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tokens_per_step: Option<u64>,
    /// The process that supervises.
    pub supervisor: u32,
    /// Whether it may go on with a fallback when memory runs out.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub falls_back: bool,
    /// Variables that engine and libraries read; none that could hold a secret.
    pub environment: BTreeMap<String, String>,
    /// Versions of the packages that the command imports, as far as they were found before the start.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub packages: BTreeMap<String, String>,
    /// The version of zeropilot.
    pub zeropilot: String,
}

/// One start of the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// What it ran with.
    #[serde(alias = "rung")]
    pub strategy: Setup,
    /// The config it ran with, if one was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub config: Option<String>,
    /// The checkpoint it went on from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resumed_from: Option<String>,
    /// How the command ended.
    pub ending: Ending,
    /// Why.
    #[serde(flatten)]
    pub cause: Cause,
    /// The last step that was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_step: Option<u64>,
    /// The steps there were to be, if the command or the log tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_steps: Option<u64>,
    /// The last loss; `null` if it is NaN or infinite.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "crate::number::or_nan"
    )]
    pub last_loss: Option<f64>,
    /// Seconds it took.
    pub seconds: f64,
    /// What it was measured to need.
    #[serde(default)]
    pub measured: Measured,
    /// What the cause rests on.
    pub evidence: Vec<Evidence>,
}

/// A complete checkpoint that a run wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Its step.
    pub step: u64,
    /// The directory with its parts.
    pub path: String,
    /// When its last part was written, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<f64>,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The version of this shape.
    pub shape: u32,
    /// The name of the run.
    pub id: String,
    /// Why it ended: that of the last attempt.
    #[serde(flatten)]
    pub cause: Cause,
    /// What `zeropilot run` exits with.
    pub exit_code: u8,
    /// Every start, in order.
    pub attempts: Vec<Attempt>,
    /// When it ended, in seconds since 1970.
    pub ended_at: f64,
    /// Seconds it took, however the clock was set meanwhile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds: Option<f64>,
    /// The newest complete checkpoint that it can be resumed from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<Saved>,
}

impl Verdict {
    /// The verdict over these attempts.
    pub fn new(id: &str, cause: Cause, attempts: Vec<Attempt>, ended_at: f64) -> Self {
        let exit_code = crate::ExitCode::from(&cause).0;
        let id = id.to_owned();
        Self {
            shape: SHAPE,
            id,
            cause,
            exit_code,
            attempts,
            ended_at,
            seconds: None,
            checkpoint: None,
        }
    }

    /// Whether a scheduler ended it (SIGTERM, SIGUSR1, SIGUSR2), and a later start can resume it.
    pub fn awaits_another_start(&self) -> bool {
        let is_asked = matches!(self.cause, Cause::Interrupted { signal: 10 | 12 | 15 });
        let evidence = self.attempts.last().map(|attempt| attempt.evidence.as_slice());
        let is_resumable = |one: &Evidence| matches!(one, Evidence::ResumableFrom { .. });
        is_asked && evidence.unwrap_or_default().iter().any(is_resumable)
    }

    /// The same, which left this checkpoint.
    #[must_use]
    pub fn with_checkpoint(self, checkpoint: Option<Saved>) -> Self {
        Self { checkpoint, ..self }
    }

    /// The step that it came to, and of how many.
    pub fn steps(&self) -> (Option<u64>, Option<u64>) {
        let step = self.attempts.iter().rev().find_map(|attempt| attempt.last_step);
        let total = self.attempts.iter().rev().find_map(|attempt| attempt.total_steps);
        (step, total)
    }

    /// The last loss of the last attempt that printed one.
    pub fn last_loss(&self) -> Option<f64> {
        self.attempts.iter().rev().find_map(|attempt| attempt.last_loss)
    }

    /// The same, which took so many seconds.
    #[must_use]
    pub fn after(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_no_number_is_null_and_reads_back_as_none() {
        let json = r#"{"number":1,"strategy":null,"ending":{"exited":0},"cause":"not_finite","seconds":1.0,"evidence":[]"#;
        let read = |rest: &str| serde_json::from_str::<Attempt>(&format!("{json}{rest}}}"));
        let unprinted = read("").expect("an attempt");
        assert_eq!(unprinted.last_loss, None);
        let none = read(r#","last_loss":null"#).expect("an attempt");
        assert!(none.last_loss.is_some_and(f64::is_nan));
        let text = serde_json::to_string(&none).expect("JSON");
        assert!(text.contains(r#""last_loss":null"#), "{text}");
    }
}
