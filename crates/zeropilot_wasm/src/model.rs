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

impl Named {
    pub(crate) fn open(&self, language: Language) -> Result<Rc<Model>, Problem> {
        let known = LAST.with_borrow(|last| {
            last.as_ref().filter(|(named, _)| named == self).map(|(_, model)| Rc::clone(model))
        });
        if let Some(model) = known {
            return Ok(model);
        }
        let model = match &self.config {
            Some(text) => Model::from_config(text),
            None => {
                let entry = catalogue::find(&self.name);
                entry.map_err(|unknown| not_in_catalogue(&unknown, language))?.model()
            }
        };
        let model = Rc::new(model.map_err(|error| bad_config(&self.name, &error, language))?);
        LAST.set(Some((self.clone(), Rc::clone(&model))));
        Ok(model)
    }
}
