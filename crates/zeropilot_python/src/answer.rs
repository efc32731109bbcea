//! An answer: data for programs, text for terminals, HTML for notebooks, the same that every other front shows.

use pyo3::prelude::*;
use pythonize::pythonize;
use serde_json::Value;
use zeropilot_ask::{Bill, Compared, Draft, Memory, Planned, Simulated};
use zeropilot_config::keys::Found;
use zeropilot_diagnose::Diagnosis;
use zeropilot_lint::{Difference, Explanation, Report};
use zeropilot_text::Language;
use zeropilot_view::creation::{self, Created};
use zeropilot_view::diagnose::{self, LogReport};
use zeropilot_view::explain::{Concept, Topic};
use zeropilot_view::memory::{self, MemoryReport};
use zeropilot_view::plan::{self, PlanReport};
use zeropilot_view::simulate::{self, SimulateReport};
use zeropilot_view::{
    FileResult, Format, Layout, file_html, resolved, talk, text_html, topic_html,
};

use crate::problem::{language, problem};

/// Stretches of a picture.
const STRETCHES: usize = 400;

/// A file with its content.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// What was found out.
#[derive(Debug)]
pub(crate) enum Finding {
    Memory(Box<Memory>),
    Compared(Box<Compared>),
    Planned(Box<Planned>),
    Simulated(Box<Simulated>, Option<Bill>),
    Created { drafts: Vec<Draft>, model: Option<String> },
    Diagnosed(Option<Box<Diagnosis>>),
    Checked(File, Box<Report>),
    Resolved(File, Box<Report>),
    Index,
    Key(Found),
    Concept(&'static Concept),
    Explained(File, Box<Explanation>),
    Differences([String; 2], Vec<Difference>),
}

/// An answer that Python holds.
#[pyclass(frozen, module = "zeropilot._native")]
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Finding);

#[pymethods]
impl Answer {
    /// The answer as the command line prints it with `--json`.
    #[pyo3(signature = (lang=None))]
    fn json<'py>(&self, py: Python<'py>, lang: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let language = language(lang)?;
        let value = py.detach(|| self.0.json(language))?;
        Ok(pythonize(py, &value)?)
    }

    /// The answer for people.
    #[pyo3(signature = (lang=None))]
    fn text(&self, lang: Option<&str>) -> PyResult<String> {
        let language = language(lang)?;
        Ok(self.0.text(&Layout { language, ..Layout::default() }))
    }

    /// The answer for notebooks.
    #[pyo3(signature = (lang=None))]
    fn html(&self, lang: Option<&str>) -> PyResult<String> {
        self.0.html(language(lang)?)
    }
}

/// A log that Python holds has no name.
fn log_report(diagnosis: Option<&Diagnosis>) -> LogReport<'_> {
    LogReport { name: "<text>", diagnosis, predicted: None }
}

impl Finding {
    fn json(&self, language: Language) -> PyResult<Value> {
        let lower = |error| problem(talk::lower_error(&error, language));
        Ok(match self {
            Self::Memory(memory) => {
                let tensors = memory.tensors().map_err(lower)?;
                memory::json(&MemoryReport::from(memory.as_ref()), &tensors)
            }
            Self::Compared(compared) => memory::compare_json(compared),
            Self::Planned(planned) => with_plan(planned, plan::json),
            Self::Simulated(step, bill) => simulate::json(&SimulateReport::of(step, *bill)),
            Self::Created { .. } => self.with_created(|created| value(&creation::json(created))),
            Self::Checked(file, report) => {
                let layout = Layout { format: Format::Json, language, ..Layout::default() };
                value(&layout.file(&file.result(report)))
            }
            Self::Resolved(_, report) => resolved(report).unwrap_or_default(),
            Self::Diagnosed(found) => diagnose::json(&log_report(found.as_deref()), language),
            _ => {
                let layout = Layout { format: Format::Json, language, ..Layout::default() };
                self.with_topic(|topic| value(&layout.topic(topic)))
            }
        })
    }

    fn text(&self, layout: &Layout) -> String {
        match self {
            Self::Memory(memory) => memory::human(&MemoryReport::from(memory.as_ref()), layout),
            Self::Compared(compared) => memory::compare(compared, layout),
            Self::Planned(planned) => with_plan(planned, |report| plan::human(report, layout)),
            Self::Simulated(step, bill) => {
                simulate::human(&SimulateReport::of(step, *bill), layout)
            }
            Self::Created { .. } => {
                self.with_created(|created| creation::words(created, layout.language))
            }
            Self::Checked(file, report) => layout.file(&file.result(report)),
            Self::Resolved(_, report) => format!("{:#}", resolved(report).unwrap_or_default()),
            Self::Diagnosed(found) => diagnose::human(&log_report(found.as_deref()), layout),
            _ => self.with_topic(|topic| layout.topic(topic)),
        }
    }

    fn html(&self, language: Language) -> PyResult<String> {
        let lower = |error| problem(talk::lower_error(&error, language));
        Ok(match self {
            Self::Memory(memory) => {
                let stretches = memory.stretches(STRETCHES).map_err(lower)?;
                memory::html(&MemoryReport::from(memory.as_ref()), &stretches, language)
            }
            Self::Compared(compared) => memory::compare_html(compared, language),
            Self::Planned(planned) => with_plan(planned, |report| plan::html(report, language)),
            Self::Simulated(step, bill) => {
                let report = SimulateReport::of(step, *bill);
                let picture = simulate::svg(&report, &report.spans(), language);
                text_html(&simulate::human(&report, &Layout { language, ..Layout::default() }))
                    + &picture
            }
            Self::Checked(file, report) | Self::Resolved(file, report) => {
                file_html(&file.result(report), language)
            }
            Self::Created { .. } | Self::Diagnosed(_) => {
                text_html(&self.text(&Layout { language, ..Layout::default() }))
            }
            _ => self.with_topic(|topic| topic_html(topic, language)),
        })
    }

    fn with_created<T>(&self, then: impl FnOnce(&[Created<'_>]) -> T) -> T {
        let (drafts, model): (&[Draft], _) = match self {
            Self::Created { drafts, model } => (drafts, model.as_deref()),
            _ => (&[], None),
        };
        let created: Vec<Created<'_>> = drafts
            .iter()
            .map(|draft| Created { recipe: &draft.recipe, path: None, tier: draft.tier, model })
            .collect();
        then(&created)
    }

    /// Of what is explained.
    fn with_topic<T>(&self, then: impl FnOnce(&Topic<'_>) -> T) -> T {
        match self {
            Self::Key(found) => then(&Topic::Key(found)),
            Self::Concept(concept) => then(&Topic::Concept(concept)),
            Self::Explained(File { name, bytes }, explained) => {
                then(&Topic::File { name, bytes, explained, job: None })
            }
            Self::Differences([left, right], found) => {
                then(&Topic::Differences { names: [left, right], found })
            }
            _ => then(&Topic::Index),
        }
    }
}

/// The report of a plan whose config is not written yet.
fn with_plan<T>(planned: &Planned, then: impl FnOnce(&PlanReport<'_>) -> T) -> T {
    let commands = planned.commands("ds_config.json");
    then(&PlanReport::of(planned, &commands, None))
}

/// What views write is JSON.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

impl File {
    pub(crate) fn result<'a>(&'a self, report: &'a Report) -> FileResult<'a> {
        FileResult { name: &self.name, bytes: &self.bytes, report, is_named: true, headline: None }
    }
}
