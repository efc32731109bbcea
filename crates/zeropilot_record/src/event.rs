//! What happens in a run, line by line: `events.jsonl`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::SHAPE;
use crate::cause::{Cause, Ending, Memory, Phase};
use crate::gpu::GpuUse;
use crate::hang::{HangReason, RanksAt};
use crate::setup::Setup;

/// Memory of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankMemory {
    /// The rank.
    pub rank: u32,
    /// Resident bytes of its process.
    pub rss: u64,
}

/// A part of what a rank holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Its name, as `zeropilot memory --json` has it.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Why a run does not go on from a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoResume {
    /// There is no complete one.
    NoCheckpoint,
    /// Those that are there were not written by this run.
    OfAnotherRun,
    /// Nobody said how the program goes on from one.
    OptionUnknown,
    /// The engine does not load it into this stage or number of ranks.
    OtherShape,
    /// It cannot be linked to.
    NotLinkable,
}

/// What jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jumped {
    /// The loss.
    Loss,
    /// The norm of the gradients.
    GradientNorm,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run began.
    RunStarted {
        /// Its name.
        id: String,
        /// The command, secrets replaced.
        command: Vec<String>,
    },
    /// An earlier run is continued in its record.
    Continued {
        /// How often its command was started before.
        attempts: u32,
    },
    /// The job was checked before the start.
    Preflight {
        /// Findings that stop a run.
        errors: usize,
        /// Findings that do not.
        warnings: usize,
        /// All of them, a line each.
        #[serde(default)]
        findings: Vec<String>,
    },
    /// Another run on this machine writes its checkpoints to the same directory.
    CheckpointsShared {
        /// The other run.
        run: String,
        /// The directory.
        checkpoints: String,
    },
    /// The directory of checkpoints holds some that this run did not write, and its command resumes from none.
    CheckpointsFound {
        /// The directory.
        checkpoints: String,
        /// The highest step among them.
        step: u64,
    },
    /// The launcher has started no rank yet, and computes nothing.
    NoRanksYet {
        /// Seconds since it was started.
        seconds: f64,
    },
    /// What the run is predicted to need here, against what there is.
    Room {
        /// Which memory.
        memory: Memory,
        /// Bytes that it needs for sure: weights, gradients and optimizer states.
        least: u64,
        /// Bytes that it is expected to need.
        expected: u64,
        /// Bytes that there are.
        left: u64,
    },
    /// The command was started.
    AttemptStarted {
        /// From 1.
        attempt: u32,
        /// What it runs with.
        #[serde(alias = "rung")]
        strategy: Setup,
        /// Its process.
        pid: u32,
    },
    /// A rank was seen.
    RankSeen {
        /// The rank.
        rank: u32,
        /// Its process.
        pid: u32,
    },
    /// A rank is gone.
    RankGone {
        /// The rank.
        rank: u32,
        /// How it ended, if it was seen.
        ending: Ending,
    },
    /// Training went on.
    Step {
        /// The optimizer step.
        step: u64,
        /// The loss, if the log has it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        loss: Option<f64>,
    },
    /// Memory of the ranks.
    Memory {
        /// Each rank that runs here.
        ranks: Vec<RankMemory>,
    },
    /// How fast training goes.
    Pace {
        /// Optimizer steps in a second, over the last ones.
        steps_per_second: f64,
        /// Tokens of all ranks in a second, if a step's are known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tokens_per_second: Option<f64>,
        /// Optimizer steps there will be, if the command or the log tells.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        total_steps: Option<u64>,
    },
    /// The GPUs of this machine.
    Gpus {
        /// Each that the driver lists.
        gpus: Vec<GpuUse>,
    },
    /// What PyTorch's allocator holds at most, as the log tells.
    Allocator {
        /// Bytes of tensors.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        allocated: Option<u64>,
        /// Bytes taken from the driver.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reserved: Option<u64>,
    },
    /// The log said something that is known.
    Fingerprint {
        /// Which.
        id: String,
        /// The line, cut.
        line: String,
        /// The rank that said it, if the line tells.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
    },
    /// Losses or gradient norms are no finite numbers any more.
    NotFinite {
        /// The first step of which that is so, if steps are counted.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        since: Option<u64>,
    },
    /// Gradient norms are no finite numbers, though the losses are.
    NormNotFinite {
        /// The first step of which that is so.
        since: u64,
    },
    /// A loss or gradient norm jumped far above what it lately was.
    Spike {
        /// Which.
        what: Jumped,
        /// The optimizer step.
        step: u64,
        /// What it is.
        value: f64,
        /// What it usually was.
        usual: f64,
    },
    /// Steps take longer than they did.
    Slower {
        /// Seconds of a step now.
        seconds_per_step: f64,
        /// Seconds it usually took.
        usual: f64,
    },
    /// How long steps take, against the prediction.
    PaceCompared {
        /// Seconds of a step.
        seconds_per_step: f64,
        /// Seconds that were predicted.
        predicted: f64,
    },
    /// The other ranks of this machine wait for one, again and again.
    Straggler {
        /// The rank.
        rank: u32,
        /// How often they were seen waiting for it alone.
        waited: usize,
        /// How often was looked.
        looks: usize,
        /// Where it was.
        stood: RanksAt,
    },
    /// Nothing moved for too long.
    Hang {
        /// Seconds without a word.
        seconds: f64,
        /// Ranks that stand still by themselves.
        ranks: Vec<u32>,
        /// Where the ranks of this machine stood.
        #[serde(default)]
        stood: Vec<RanksAt>,
        /// What explains it, if anything does.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        explanation: Option<HangReason>,
    },
    /// A signal to zeropilot was passed on to the processes that handle it.
    SignalPassed {
        /// The signal.
        signal: i32,
        /// How many handle it.
        processes: usize,
    },
    /// The processes are being stopped.
    Stopping {
        /// The signal they get first.
        signal: i32,
    },
    /// The command ended.
    AttemptEnded {
        /// From 1.
        attempt: u32,
        /// How.
        ending: Ending,
        /// Why.
        #[serde(flatten)]
        cause: Cause,
    },
    /// Memory ran out: what a rank needed, against its prediction.
    MemoryCompared {
        /// The rank, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
        /// The phase that was compared.
        phase: Phase,
        /// Bytes it needed at least.
        measured: u64,
        /// Bytes that were predicted.
        predicted: u64,
        /// What they were predicted to be, the largest first.
        terms: Vec<Term>,
        /// What was larger than predicted: `activations`, `temporaries` or `loading`; none if nothing was.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        larger: Option<String>,
    },
    /// A fallback was taken.
    #[serde(alias = "rung_taken")]
    FallbackTaken {
        /// What the next attempt runs with.
        #[serde(alias = "rung")]
        strategy: Setup,
        /// The config it is written in.
        config: String,
    },
    /// The next attempt goes on from a checkpoint.
    Resuming {
        /// The directory with its parts.
        checkpoint: String,
        /// Its step.
        step: u64,
    },
    /// The next attempt begins anew.
    BeginningAnew {
        /// Why.
        reason: NoResume,
        /// Where new checkpoints go, if not to the same place.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        checkpoints: Option<String>,
    },
    /// The next attempt would write over checkpoints that it cannot read, so there is none.
    NotStartedAgain {
        /// Why it would begin anew.
        reason: NoResume,
        /// Where they are.
        checkpoints: String,
    },
    /// The next attempt would restart from scratch though there is a checkpoint, so there is none.
    ScratchNotAllowed {
        /// Why it could not go on from the checkpoint.
        reason: NoResume,
        /// The step of the checkpoint.
        step: u64,
        /// The directory with its parts.
        checkpoint: String,
    },
    /// The command will be started again.
    Restarting {
        /// Seconds until then.
        delay: f64,
    },
    /// The run ended.
    RunEnded {
        /// Why.
        #[serde(flatten)]
        cause: Cause,
        /// What `zeropilot run` exits with.
        exit_code: u8,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The version of this shape.
    pub shape: u32,
    /// Seconds since 1970.
    pub at: f64,
    /// What happened.
    #[serde(flatten)]
    pub happening: RunEvent,
}

/// A line that is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEvent(String);

impl fmt::Display for UnreadableEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an event: {}", self.0)
    }
}

impl std::error::Error for UnreadableEvent {}

impl Event {
    /// What happened at a time.
    pub fn new(at: f64, happening: RunEvent) -> Self {
        Self { shape: SHAPE, at, happening }
    }

    /// As a line, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From a line.
    ///
    /// # Errors
    /// If the line is no event, such as the last line of a run that was cut off.
    pub fn read(line: &str) -> Result<Self, UnreadableEvent> {
        serde_json::from_str(line).map_err(|error| UnreadableEvent(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_and_reads_back() {
        let line = "out of\nmemory".to_owned();
        let happening = RunEvent::Fingerprint { id: "cuda_oom".to_owned(), line, rank: Some(1) };
        let event = Event::new(1.5, happening);
        let text = event.line();
        assert!(!text.contains('\n') && text.contains("\"event\":\"fingerprint\""), "{text}");
        assert_eq!(Event::read(&text), Ok(event));
    }

    #[test]
    fn an_event_of_a_later_version_is_skipped_and_not_an_error() {
        let event = Event::read(r#"{"shape":1,"at":2.0,"event":"tea_break","cups":2}"#);
        assert_eq!(event.map(|event| event.happening), Ok(RunEvent::Unknown));
        assert!(Event::read(r#"{"shape":1,"at":2.0,"#).is_err());
    }
}
