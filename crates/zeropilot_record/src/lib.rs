//! The stable shapes of supervised runs: what other programs read.
//!
//! A run writes [`Event`]s, one JSON object a line, and ends with a [`Verdict`] that says why, with an exit code that
//! schedulers can act on. Shapes only grow within a version ([`SHAPE`]): readers skip events and fields they do not
//! know. Files, clocks and processes are not known here.

mod accuracy;
mod cause;
mod event;
mod evidence;
mod exit_code;
mod gpu;
mod hang;
mod measured;
mod node;
mod number;
mod run;
mod setup;
mod step;

pub use accuracy::{Accuracy, ModelFrom, Needs, PredictedJob, counted};
pub use cause::{Cause, Ending, Memory, Phase, Shortage};
pub use event::{Event, Jumped, NoResume, RankMemory, RunEvent, Term, UnreadableEvent};
pub use evidence::Evidence;
pub use exit_code::ExitCode;
pub use gpu::{GpuProcess, GpuUse};
pub use hang::{Activity, HangReason, NoStack, RanksAt};
pub use measured::{Measured, StepParts};
pub use node::{FailedFirst, NodeEnd, NodeOf, failed_first};
pub use run::{Attempt, Fullest, PhaseNeeds, RunInfo, Saved, Verdict};
pub use setup::{Offload, Setup, Strategy};
pub use step::TrainedStep;

/// The version of all shapes here; a change that would break a reader raises it.
pub const SHAPE: u32 = 1;
