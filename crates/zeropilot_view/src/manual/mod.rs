//! Manual pages of rules: for a terminal, and as JSON. Both show the sentences that a check shows.

mod human;
pub(crate) mod json;

pub(crate) use human::{group_name, severity_name};

use zeropilot_lint::Page;
use zeropilot_text::Language;

use crate::Layout;

/// A page for people.
pub fn human(page: &Page, layout: &Layout) -> String {
    human::page(page, layout)
}

/// Pages as one JSON array.
pub fn json(pages: &[Page], language: Language) -> String {
    json::pages(pages, language)
}
