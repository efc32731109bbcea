//! The model a person means: a directory or config file here, a name of the catalogue, or an id of the hub.

use std::io;
use std::path::Path;

use crate::catalogue::{self, UnknownModel};
use crate::hub::{Hub, HubError};
use crate::local::{self, LocalError};
use crate::{ConfigError, Model};

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelProblem {
    /// No model has this name.
    #[error(transparent)]
    Unknown(UnknownModel),
    /// Not in the catalogue, and the hub does not help.
    #[error("{1}, and downloading it from the hub failed")]
    Hub(#[source] Box<HubError>, UnknownModel),
    /// A directory that cannot be used.
    #[error(transparent)]
    Local(Box<LocalError>),
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// A config that cannot be used.
    #[error(transparent)]
    Config(ConfigError),
}

/// Finds the model; `variable` reads the environment, which knows where the hub is and where it is cached.
///
/// # Errors
///
/// If there is none, or it cannot be used.
pub fn find(name: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Model, ModelProblem> {
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
    Hub::from_environment(variable)
        .find(name)
        .map(|found| found.model)
        .map_err(|error| ModelProblem::Hub(Box::new(error), unknown))
}
