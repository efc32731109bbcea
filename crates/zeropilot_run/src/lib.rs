//! Supervising training runs: processes, logs, memory, why they end, and what to try next.
//!
//! [`Run::run`] starts a launcher's command under a [`guard`](fn@guard) that lets no rank outlive it, hands its output on
//! and reads it on the way, and follows it to its end. Why it ended is judged from several witnesses, never from the
//! exit status alone. When memory ran out the next of the [`fallbacks`] is tried; after what may not happen again
//! the run goes on from the last complete [`checkpoint`]. Everything is kept in a [`Record`].
//!
//! Words and screens are not known here.

mod allocator;
mod attempt;
pub mod checkpoint;
mod classify;
mod command;
mod config;
mod disk;
pub mod environment;
mod events_copy;
pub mod fallbacks;
mod follow;
mod forecast;
mod guard;
mod hang;
mod log;
mod memory_group;
mod nodes;
mod observed;
mod oom;
mod pace;
mod paths;
pub mod process;
mod progress;
mod shell_script;
pub mod signals;
mod spikes;
mod stacks;
mod step_parts;
mod step_writer;
mod store;
mod supervisor;
mod telemetry;

pub use attempt::{Limits, Observer, Status};
pub use command::{RunCommand, line};
pub use events_copy::{EventsCopy, NoCopy};
pub use follow::Follower;
pub use forecast::{Forecast, PhasePeak, Predict};
pub use guard::guard;
pub use log::Stream;
pub use memory_group::memory_left;
pub use nodes::{JobRecords, jobs, node_of};
pub use paths::resolved_here;
pub use shell_script::ShellScript;
pub use store::{Record, Recorder, Standing, Unwritten, accuracies, home, now};
pub use supervisor::{Continuation, Judge, Policy, RESTARTS, Run};
pub use telemetry::{Telemetry, TrainingLength, gpu_uses};
