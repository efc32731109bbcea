//! Rules over a DeepSpeed config.
//!
//! [`check`] takes the bytes of a config file and gives a [`Report`]: the verdict of the front end
//! and the engine, what the values become, and diagnostics as data. Each [`Rule`] is a file of its
//! own under `rules/`, with its sentences in English and Chinese; [`RULES`] lists them all. How a
//! diagnostic looks on a screen or in a file is not known here.

#[cfg(feature = "job")]
mod accelerate_config;
pub mod advisory;
mod argument;
#[cfg(feature = "project")]
pub mod baseline;
mod check;
mod checkpoint;
mod data_parallel;
mod diagnostic;
mod edit;
mod explain;
mod fix;
#[cfg(feature = "job")]
pub mod job;
#[cfg(feature = "job")]
mod job_view;
mod key_values;
mod manual;
#[cfg(feature = "job")]
mod one_rank;
#[cfg(feature = "job")]
mod prepared;
#[cfg(feature = "project")]
pub mod project;
mod reading;
pub mod recognition;
mod refusal;
mod registry;
mod report;
mod rule;
mod rules;
mod script;
mod selection;
mod settings;
#[cfg(feature = "job")]
mod sharing;
mod subject;
mod suggestion;
#[cfg(feature = "job")]
mod ulysses;
#[cfg(feature = "job")]
mod warmup;
mod world;

pub use argument::Argument;
pub use check::{check, guess_front_end};
pub use checkpoint::Checkpoint;
pub use diagnostic::{Diagnostic, Fix, Related, Safety};
pub use edit::{Edit, apply, put_key, take_key};
pub use explain::{Difference, ExplainedKey, Explanation, Side, differences, explain};
pub use fix::{Fixed, fix};
pub use key_values::{KeyTable, KeyValues};
pub use manual::{Case, Page};
pub use registry::{RULES, nearest_code, rule};
pub use report::{Outcome, Report, ResolvedValues, Verdict};
pub use rule::{Example, Group, Rule, Severity, Wording};
pub use script::{Job, Script, Sharing};
pub use selection::Selection;
pub use settings::Settings;
pub use subject::Subject;
pub use world::{World, WorldSource};
