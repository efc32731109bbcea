//! Questions as people put them: plain values in, results out, the same for the command line, Python and the browser.
//!
//! One entry for each verb: [`memory()`] and [`compare`], [`simulate()`], [`plan()`], [`create()`], and [`Judging::settings`] for what
//! `zeropilot_lint` checks and explains. Questions can be read from any format serde knows. Which file or repository a
//! model came from was decided before; how a result is said is decided by `zeropilot_view`.

mod bill;
mod create;
mod footprint;
mod judging;
mod key_variants;
mod machines;
pub mod memory;
mod name;
mod plan;
mod range;
mod simulate;
mod size;
mod training;
mod wishes;

pub use bill::{BadBill, Bill, BillRequest};
pub use create::{CreateProblem, Draft, create};
pub use footprint::{Footprint, footprint};
pub use judging::{Judging, JudgingProblem, ScriptArguments};
pub use key_variants::key_variants;
pub use machines::{Machines, MachinesProblem};
pub use memory::{Column, Compared, Job, Memory, MemoryProblem, MemoryRequest, compare, memory};
pub use name::{
    Attention, FusedLoss, Load, MethodName, NumberFormat, Objective, Offload, Optimizer, Precision,
};
pub use plan::{PlanProblem, PlanRequest, Planned, plan};
pub use range::OutOfRange;
pub use simulate::{SimulateProblem, SimulateRequest, Simulated, simulate};
pub use training::{MOST_RANK, MOST_SEQUENCES, MOST_TOKENS, Training};
pub use wishes::{WishProblem, Wishes};
