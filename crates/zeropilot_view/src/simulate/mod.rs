//! How long a step takes and what it waits for, as words, pictures, traces and machine-readable data.

pub(crate) mod human;
pub(crate) mod json;
mod scale;
mod streams;
mod svg;
mod timeline;
mod trace;
mod words;

use zeropilot_ask::{Bill, Provenance, Simulated, TaskName};
use zeropilot_cluster::{Network, Outlook};
use zeropilot_step::memory::{FrozenRest, Question};
use zeropilot_step::program::StepProgram;
use zeropilot_step::time::{Estimated, Machine, ScalingPoint, Span, Spans, observe};
use zeropilot_step::traffic::Traffic;
use zeropilot_units::Bytes;

use crate::memory::{Fit, fit_of};

pub(crate) use human::seconds;
pub use human::{bill, human, sent, share_words, verdict};
pub use json::{Communication, communication, json};
pub use scale::scale;
pub use streams::streams;
pub use svg::svg;
pub use timeline::timeline;
pub use trace::trace;
pub use words::{bad_cost, bad_network, bad_nvme, bad_scale, no_speed};

/// A question about time with its answer.
#[derive(Debug, Clone, Copy)]
pub struct SimulateReport<'a> {
    /// The model as the user named it.
    pub name: &'a str,
    /// What was asked.
    pub question: Question<'a>,
    /// The step, in order.
    pub program: &'a StepProgram,
    /// How long it takes.
    pub time: &'a Estimated,
    /// What goes over the links.
    pub traffic: &'a Traffic,
    /// Ports between nodes, where there are several.
    pub network: Option<Network>,
    /// What is to be finished.
    pub bill: Option<Bill>,
    /// The same on other numbers of GPUs.
    pub scaling: &'a [ScalingPoint],
    /// Whether it fits, if the memory of the machines is known.
    pub fit: Option<Fit>,
    /// Resident memory of a process, where ranks compute on processors.
    pub process: Option<Bytes>,
    /// What the answer rests on.
    pub provenance: &'a Provenance,
    /// What the model is trained for.
    pub task: TaskName,
    /// What frozen models keep on a rank.
    pub frozen: &'a [FrozenRest],
}

impl<'a> SimulateReport<'a> {
    /// What was simulated, with what is to be finished.
    pub fn of(simulated: &'a Simulated, bill: Option<Bill>) -> Self {
        Self {
            name: &simulated.job.name,
            question: simulated.job.question(),
            program: &simulated.program,
            time: &simulated.time,
            traffic: &simulated.traffic,
            network: simulated.network,
            bill,
            scaling: &simulated.scaling,
            fit: fit_of(&simulated.answer, simulated.job.cluster()),
            process: simulated.process,
            provenance: &simulated.job.provenance,
            task: simulated.job.task(),
            frozen: &simulated.answer.on_gpu.frozen,
        }
    }

    /// Every moment of the step as it is expected.
    pub fn spans(&self) -> Vec<Span> {
        let precision = self.question.resolved.precision();
        let machine = Machine::of(self.question.cluster, precision, Outlook::Expected);
        let mut spans = Spans::default();
        if let Some(machine) = machine {
            observe(self.program, &machine, &mut spans);
        }
        spans.0
    }

    /// Tokens of a step over all GPUs.
    pub(crate) fn tokens(&self) -> f64 {
        let each = self.question.micro_batch * self.question.recipe.sequence;
        (each * self.program.accumulation * self.question.sequence_groups()) as f64
    }

    /// GPU hours to finish, from the fastest to the slowest step.
    pub(crate) fn gpu_hours(&self, bill: &Bill) -> [f64; 3] {
        let steps = bill.tokens / self.tokens();
        let Estimated { best, expected, worst, .. } = self.time;
        [best, expected, worst].map(|time| steps * time.total * self.program.ranks as f64 / 3600.0)
    }
}
