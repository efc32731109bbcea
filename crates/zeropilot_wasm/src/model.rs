//! The model a page means: a name of the catalogue, or a config.json that was pasted.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use zeropilot_model::{Model, catalogue};
use zeropilot_text::Language;
use zeropilot_view::model::{bad_config, not_in_catalogue};

use crate::question::Problem;

/// A model as a page hands it over.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// Its name, as answers repeat it.
    pub(crate) name: String,
    /// Its config.json, if the catalogue is not meant.
    #[serde(default)]
    pub(crate) config: Option<String>,
}

thread_local! {
    /// The model of the last question: while a slider moves it stays the same.
    static LAST: RefCell<Option<(Named, Rc<Model>)>> = const { RefCell::new(None) };
}

/// A model of the catalogue.
pub(crate) fn named(name: &str, language: Language) -> Result<Model, Problem> {
    let entry = catalogue::find(name);
    let model = entry.map_err(|unknown| not_in_catalogue(&unknown, language))?.model();
    model.map_err(|error| bad_config(name, &error, language))
}

impl Named {
    pub(crate) fn open(&self, language: Language) -> Result<Rc<Model>, Problem> {
        let known = LAST.with_borrow(|last| {
            last.as_ref().filter(|(named, _)| named == self).map(|(_, model)| Rc::clone(model))
        });
        if let Some(model) = known {
            return Ok(model);
        }
        let model = match &self.config {
            Some(text) => {
                let model = Model::from_config(text);
                model.map_err(|error| bad_config(&self.name, &error, language))?
            }
            None => named(&self.name, language)?,
        };
        let model = Rc::new(model);
        LAST.set(Some((self.clone(), Rc::clone(&model))));
        Ok(model)
    }
}
