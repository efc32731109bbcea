//! The job a user means: a file that describes one, or a model by its name.

use std::path::Path;

use zeropilot_job::local::{JobProblem, Places, open};
use zeropilot_job::{FileKind, TrainingJob};
use zeropilot_text::Language;
use zeropilot_view::job as words;

use crate::options::JobOptions;

/// What a question is about.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The model by its name.
    pub(crate) model: String,
    /// What the files of the job say.
    pub(crate) job: TrainingJob,
    /// Where those files are, if there is a job.
    pub(crate) places: Option<Places>,
}

/// Reads the job, if one is named.
pub(crate) fn read(options: &JobOptions, language: Language) -> Result<Subject, String> {
    let JobOptions { job, launch, model } = options;
    let only_model = |model: &str| Subject {
        model: model.to_owned(),
        job: TrainingJob::default(),
        places: None,
    };
    let Some(name) = job else {
        return Ok(only_model(model.as_deref().unwrap_or_default()));
    };
    let path = Path::new(name);
    let is_model = !path.exists() || path.join("config.json").is_file();
    if is_model && model.is_none() {
        return Ok(only_model(name));
    }
    match open(path, *launch) {
        Ok(opened) => {
            let places = Some(opened.places.clone());
            match opened.about(model.clone()) {
                (Some(model), job) => Ok(Subject { model, job, places }),
                (None, job) => Err(words::no_model(name, &job, language)),
            }
        }
        Err(JobProblem::NotAJob(FileKind::ModelConfig)) if model.is_none() => Ok(only_model(name)),
        Err(problem) => Err(words::problem(name, &problem, language)),
    }
}
