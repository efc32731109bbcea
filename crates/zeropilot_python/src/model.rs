//! The model a Python program means: by name, or held in memory.

use std::path::Path;

use pyo3::prelude::*;
use zeropilot_job::{TrainingJob, local};
use zeropilot_model::{Dtype, LiveParameter, Model, source};
use zeropilot_text::Language;
use zeropilot_view::job;
use zeropilot_view::model::words;

use crate::problem::problem;

/// A model as Python hands it over.
#[derive(FromPyObject)]
pub(crate) enum ModelArgument {
    /// A path, a name of the catalogue, an id of the hub.
    Name(String),
    /// What it is called, its config as JSON, and name, shape, dtype and `requires_grad` of every parameter.
    Live(String, Option<String>, Vec<(String, Vec<u64>, String, bool)>),
    /// A file of a job, which of its runs, and the model if it is not the job's own.
    Job(String, Option<usize>, Option<String>),
}

/// What a question is about.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) model: Model,
    /// What the files of a job say.
    pub(crate) job: TrainingJob,
}

impl ModelArgument {
    /// The model, and the job it is named in.
    pub(crate) fn open(self, language: Language) -> PyResult<Subject> {
        match self {
            Self::Name(name) => {
                let model = named(&name, language)?;
                Ok(Subject { name, model, job: TrainingJob::default() })
            }
            Self::Live(name, config, parameters) => {
                let parameter = |(name, shape, dtype, trainable): (String, _, String, _)| {
                    let dtype = Dtype::from_torch(&dtype);
                    LiveParameter { name, shape, dtype, trainable }
                };
                let parameters: Vec<_> = parameters.into_iter().map(parameter).collect();
                let model = Model::from_live(config.as_deref(), &parameters);
                let model = model.map_err(|error| problem(error.to_string()))?;
                Ok(Subject { name, model, job: TrainingJob::default() })
            }
            Self::Job(path, launch, model) => {
                let opened = local::open(Path::new(&path), launch)
                    .map_err(|wrong| problem(job::problem(&path, &wrong, language)))?;
                let (name, job) = opened.about(model);
                let name = name.ok_or_else(|| problem(job::no_model(&path, &job, language)))?;
                Ok(Subject { model: named(&name, language)?, name, job })
            }
        }
    }
}

fn named(name: &str, language: Language) -> PyResult<Model> {
    let found = source::find(name, |variable| std::env::var(variable).ok());
    found.map_err(|wrong| problem(words(name, &wrong, language)))
}
