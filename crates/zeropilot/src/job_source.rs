//! The job a user means: a file that describes one, or a model by its name.

use std::path::Path;

use zeropilot_job::local::{JobProblem, open};
use zeropilot_job::{FileKind, TrainingJob};
use zeropilot_text::Language;
use zeropilot_view::job as words;

use crate::options::JobOptions;

/// What a question is about.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    /// The model by its name.
    pub(crate) model: String,
    /// What the files of the job say.
    pub(crate) job: TrainingJob,
}

/// Reads the job, if one is named.
pub(crate) fn read(options: &JobOptions, language: Language) -> Result<Subject, String> {
    let JobOptions { job, launch, model } = options;
    let Some(name) = job else {
        return Ok(Subject { model: model.clone().unwrap_or_default(), ..Subject::default() });
    };
    let path = Path::new(name);
    let is_model = !path.exists() || path.join("config.json").is_file();
    if is_model && model.is_none() {
        return Ok(Subject { model: name.clone(), ..Subject::default() });
    }
    let opened = match open(path, *launch) {
        Ok(opened) => opened,
        Err(JobProblem::NotAJob(FileKind::ModelConfig)) if model.is_none() => {
            return Ok(Subject { model: name.clone(), ..Subject::default() });
        }
        Err(problem) => return Err(words::problem(name, &problem, language)),
    };
    let mut job = opened.job;
    if let Some(model) = model {
        job.model = None;
        return Ok(Subject { model: model.clone(), job });
    }
    match &job.model {
        Some(model) => Ok(Subject { model: model.value.clone(), job }),
        None => Err(words::no_model(name, &job, language)),
    }
}
