//! What is alive on a rank, when, and at most.

mod prediction;
mod rank;

pub use prediction::{Counting, Phase, Prediction};
pub use rank::{MicroStepPeaks, Peak, steady_step};
