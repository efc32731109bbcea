//! What a config costs with a model: memory, traffic and, where the speed is known, time.

use zeropilot_model::Model;
use zeropilot_step::memory::Answer;
use zeropilot_step::time::{Estimated, estimate};
use zeropilot_step::traffic::Traffic;
use zeropilot_units::Estimate;

use crate::memory::{Job, MemoryProblem, MemoryRequest};

/// The cost of a step.
#[derive(Debug)]
pub struct Footprint {
    /// Memory of the fullest GPU.
    pub device: Estimate,
    /// Memory of a host.
    pub node: Estimate,
    /// What goes over links and buses in a step.
    pub traffic: Traffic,
    /// How long a step takes; `None` if the speed of the GPUs is unknown.
    pub time: Option<Estimated>,
    /// Sequences of a step over all GPUs.
    pub sequences: u64,
}

/// What a config costs.
///
/// # Errors
///
/// If a part of the question makes no sense, or the config is refused.
pub fn footprint(
    name: &str,
    model: Model,
    request: &MemoryRequest,
) -> Result<Footprint, MemoryProblem> {
    let job = Job::of(name, model, request)?;
    let question = job.question();
    let workload = question.workload()?;
    let answer = Answer::without_slack(&question, &workload).with_slack(&question, &workload);
    let program = question.step_program(&workload);
    Ok(Footprint {
        device: answer.device(),
        node: answer.node(),
        traffic: Traffic::of(&program),
        time: estimate(&program, question.cluster, question.resolved.precision()),
        sequences: question.micro_batch * program.accumulation * question.sequence_groups(),
    })
}
