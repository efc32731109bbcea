//! Questions as people put them: plain values in, results out, the same for the command line, Python and the browser.
//!
//! One entry for each verb: [`memory()`] and [`compare`], [`simulate()`], [`plan()`], [`create()`], and [`Judging::settings`] for what
//! `zeropilot_lint` checks and explains. Questions can be read from any format serde knows. Which file or repository a
//! model came from was decided before; how a result is said is decided by `zeropilot_view`.

mod bill;
pub mod calibrate;
mod changes;
mod coverage;
mod create;
mod footprint;
mod judging;
mod key_variants;
mod machines;
pub mod memory;
mod name;
mod note;
#[cfg(feature = "clap")]
pub mod parsers;
mod plan;
mod provenance;
mod range;
mod simulate;
mod size;
mod software;
mod task;
mod tokens;
mod training;
mod wishes;

pub use bill::{BadBill, Bill, BillRequest};
pub use changes::{ArgumentChange, Changes, ConfigChange};
pub use create::{CreateProblem, Draft, create};
pub use footprint::{Footprint, footprint};
pub use judging::{Judging, JudgingProblem, ScriptArguments, UnknownCode, rule_code};
pub use key_variants::key_variants;
pub use machines::{Machines, MachinesProblem};
pub use memory::{Column, Compared, Job, Memory, MemoryProblem, MemoryRequest, compare, memory};
pub use name::{
    Attention, FusedLoss, ImageChoice, Load, MethodName, NumberFormat, Objective, Offload,
    Optimizer, PartName, Precision, Quantization, ReferenceName, RolloutName, TaskName,
    TrainerName,
};
pub use note::Note;
pub use plan::{AsWritten, PlanProblem, PlanRequest, Planned, plan};
pub use provenance::{Provenance, Statement, UnreadableConfig};
pub use range::OutOfRange;
pub use simulate::{
    ScaleError, SimulateProblem, SimulateRequest, Simulated, scale_range, simulate,
};
pub use software::Software;
pub use task::{TaskProblem, TaskRequest};
pub use tokens::{TokensError, parse as tokens};
pub use training::{MOST_RANK, MOST_SEQUENCES, MOST_TOKENS, Training};
pub use wishes::{Place, Warmup, WishProblem, Wishes};
pub use zeropilot_job::{LibraryVersion, NotAVersion};
