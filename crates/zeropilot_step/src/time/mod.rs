//! How long a step takes on a cluster, and what it waits for.
//!
//! A [`StepProgram`] is run on the streams the engine has: kernels, the communicator's queue, side streams for gathers
//! and reductions, copies to and from the host, and the host that starts all of it. What waits for what is the engine's; the
//! speeds are a [`Machine`]'s. The engine synchronises its device after every micro step, so that micro steps that are alike are run
//! once and counted.

pub mod calibration;
mod cause;
mod machine;
mod observer;
mod result;
mod sweep;
mod tracks;

pub use cause::Cause;
pub use machine::Machine;
pub use observer::{Observer, Silent, Span, Spans, Stream, What};
pub use result::{Estimated, StepTime};
pub use sweep::{Scaling, ScalingPoint, Share, scaling};

use zeropilot_cluster::{Cluster, Outlook};
use zeropilot_config::settings::Precision;

use self::tracks::Tracks;
use crate::conformal::{Factors, with_own};
use crate::program::StepProgram;

/// How long a step takes.
#[must_use]
pub fn simulate(program: &StepProgram, machine: &Machine) -> StepTime {
    observe(program, machine, &mut Silent)
}

/// How long a step takes on a cluster, with bounds; nothing if the speed of its accelerators is not known.
#[must_use]
pub fn estimate(
    program: &StepProgram,
    cluster: &Cluster,
    precision: Precision,
) -> Option<Estimated> {
    let with = |outlook| Some(simulate(program, &Machine::of(cluster, precision, outlook)?));
    let expected = with(Outlook::Expected)?;
    let (best, worst) = (with(Outlook::Best)?, with(Outlook::Worst)?);
    let ratios: Vec<f64> = cluster.own_runs.iter().filter_map(|run| run.step).collect();
    if ratios.is_empty() {
        return Some(Estimated { best, expected, worst, own: None });
    }
    let published =
        Factors { low: best.total / expected.total, high: worst.total / expected.total };
    let (Factors { low, high }, own) = with_own(published, &ratios);
    let (best, worst) = (expected.scaled(low), expected.scaled(high));
    Some(Estimated { best, expected, worst, own })
}

/// The same, telling an observer everything that happens; of micro steps that are alike only the first.
pub fn observe(program: &StepProgram, machine: &Machine, observer: &mut impl Observer) -> StepTime {
    let links = machine.fabric.among_every(program.manners.tensor_ranks);
    let mut time = StepTime::default();
    let mut begin = 0.0;
    for (micro, times) in program.counted() {
        let mut tracks = Tracks::new(program.manners, machine, &links, begin, observer);
        tracks.micro_step(micro);
        begin += time.add_micro_step(&tracks.end(), times);
    }
    let mut tracks = Tracks::new(program.manners, machine, &links, begin, observer);
    tracks.optimizer_step(&program.step);
    time.add_step(&tracks.end());
    time.finish(machine)
}
