//! Workflow commands that GitHub shows as annotations.

use std::fmt::Write as _;

use zeropilot_lint::Severity;
use zeropilot_text::Language;

use crate::place::Places;
use crate::{FileResult, escaped};

/// The annotations of a file.
pub(crate) fn file(language: Language, file: &FileResult<'_>) -> String {
    if file.report.diagnostics.is_empty() {
        return String::new();
    }
    let places = Places::new(file.bytes);
    let name = property(&escaped(file.name));
    let mut commands = String::new();
    for diagnostic in &file.report.diagnostics {
        let place = places.place(diagnostic.span);
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let title = property(&format!("{} {}", diagnostic.rule.code, diagnostic.rule.name));
        // GitHub ignores columns over several lines.
        let columns = match place.line == place.end_line {
            true => {
                format!(",col={},endColumn={}", place.column, place.end_column.max(place.column))
            }
            false => String::new(),
        };
        let text =
            [diagnostic.message(language), diagnostic.why(language), diagnostic.help(language)];
        let text = text.map(|part| data(&escaped(&part))).join("%0A");
        let _ = writeln!(
            commands,
            "::{command} file={name},line={},endLine={}{columns},title={title}::{text}",
            place.line, place.end_line
        );
    }
    commands
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_cannot_break_out() {
        assert_eq!(property("a,b:c%\n::error"), "a%2Cb%3Ac%25%0A%3A%3Aerror");
        assert_eq!(data("50%\n:"), "50%25%0A:");
    }
}
