//! The model a user means by its name, by what it is like, or by its size.

use std::path::Path;

use zeropilot_ask::TaskRequest;
use zeropilot_job::TrainingJob;
use zeropilot_model::{Family, Model, Sizes, source};
use zeropilot_text::Language;
use zeropilot_view::model::{bad_sizes, no_family, not_a_config, words};

use crate::options::LikenessOptions;

/// Finds the model.
pub(crate) fn open(name: &str, language: Language) -> Result<Model, String> {
    source::find(name, |variable| std::env::var(variable).ok())
        .map_err(|problem| words(name, &problem, language))
}

/// Finds the other models that a request or its job names.
pub(crate) fn find_others(
    task: &mut TaskRequest,
    job: &TrainingJob,
    language: Language,
) -> Result<(), String> {
    task.find_models(job, |name| open(name, language))
}

/// Finds the model, or builds one of the sizes or after the family that are given.
pub(crate) fn open_as(
    name: &str,
    likeness: &LikenessOptions,
    language: Language,
) -> Result<Model, String> {
    if let Some(sizes) = likeness.sizes() {
        return Model::from_sizes(sizes).map_err(|error| bad_sizes(&error, language));
    }
    let Some(like) = &likeness.like else { return open(name, language) };
    let family = Family::from_model_type(like).ok_or_else(|| no_family(like, language))?;
    let path = Path::new(name);
    let path = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    let text =
        std::fs::read_to_string(&path).map_err(|error| not_a_config(name, &error, language))?;
    let problem = |error| words(name, &source::ModelProblem::Config(error), language);
    Model::like(family, &text).map_err(problem)
}

impl LikenessOptions {
    /// The sizes of a model that has no config.
    fn sizes(&self) -> Option<Sizes> {
        let (params, layers, hidden) = (self.params?.0, self.layers?, self.hidden?);
        Some(Sizes { params, layers, hidden, ..Sizes::default() })
    }

    /// What such a model is called.
    pub(crate) fn name(&self) -> Option<String> {
        let Sizes { params, layers, hidden, .. } = self.sizes()?;
        Some(format!("params={params}, layers={layers}, hidden={hidden}"))
    }
}
