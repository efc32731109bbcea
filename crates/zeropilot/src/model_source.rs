//! The model a user means by its name.

use zeropilot_model::{Model, source};
use zeropilot_text::Language;
use zeropilot_view::model::words;

/// Finds the model.
pub(crate) fn open(name: &str, language: Language) -> Result<Model, String> {
    source::find(name, |variable| std::env::var(variable).ok())
        .map_err(|problem| words(name, &problem, language))
}
