//! The model a user means: a directory or config file here, a name of the catalogue, or an id of the hub.

use std::path::Path;

use zeropilot_lint::Language;
use zeropilot_model::hub::Hub;
use zeropilot_model::{Model, catalogue, local};
use zeropilot_view::model::{ModelProblem, words};

/// Finds the model.
pub(crate) fn open(name: &str, language: Language) -> Result<Model, String> {
    find(name).map_err(|problem| words(name, &problem, language))
}

fn find(name: &str) -> Result<Model, ModelProblem> {
    let path = Path::new(name);
    if path.is_dir() {
        return local::open(path)
            .map(|found| found.model)
            .map_err(|error| ModelProblem::Local(Box::new(error)));
    }
    if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(ModelProblem::Unreadable)?;
        return Model::from_config(&text).map_err(ModelProblem::Config);
    }
    let unknown = match catalogue::find(name) {
        Ok(entry) => return entry.model().map_err(ModelProblem::Config),
        Err(unknown) => unknown,
    };
    // Only `owner/name` can be on the hub; anything else would be a path that is not there.
    if name.split('/').count() != 2 || name.starts_with(['.', '/', '~']) {
        return Err(ModelProblem::Unknown(unknown));
    }
    let hub = Hub::from_environment(|variable| std::env::var(variable).ok());
    hub.find(name)
        .map(|found| found.model)
        .map_err(|error| ModelProblem::Hub(Box::new(error), unknown))
}
