//! The verbs.

use std::path::PathBuf;

use pyo3::prelude::*;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    BillRequest, Judging, MemoryRequest, PlanRequest, SimulateRequest, Software, TaskRequest,
    Wishes,
};
use zeropilot_config::installed::{self, InstalledEngine};
use zeropilot_config::packages::Packages;
use zeropilot_config::schema::EngineVersion;
use zeropilot_job::TrainingJob;
use zeropilot_lint::{Settings, Verdict};
use zeropilot_plan::ModelSize;
use zeropilot_text::Language;
use zeropilot_view::creation::CreationProblem;
use zeropilot_view::explain::{Asked, looks_like_a_path, unknown};
use zeropilot_view::{Layout, problem as words, simulate as simulate_view};

use crate::answer::{Answer, File, Finding};
use crate::model::{ModelArgument, Subject};
use crate::problem::{content, language, problem, read};

/// A config as Python hands it over: its name, and its text if it is not a file.
type ConfigArgument = (String, Option<String>);

fn open((name, text): ConfigArgument, language: Language) -> PyResult<File> {
    let bytes = match text {
        Some(text) => text.into_bytes(),
        None => content(&name, language)?,
    };
    Ok(File { name, bytes })
}

fn written(config: ConfigArgument, language: Language) -> PyResult<WrittenConfig> {
    let File { name, bytes } = open(config, language)?;
    Ok(WrittenConfig { name, bytes })
}

/// The engine with this version; otherwise the one beside this interpreter, or the newest.
fn engine(py: Python<'_>, given: Option<&str>) -> PyResult<EngineVersion> {
    if let Some(given) = given {
        return EngineVersion::nearest(given).map_err(|error| problem(format!("error: {error}")));
    }
    Ok(beside(py)?.map_or(EngineVersion::NEWEST, |found| found.engine))
}

/// The engine beside this interpreter.
fn beside(py: Python<'_>) -> PyResult<Option<InstalledEngine>> {
    let prefix: PathBuf = py.import("sys")?.getattr("prefix")?.extract()?;
    Ok(installed::within(&prefix))
}

/// Notes which engine is installed, for a question that names none.
fn note_installed(py: Python<'_>, software: &mut Software) -> PyResult<()> {
    let found = beside(py)?;
    software.installed =
        found.map(|found| (found.engine, found.place.to_string_lossy().into_owned()));
    Ok(())
}

fn settings(
    py: Python<'_>,
    judging: &Bound<'_, PyAny>,
    version: Option<&str>,
) -> PyResult<Settings> {
    let judging: Judging = read(judging)?;
    let mut settings = judging
        .settings(engine(py, version)?)
        .map_err(|wrong| problem(format!("error: {wrong}")))?;
    settings.packages = match version {
        Some(version) => Packages::engine(version),
        None => beside(py)?.map(|found| found.packages).unwrap_or_default(),
    };
    Ok(settings)
}

fn plain(language: Language) -> Layout {
    Layout { language, ..Layout::default() }
}

/// The version of this package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Looks for the other models that a request names.
fn find_others(request: &mut TaskRequest, job: &TrainingJob, language: Language) -> PyResult<()> {
    request.find_models(job, |name| {
        let Subject { model, .. } = ModelArgument::Name(name.to_owned()).open(language)?;
        Ok(model)
    })
}

/// How much memory a job needs.
#[pyfunction]
pub(crate) fn memory(
    py: Python<'_>,
    model: ModelArgument,
    request: &Bound<'_, PyAny>,
    config: Option<ConfigArgument>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let mut request: MemoryRequest = read(request)?;
    request.config = config.map(|config| written(config, language)).transpose()?;
    note_installed(py, &mut request.training.software)?;
    py.detach(|| {
        let Subject { name, model, job } = model.open(language)?;
        request.job = job;
        find_others(&mut request.task, &request.job, language)?;
        let answered = zeropilot_ask::memory(&name, model, &request);
        let memory = answered.map_err(|wrong| problem(words::memory(&wrong, &plain(language))))?;
        Ok(Answer(Finding::Memory(Box::new(memory))))
    })
}

/// Why a run went out of memory, from its log.
#[pyfunction]
pub(crate) fn diagnose(py: Python<'_>, text: String, lang: Option<&str>) -> PyResult<Answer> {
    language(lang)?;
    let found = py.detach(|| zeropilot_diagnose::diagnose(&text));
    Ok(Answer(Finding::Diagnosed(found.map(Box::new))))
}

/// All stages and offloads side by side.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    model: ModelArgument,
    request: &Bound<'_, PyAny>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let mut request: MemoryRequest = read(request)?;
    note_installed(py, &mut request.training.software)?;
    py.detach(|| {
        let Subject { model, job, .. } = model.open(language)?;
        request.job = job;
        find_others(&mut request.task, &request.job, language)?;
        let compared = zeropilot_ask::compare(&model, &request);
        let compared =
            compared.map_err(|wrong| problem(words::memory(&wrong, &plain(language))))?;
        Ok(Answer(Finding::Compared(Box::new(compared))))
    })
}

/// What to run on these GPUs.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    model: ModelArgument,
    request: &Bound<'_, PyAny>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let mut request: PlanRequest = read(request)?;
    note_installed(py, &mut request.training.software)?;
    py.detach(|| {
        let Subject { name, model, job } = model.open(language)?;
        request.job = job;
        find_others(&mut request.task, &request.job, language)?;
        let planned = zeropilot_ask::plan(&name, &model, &request);
        let planned = planned.map_err(|wrong| problem(words::planning(&wrong, language)))?;
        Ok(Answer(Finding::Planned(Box::new(planned))))
    })
}

/// How long a step takes.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    model: ModelArgument,
    request: &Bound<'_, PyAny>,
    config: Option<ConfigArgument>,
    bill: Option<&Bound<'_, PyAny>>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let mut request: SimulateRequest = read(request)?;
    request.job.config = config.map(|config| written(config, language)).transpose()?;
    note_installed(py, &mut request.job.training.software)?;
    let bill = bill.map(read::<BillRequest>).transpose()?.map(|bill| bill.read()).transpose();
    let bill = bill.map_err(|bad| problem(simulate_view::bad_cost(&bad, language)))?;
    py.detach(|| {
        let Subject { name, model, job } = model.open(language)?;
        request.job.job = job;
        find_others(&mut request.job.task, &request.job.job, language)?;
        let simulated = zeropilot_ask::simulate(&name, model, &request);
        let simulated =
            simulated.map_err(|wrong| problem(words::simulating(&wrong, &plain(language))))?;
        Ok(Answer(Finding::Simulated(Box::new(simulated), bill)))
    })
}

/// A config that was wished for, in one size or in three.
#[pyfunction]
pub(crate) fn create(
    py: Python<'_>,
    wishes: &Bound<'_, PyAny>,
    model: Option<ModelArgument>,
    tiers: bool,
    deepspeed_version: Option<&str>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let wishes: Wishes = read(wishes)?;
    let opened = model.map(|model| model.open(language)).transpose()?;
    let size = |Subject { name, model, .. }: &Subject| {
        let without = || problem(CreationProblem::ModelWithoutWidth.words(name, language));
        ModelSize::of(model).ok_or_else(without)
    };
    let size = opened.as_ref().map(size).transpose()?;
    let request = wishes.request(size).map_err(|wrong| problem(format!("error: {wrong}")))?;
    let drafts = zeropilot_ask::create(&request, engine(py, deepspeed_version)?, tiers)
        .map_err(|wrong| problem(words::creating(&wrong, "ds_config.json", &plain(language))))?;
    Ok(Answer(Finding::Created { drafts, model: opened.map(|subject| subject.name) }))
}

/// Whether the engine takes a config, and what is wrong with it.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    config: ConfigArgument,
    judging: &Bound<'_, PyAny>,
    deepspeed_version: Option<&str>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let file = open(config, language(lang)?)?;
    let report = zeropilot_lint::check(&file.bytes, &settings(py, judging, deepspeed_version)?);
    Ok(Answer(Finding::Checked(file, Box::new(report))))
}

/// What the engine makes of a config.
#[pyfunction]
pub(crate) fn resolve(
    py: Python<'_>,
    config: ConfigArgument,
    judging: &Bound<'_, PyAny>,
    deepspeed_version: Option<&str>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let file = open(config, language)?;
    let report = zeropilot_lint::check(&file.bytes, &settings(py, judging, deepspeed_version)?);
    if report.verdict == Verdict::Reject {
        return Err(problem(plain(language).file(&file.result(&report))));
    }
    Ok(Answer(Finding::Resolved(file, Box::new(report))))
}

/// A key, a concept or a config; without a topic, what can be asked.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    topic: Option<ConfigArgument>,
    judging: &Bound<'_, PyAny>,
    deepspeed_version: Option<&str>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let settings = settings(py, judging, deepspeed_version)?;
    let Some((name, text)) = topic else { return Ok(Answer(Finding::Index)) };
    let file = |name, text| {
        let file = open((name, text), language)?;
        let explanation = zeropilot_lint::explain(&file.bytes, &settings);
        Ok(Answer(Finding::Explained(file, Box::new(explanation))))
    };
    if text.is_some() || looks_like_a_path(&name) {
        return file(name, text);
    }
    match Asked::find(&name) {
        Asked::Concept(concept) => Ok(Answer(Finding::Concept(concept))),
        Asked::Key(found) => Ok(Answer(Finding::Key(found))),
        Asked::Unknown if std::path::Path::new(&name).exists() => file(name, None),
        Asked::Unknown => Err(problem(unknown(&name, language))),
    }
}

/// What differs between two configs.
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    left: ConfigArgument,
    right: ConfigArgument,
    judging: &Bound<'_, PyAny>,
    deepspeed_version: Option<&str>,
    lang: Option<&str>,
) -> PyResult<Answer> {
    let language = language(lang)?;
    let settings = settings(py, judging, deepspeed_version)?;
    let (left, right) = (open(left, language)?, open(right, language)?);
    let explained = [&left, &right].map(|file| zeropilot_lint::explain(&file.bytes, &settings));
    match zeropilot_lint::differences(&explained[0], &explained[1]) {
        Some(found) => Ok(Answer(Finding::Differences([left.name, right.name], found))),
        None => {
            let refused = [&left, &right].into_iter().zip(&explained);
            let refused = refused.filter(|(_, it)| it.report.verdict == Verdict::Reject);
            let text: String =
                refused.map(|(file, it)| plain(language).file(&file.result(&it.report))).collect();
            Err(problem(text))
        }
    }
}
