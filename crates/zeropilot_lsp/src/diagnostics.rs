//! Findings of a check as an editor underlines them.

use gen_lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location};
use zeropilot_lint::Severity;
use zeropilot_text::Language;

use crate::document::Document;

/// A finding in the protocol's shape.
pub(crate) fn diagnostic(
    found: &zeropilot_lint::Diagnostic,
    document: &Document,
    language: Language,
) -> Diagnostic {
    let Document { uri, text, positions, .. } = document;
    let related = found.related.iter().map(|related| DiagnosticRelatedInformation {
        location: Location { uri: uri.clone(), range: positions.range(text, related.span) },
        message: related.label.get(language).to_owned(),
    });
    let related: Vec<_> = related.collect();
    let sentences = [found.message(language), found.why(language), found.help(language)];
    Diagnostic {
        range: positions.range(text, found.span),
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::Error,
            Severity::Warning => DiagnosticSeverity::Warning,
            Severity::Note => DiagnosticSeverity::Information,
        }),
        code: Some(found.rule.code.to_owned().into()),
        source: Some("zeropilot".to_owned()),
        message: sentences.join("\n").into(),
        related_information: (!related.is_empty()).then_some(related),
        ..Diagnostic::default()
    }
}
