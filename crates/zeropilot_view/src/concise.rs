//! `path:line:column: severity code message`, one line per finding.

use std::fmt::Write as _;

use zeropilot_text::Language;

use crate::place::Places;
use crate::{FileResult, escaped};

/// The lines of a file.
pub(crate) fn file(language: Language, file: &FileResult<'_>) -> String {
    if file.report.diagnostics.is_empty() {
        return String::new();
    }
    let places = Places::new(file.bytes);
    let name = escaped(file.name);
    let mut lines = String::new();
    for diagnostic in &file.report.diagnostics {
        let place = places.place(diagnostic.span);
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "{name}:{}:{}: {} {} {}",
            place.line,
            place.column,
            diagnostic.severity.name(),
            diagnostic.rule.code,
            escaped(&diagnostic.message(language))
        );
    }
    lines
}
