//! Checked files and explanations for notebooks and pages.

use zeropilot_text::Language;

use crate::explain::Topic;
use crate::html::Html;
use crate::human::verdict;
use crate::place::Places;
use crate::{FileResult, Layout};

/// What was found in a file, as a table.
pub fn file_html(file: &FileResult<'_>, language: Language) -> String {
    let places = Places::new(file.bytes);
    let rows: Vec<Vec<String>> = file
        .report
        .diagnostics
        .iter()
        .map(|found| {
            let place = places.place(found.span);
            vec![
                found.rule.code.to_owned(),
                found.severity.name().to_owned(),
                format!("{}:{}", place.line, place.column),
                found.message(language),
                found.why(language),
                found.help(language),
            ]
        })
        .collect();
    let layout = Layout { language, ..Layout::default() };
    Html::new().title(&verdict(&layout, file)).table("", &rows).finish()
}

/// A topic as its page.
pub fn topic_html(topic: &Topic<'_>, language: Language) -> String {
    let layout = Layout { language, ..Layout::default() };
    Html::new().block(&layout.topic(topic)).finish()
}

/// Text whose spaces and line breaks count.
pub fn text_html(text: &str) -> String {
    Html::new().block(text).finish()
}
