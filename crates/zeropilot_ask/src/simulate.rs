//! How long a step takes, here and on other numbers of GPUs.

use serde::Deserialize;
use zeropilot_cluster::{Network, Outlook};
use zeropilot_model::Model;
use zeropilot_step::lower::LowerError;
use zeropilot_step::memory::{Answer, Workload};
use zeropilot_step::program::StepProgram;
use zeropilot_step::time::{
    Estimated, Machine, Scaling, ScalingPoint, Share, StepTime, estimate, scaling,
};
use zeropilot_step::traffic::Traffic;
use zeropilot_units::Bytes;

use crate::calibrate::touched_tensors;
use crate::memory::{Job, MemoryProblem, MemoryRequest};
use crate::note::Note;

/// What is asked about the time of a step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct SimulateRequest {
    /// Repeat for other numbers of GPUs, such as `8..1024`; the batch size per GPU stays the same
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "LEAST..MOST", value_parser = scale_range))]
    pub scale: Option<(u64, u64)>,
    /// Keep the global batch size instead; use with --scale
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, requires = "scale"))]
    pub strong: bool,
    /// The job, as it is described for its memory.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub job: MemoryRequest,
}

/// The most GPUs that are asked about.
const MOST_GPUS: u64 = 1 << 24;

/// A text that is no range of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write the fewest and the most GPUs, such as 8..1024")]
pub struct ScaleError;

/// `8..1024`, as people and Rust write it.
///
/// # Errors
///
/// If the text is no range of GPUs.
pub fn scale_range(text: &str) -> Result<(u64, u64), ScaleError> {
    let (least, most) = text.split_once("..").ok_or(ScaleError)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| ScaleError);
    let range = (number(least)?, number(most.trim_start_matches('='))?);
    match range {
        (1.., ..=MOST_GPUS) if range.0 <= range.1 => Ok(range),
        _ => Err(ScaleError),
    }
}

/// Why no step can be timed.
#[derive(Debug, thiserror::Error)]
pub enum SimulateProblem {
    /// The job makes no sense.
    #[error(transparent)]
    Question(#[from] MemoryProblem),
    /// How fast the GPUs are is not known.
    #[error("the speed of these GPUs is unknown")]
    NoSpeed,
    /// These GPUs have no bf16.
    #[error("{card} does not support bf16")]
    NoBf16 {
        /// Their name.
        card: &'static str,
    },
}

impl From<LowerError> for SimulateProblem {
    fn from(error: LowerError) -> Self {
        Self::Question(error.into())
    }
}

/// A step, timed.
#[derive(Debug)]
pub struct Simulated {
    /// What was asked about.
    pub job: Job,
    /// What a micro batch does.
    pub workload: Workload,
    /// What the step does.
    pub program: StepProgram,
    /// What it needs.
    pub answer: Answer,
    /// How long it takes.
    pub time: Estimated,
    /// What it sends.
    pub traffic: Traffic,
    /// What links the nodes, where there are several.
    pub network: Option<Network>,
    /// Resident memory of a process, where ranks compute on processors.
    pub process: Option<Bytes>,
    /// The same on other numbers of GPUs.
    pub scaling: Vec<ScalingPoint>,
}

/// Times a step.
///
/// # Errors
///
/// If a part of the question makes no sense, or the speed of the GPUs is unknown.
pub fn simulate(
    name: &str,
    model: Model,
    request: &SimulateRequest,
) -> Result<Simulated, SimulateProblem> {
    let mut job = Job::of(name, model, &request.job)?;
    if request.scale.is_some() {
        job.provenance.notes.retain(|note| *note != Note::NetworkUnused);
    }
    if let Some(card) = job.provenance.notes.iter().find_map(|note| match note {
        Note::NoBf16 { card } => Some(*card),
        _ => None,
    }) {
        return Err(SimulateProblem::NoBf16 { card });
    }
    if let Some(generation) = job.question().recipe.task.generation {
        let accumulation = job.question().resolved.batch().map_or(1, |batch| batch.accumulation);
        job.provenance.leave_out_generation();
        if generation.micro_batches != accumulation || generation.steps > 1 {
            job.provenance.leave_out_reuse(false);
        }
    }
    let question = job.question();
    let (cluster, precision) = (question.cluster, question.resolved.precision());
    let workload = question.workload()?;
    let program = question.step_program(&workload);
    let time = estimate(&program, cluster, precision).ok_or(SimulateProblem::NoSpeed)?;
    let answer = Answer::without_slack(&question, &workload).with_slack(&question, &workload);
    let has_nodes = cluster.gpus.layout.nodes > 1;
    let network = cluster.network.or_else(|| Network::usual(cluster)).filter(|_| has_nodes);
    let scaling = points(&job, &program, request);
    let traffic = Traffic::of(&program);
    let process = match cluster.measured() {
        Some(measured) if cluster.computes_on_host() => {
            measured.memory.resident(touched_tensors(&question)?)
        }
        _ => None,
    };
    Ok(Simulated { process, job, workload, program, answer, time, traffic, network, scaling })
}

fn points(job: &Job, program: &StepProgram, request: &SimulateRequest) -> Vec<ScalingPoint> {
    let Some(range) = request.scale else { return Vec::new() };
    let kind = if request.strong { Scaling::Strong } else { Scaling::Weak };
    let question = job.question();
    let share = Share {
        micro_batch: question.micro_batch,
        accumulation: program.accumulation,
        gpus: question.recipe.gpus_per_sequence(),
    };
    scaling(range, kind, share, |gpus, accumulation| on(job, gpus, accumulation))
}

/// The same job on so many GPUs of the same kind.
fn on(job: &Job, gpus: u64, accumulation: u64) -> Option<StepTime> {
    let question = job.question();
    if question.recipe.groups(gpus) == 0 {
        return None;
    }
    let mut cluster = question.cluster.clone();
    let usual = cluster.gpus.layout.gpus_per_node;
    let each = if gpus.is_multiple_of(usual) { usual } else { gpus.min(usual) };
    cluster.gpus.layout.gpus_per_node = each;
    cluster.gpus.layout.nodes = gpus / each;
    let resolved = job.resolved_for(&cluster, accumulation)?;
    let zero = resolved.zero();
    let wider = zeropilot_step::memory::Question {
        resolved: &resolved,
        zero: &zero,
        cluster: &cluster,
        ..question
    };
    let program = wider.step_program(&wider.workload().ok()?);
    let machine = Machine::of(&cluster, resolved.precision(), Outlook::Expected)?;
    Some(zeropilot_step::time::simulate(&program, &machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_people_write_them() {
        assert_eq!(scale_range("8..1024"), Ok((8, 1024)));
        assert_eq!(scale_range("8..=1024"), Ok((8, 1024)));
        assert!(["1024..8", "0..8", "8"].into_iter().all(|text| scale_range(text).is_err()));
    }
}
