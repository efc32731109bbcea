//! What a simulated step took.

use super::cause::Cause;
use super::machine::Machine;
use super::observer::Stream;
use super::tracks::Taken;
use crate::conformal::OwnRuns;
use crate::tape::Work;

/// How long a step takes and where the time goes; seconds throughout.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTime {
    /// The whole step.
    pub total: f64,
    /// All forward passes.
    pub forward: f64,
    /// All backward passes.
    pub backward: f64,
    /// The optimizer step.
    pub step: f64,
    /// Work of each stream, by place in [`Stream::ALL`].
    pub busy: [f64; Stream::ALL.len()],
    /// Time the kernels wait, by place in [`Cause::ALL`]; with the work of the kernels this is the whole step.
    pub waits: [f64; Cause::ALL.len()],
    /// Operations of the model: forward and backward, nothing twice.
    pub model_operations: f64,
    /// Operations of the hardware: recomputation included.
    pub hardware_operations: f64,
    /// The share of the data sheet's rate that the model gets.
    pub mfu: f64,
    /// The share that the hardware does.
    pub hfu: f64,
}

/// A step with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// If everything is as fast as was ever measured.
    pub best: StepTime,
    /// What to expect.
    pub expected: StepTime,
    /// If everything is as slow.
    pub worst: StepTime,
    /// What the user's own runs have to do with these bounds.
    pub own: Option<OwnRuns>,
}

impl StepTime {
    /// The work of a stream.
    #[must_use]
    pub fn busy(&self, stream: Stream) -> f64 {
        self.busy[stream as usize]
    }

    /// What kernels wait for a cause.
    #[must_use]
    pub fn waits(&self, cause: Cause) -> f64 {
        self.waits[cause as usize]
    }

    /// Causes with what kernels wait for them, the longest first.
    #[must_use]
    pub fn causes(&self) -> Vec<(Cause, f64)> {
        let mut causes: Vec<(Cause, f64)> = Cause::ALL
            .into_iter()
            .map(|cause| (cause, self.waits(cause)))
            .filter(|(_, seconds)| *seconds > 0.0)
            .collect();
        causes.sort_by(|one, other| other.1.total_cmp(&one.1));
        causes
    }

    /// The same step if everything took so many times as long.
    pub(super) fn scaled(mut self, factor: f64) -> Self {
        let times = [&mut self.total, &mut self.forward, &mut self.backward, &mut self.step];
        times
            .into_iter()
            .chain(&mut self.busy)
            .chain(&mut self.waits)
            .for_each(|time| *time *= factor);
        self.mfu /= factor;
        self.hfu /= factor;
        self
    }

    /// Operations of the model per second.
    #[must_use]
    pub fn model_rate(&self) -> f64 {
        self.model_operations / self.total
    }

    /// Adds a micro step so many times; says how long it takes.
    pub(super) fn add_micro_step(&mut self, taken: &Taken, times: u64) -> f64 {
        let count = times as f64;
        self.forward += taken.forward * count;
        self.backward += (taken.seconds - taken.forward) * count;
        self.add(taken, count);
        taken.seconds
    }

    pub(super) fn add_step(&mut self, taken: &Taken) {
        self.step += taken.seconds;
        self.add(taken, 1.0);
    }

    fn add(&mut self, taken: &Taken, count: f64) {
        self.total += taken.seconds * count;
        for (own, more) in self.busy.iter_mut().zip(taken.busy) {
            *own += more * count;
        }
        for (own, more) in self.waits.iter_mut().zip(taken.waits) {
            *own += more * count;
        }
        let work: Work = taken.work;
        let all = work.operations() as f64;
        self.hardware_operations += all * count;
        self.model_operations += (all - work.repeated as f64) * count;
    }

    pub(super) fn finish(mut self, machine: &Machine) -> Self {
        let possible = self.total * machine.pace.peak;
        if possible > 0.0 {
            self.mfu = self.model_operations / possible;
            self.hfu = self.hardware_operations / possible;
        }
        self
    }
}
