//! How near predictions are to what people measured on real GPUs.
//!
//! [`rows`] are the published data points, [`Question`] what such a run asks of a predictor, [`judge`] puts the two side
//! by side, and [`report`] writes the result as `docs/accuracy.md`. The predictor is a function, so that everything here
//! is tested without one. Nothing about memory is fitted. [`throughput`] is judged apart.

pub mod interval;
mod job;
mod judgement;
mod lengths;
mod lora;
mod measured;
pub mod prediction;
mod question;
mod reading;
mod recipe;
mod report;
mod row;
mod statistics;
pub mod throughput;

pub use job::Job;
pub use judgement::{Judged, Judgement, Predicted, judge};
pub use measured::{Measured, Metric, measured};
pub use question::{Difference, Obstacle, Question};
pub use recipe::{Buckets, Pairs, Software};
pub use report::report;
pub use row::{Checkpointing, Outcome, Row, rows};
pub use statistics::{Fits, Statistics};
