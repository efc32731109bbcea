//! The job a user means: a file that describes one, or a model by its name.

use std::path::Path;

use zeropilot_job::local::{JobProblem, Places, open};
use zeropilot_job::{FileKind, TrainingJob};
use zeropilot_text::Language;
use zeropilot_view::explain::looks_like_a_path;
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
    let JobOptions { job, launch, model, likeness } = options;
    let only_model = |model: &str| Subject {
        model: model.to_owned(),
        job: TrainingJob::default(),
        places: None,
    };
    if let Some(sized) = likeness.name() {
        return Ok(only_model(&sized));
    }
    let Some(name) = job else {
        return Ok(only_model(model.as_deref().unwrap_or_default()));
    };
    let path = Path::new(name);
    let is_model = !path.exists() && !names_a_file(name) || path.join("config.json").is_file();
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

/// Whether a name that is not there can only have meant a file: a model of Hugging Face has a slash too.
fn names_a_file(name: &str) -> bool {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.starts_with(['.', '/', '~']) || looks_like_a_path(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_from_a_model() {
        for file in ["trian.sh", "jobs/train.py", "./llama", "/models/llama", "sft.yaml"] {
            assert!(names_a_file(file), "{file}");
        }
        for model in ["llama-3.1-8b", "Qwen/Qwen2.5-7B-Instruct", "gpt2", "qwen3-1.7b"] {
            assert!(!names_a_file(model), "{model}");
        }
    }
}
