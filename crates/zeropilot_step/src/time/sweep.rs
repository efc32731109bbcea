//! The same job on more and more GPUs.

use super::StepTime;

/// Which amount stays the same when there are more GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// The batch of each GPU.
    Weak,
    /// The batch of all together.
    Strong,
}

/// One number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingPoint {
    /// How many.
    pub gpus: u64,
    /// Micro batches of a step.
    pub accumulation: u64,
    /// The step.
    pub time: StepTime,
    /// Sequences of a step over all GPUs per second.
    pub sequences_per_s: f64,
}

impl ScalingPoint {
    /// Throughput per GPU relative to that of another point.
    #[must_use]
    pub fn efficiency(&self, first: &Self) -> f64 {
        (self.sequences_per_s / self.gpus as f64) / (first.sequences_per_s / first.gpus as f64)
    }
}

/// What a GPU does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Sequences of a micro batch.
    pub micro_batch: u64,
    /// Micro batches of a step.
    pub accumulation: u64,
    /// GPUs that train on the same sequences, because they share them or layers.
    pub gpus: u64,
}

/// Powers of two from `least` to `most`, each simulated by `simulate` with the accumulation it should have; those whose
/// batch cannot be spread are left out.
pub fn scaling(
    (least, most): (u64, u64),
    scaling: Scaling,
    Share { micro_batch, accumulation, gpus: together }: Share,
    mut simulate: impl FnMut(u64, u64) -> Option<StepTime>,
) -> Vec<ScalingPoint> {
    let batch = least * accumulation;
    let counts = std::iter::successors(Some(least.max(1)), |gpus| gpus.checked_mul(2));
    let points = counts.take_while(|gpus| *gpus <= most).filter_map(|gpus| {
        let accumulation = match scaling {
            Scaling::Weak => accumulation,
            Scaling::Strong if batch.is_multiple_of(gpus) => batch / gpus,
            Scaling::Strong => return None,
        };
        let time = simulate(gpus, accumulation)?;
        let sequences = gpus / together.max(1) * micro_batch * accumulation;
        let sequences_per_s = sequences as f64 / time.total;
        Some(ScalingPoint { gpus, accumulation, time, sequences_per_s })
    });
    points.collect()
}
