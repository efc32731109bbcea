//! Questions about a model on machines.

use serde::Deserialize;
use zeropilot_ask::{
    BillRequest, Memory, MemoryRequest, PlanRequest, SimulateRequest, TaskRequest,
};
use zeropilot_job::TrainingJob;
use zeropilot_text::Language;
use zeropilot_view::memory::{self as memory_view, MemoryReport};
use zeropilot_view::page::{FilmWords, SimulationWords};
use zeropilot_view::plan::{self as plan_view, PlanReport};
use zeropilot_view::simulate::{self as simulate_view, SimulateReport};
use zeropilot_view::{Layout, problem, talk};

use crate::model::{self, Named};
use crate::question::{Answer, Problem};

/// Stretches of a step that are told apart.
const STRETCHES: usize = 300;

/// Finds the other models that a task names.
fn find_others(task: &mut TaskRequest, language: Language) -> Result<(), Problem> {
    task.find_models(&TrainingJob::default(), |name| model::named(name, language))
}

/// A model, and what is asked about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About<R> {
    model: Named,
    request: R,
}

fn plain(language: Language) -> Layout {
    Layout { language, ..Layout::default() }
}

pub(crate) fn plan(mut about: About<PlanRequest>, language: Language) -> Result<Answer, Problem> {
    let problem = |wrong| problem::planning(&wrong, language);
    about.request.machines.cluster().map_err(|wrong| problem(wrong.into()))?;
    find_others(&mut about.request.task, language)?;
    let model = about.model.open(language)?;
    let planned = zeropilot_ask::plan(&about.model.name, &model, &about.request);
    let planned = planned.map_err(problem)?;
    let commands = planned.commands("ds_config.json");
    let report = PlanReport::of(&planned, &commands, None);
    Ok(Answer::new(plan_view::json(&report), plan_view::words(&report, language)))
}

pub(crate) fn compare(
    mut about: About<MemoryRequest>,
    language: Language,
) -> Result<Answer, Problem> {
    let problem = |wrong| problem::memory(&wrong, &plain(language));
    about.request.machines.cluster().map_err(|wrong| problem(wrong.into()))?;
    find_others(&mut about.request.task, language)?;
    let model = about.model.open(language)?;
    let compared = zeropilot_ask::compare(&model, &about.request).map_err(problem)?;
    Ok(Answer::new(
        memory_view::compare_json(&compared),
        memory_view::compare_words(&compared, language),
    ))
}

/// The memory of a job, for all who show a part of it.
fn asked(about: &mut About<MemoryRequest>, language: Language) -> Result<Memory, Problem> {
    let problem = |wrong| problem::memory(&wrong, &plain(language));
    about.request.machines.cluster().map_err(|wrong| problem(wrong.into()))?;
    find_others(&mut about.request.task, language)?;
    let model = Named::open(&about.model, language)?.as_ref().clone();
    zeropilot_ask::memory(&about.model.name, model, &about.request).map_err(problem)
}

pub(crate) fn memory(
    mut about: About<MemoryRequest>,
    language: Language,
) -> Result<Answer, Problem> {
    let lower = |error| talk::lower_error(&error, language);
    let memory = asked(&mut about, language)?;
    let report = MemoryReport::from(&memory);
    let stretches = memory.stretches(STRETCHES).map_err(lower)?;
    let tensors = memory.tensors().map_err(lower)?;
    Ok(Answer::new(
        memory_view::json(&report, &tensors),
        memory_view::words(&report, &tensors, &stretches, &plain(language)),
    ))
}

/// What a GPU holds through a step, and what it sends.
pub(crate) fn film(mut about: About<MemoryRequest>, language: Language) -> Result<Answer, Problem> {
    let lower = |error| talk::lower_error(&error, language);
    let memory = asked(&mut about, language)?;
    let stretches = memory.stretches(STRETCHES).map_err(lower)?;
    let traffic = memory.traffic().map_err(lower)?;
    let words = FilmWords {
        frames: memory_view::film(&stretches, language),
        sent: simulate_view::sent(&traffic, language),
    };
    Ok(Answer::new(simulate_view::communication(&traffic), words))
}

/// A step to be timed, and what is to be finished.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timing {
    model: Named,
    request: SimulateRequest,
    #[serde(default)]
    bill: Option<BillRequest>,
}

pub(crate) fn simulate(mut about: Timing, language: Language) -> Result<Answer, Problem> {
    let problem = |wrong| problem::simulating(&wrong, &plain(language));
    let bill = about.bill.map(|bill| bill.read()).transpose();
    let bill = bill.map_err(|bad| simulate_view::bad_cost(&bad, language))?;
    find_others(&mut about.request.job.task, language)?;
    let model = Named::open(&about.model, language)?.as_ref().clone();
    let simulated = zeropilot_ask::simulate(&about.model.name, model, &about.request);
    let simulated = simulated.map_err(problem)?;
    let report = SimulateReport::of(&simulated, bill);
    let words = SimulationWords {
        text: simulate_view::human(&report, &plain(language)),
        cost_estimate: simulate_view::bill(&report, language),
        shares: simulate_view::share_words(&report, language),
        advice: simulate_view::verdict(&report, language).trim().to_owned(),
        streams: simulate_view::streams(&report.spans(), language),
    };
    Ok(Answer::new(simulate_view::json(&report), words))
}
