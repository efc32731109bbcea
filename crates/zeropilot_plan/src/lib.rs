//! From what a person wishes to a DeepSpeed config.
//!
//! A [`Request`] is what was asked for, each part on its own. [`Request::recipe`] turns it into a [`Recipe`],
//! in which nothing contradicts anything else, or says with [`Refusal`]s why it cannot. [`Recipe::config`] writes
//! the config for the program that will read it, and [`Recipe::arguments`] what that program must be told beside
//! it. [`Tier`]s vary a recipe for comparison, and a [`Job`] has the command that starts it. [`plan`] searches for the
//! recipe that fits a cluster.
//!
//! Files, terminals and words are not known here.

mod arguments;
mod batch;
mod checkpointing;
mod config;
mod knob;
mod launch;
mod optimizer;
mod precision;
mod preset;
mod recipe;
mod refusal;
mod request;
mod scheduler;
mod search;
mod sizing;
mod target;
mod tier;
mod zero;

pub use arguments::Argument;
pub use batch::{Batch, nearest_multiple};
pub use checkpointing::{ActivationCheckpointing, AsyncIo};
pub use knob::{Knob, KnobKind, KnobValue, Knobs, NotThisKind, Section};
pub use launch::{Job, LaunchCommand, Launcher, Machines, NotAShellWord, Word};
pub use optimizer::{DEFAULT_LEARNING_RATE, HyperParameters, OptimizerKind};
pub use precision::{DynamicLossScale, LossScale, Precision};
pub use preset::{Preset, UnknownPreset};
pub use recipe::Recipe;
pub use refusal::Refusal;
pub use request::{BatchRequest, LossScaleRequest, OffloadRequest, Request, Wish};
pub use scheduler::{SchedulerKind, Steps, WarmupShape};
pub use search::{
    Bound, Fitting, Held, Limit, Longest, MoreGpus, MoreRam, NEGLIGIBLE, Objective, Offer, Offers,
    Offloaded, Plan, PlanError, Reach, Rejected, Shape, Shortage, Sizes, Task, Unsplit, Way, Work,
    longest, offers, plan,
};
pub use sizing::{Link, ModelSize, Reason, SizedKey};
pub use target::{Target, UnknownTarget};
pub use tier::Tier;
pub use zero::{Device, Offload, Stage, Zero};
