//! What is alive on a rank, when, and at most.

mod answer;
mod interval;
mod peak;
mod prediction;
mod rank;
mod relief;
mod rollout;
mod timeline;
mod workload;

pub use answer::{Answer, Question};
pub use interval::{Group, Interval};
pub use peak::{MicroStepPeaks, Peak, PhasePeak};
pub use prediction::{Counting, FrozenRest, Phase, Prediction};
pub use rank::{FrozenRank, nth_step, steady_step};
pub use relief::{Lever, Relief, host_reliefs, reliefs};
pub use rollout::RolloutMemory;
pub use timeline::{Stretch, timeline};
pub use workload::{Workload, WorkloadKey};
