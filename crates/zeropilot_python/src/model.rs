//! The model a Python program means: by name, or held in memory.

use pyo3::prelude::*;
use zeropilot_lint::Language;
use zeropilot_model::{Dtype, LiveParameter, Model, source};
use zeropilot_view::model::words;

use crate::problem::problem;

/// A model as Python hands it over.
#[derive(FromPyObject)]
pub(crate) enum ModelArgument {
    /// A path, a name of the catalogue, an id of the hub.
    Name(String),
    /// What it is called, its config as JSON, and name, shape, dtype and `requires_grad` of every parameter.
    Live(String, Option<String>, Vec<(String, Vec<u64>, String, bool)>),
}

impl ModelArgument {
    /// Its name and the model.
    pub(crate) fn open(self, language: Language) -> PyResult<(String, Model)> {
        match self {
            Self::Name(name) => {
                let found = source::find(&name, |variable| std::env::var(variable).ok());
                let model = found.map_err(|wrong| problem(words(&name, &wrong, language)))?;
                Ok((name, model))
            }
            Self::Live(name, config, parameters) => {
                let parameter = |(name, shape, dtype, trainable): (String, _, String, _)| {
                    let dtype = Dtype::from_torch(&dtype);
                    LiveParameter { name, shape, dtype, trainable }
                };
                let parameters: Vec<_> = parameters.into_iter().map(parameter).collect();
                let model = Model::from_live(config.as_deref(), &parameters);
                Ok((name, model.map_err(|error| problem(error.to_string()))?))
            }
        }
    }
}
