//! What is alive on a rank, when, and at most.

mod rank;

pub use rank::{MicroStepPeaks, Peak, steady_step};
