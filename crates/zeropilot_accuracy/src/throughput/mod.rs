//! How near predicted throughput is to what people published.
//!
//! A [`Run`] is a row made ready: its step as a program, its cluster, what was measured. Some constants of the pace are
//! fitted to rows; every source is judged with constants fitted to the others.

mod calibration;
mod order;
mod report;
mod run;

pub use calibration::{Calibration, Constants, calibrate};
pub use order::{Order, order};
pub use report::report;
pub use run::{Engine, Run, Unasked, runs};

/// A run with what was predicted for it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'r> {
    /// The run.
    pub run: &'r Run,
    /// Predicted tokens per second of a GPU, the constants fitted to other sources.
    pub predicted: f64,
    /// Bounds of the prediction, the same constants.
    pub bounds: (f64, f64),
}

impl Judged<'_> {
    /// Prediction over measurement, less one.
    pub fn error(&self) -> f64 {
        self.predicted / self.run.measured - 1.0
    }

    /// Whether the measurement lies within the bounds.
    pub fn is_within_bounds(&self) -> bool {
        (self.bounds.0..=self.bounds.1).contains(&self.run.measured)
    }
}

/// Judges every run with constants fitted to other sources.
pub fn judge(runs: &[Run]) -> Vec<Judged<'_>> {
    let mut sources: Vec<&str> = runs.iter().map(|run| run.source()).collect();
    sources.sort_unstable();
    sources.dedup();
    std::thread::scope(|scope| {
        let threads: Vec<_> = sources
            .into_iter()
            .map(|source| scope.spawn(move || judge_source(runs, source)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn judge_source<'r>(runs: &'r [Run], source: &str) -> Vec<Judged<'r>> {
    let (own, others): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.source() == source);
    let constants = calibrate(&others);
    let judge = |run: &'r Run| {
        let predicted = run.predict(&constants);
        Judged { run, predicted, bounds: run.bounds(predicted) }
    };
    own.into_iter().map(judge).collect()
}
