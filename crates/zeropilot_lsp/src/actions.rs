//! Fixes of findings as quick fixes.

use std::collections::HashMap;

use gen_lsp_types::{
    CodeAction, CodeActionKind, CodeActionResponse, Range, TextEdit, WorkspaceEdit,
};
use zeropilot_lint::{Diagnostic, Report, Safety};
use zeropilot_text::{Language, Text};

use crate::diagnostics::diagnostic;
use crate::document::Document;

/// The fixes of findings that touch a range.
pub(crate) fn actions(
    report: &Report,
    document: &Document,
    range: Range,
    language: Language,
) -> Vec<CodeActionResponse> {
    let start = document.positions.offset(&document.text, range.start);
    let end = document.positions.offset(&document.text, range.end);
    let touches = |found: &&Diagnostic| found.span.start <= end && start <= found.span.end;
    let action = |found| action(found, document, language);
    let touched = report.diagnostics.iter().filter(touches);
    touched.filter_map(action).map(CodeActionResponse::CodeAction).collect()
}

fn action(found: &Diagnostic, document: &Document, language: Language) -> Option<CodeAction> {
    let fix = found.fix.as_ref()?;
    let title = found.fix_title(language)?;
    let guess =
        Text::new(" (unsafe fix: check that this is what you want)", "（不安全修复，请确认）");
    let edits = fix.edits.iter().map(|edit| TextEdit {
        range: document.positions.range(&document.text, edit.span),
        new_text: edit.text.clone(),
    });
    let changes = HashMap::from([(document.uri.clone(), edits.collect())]);
    let is_safe = fix.safety == Safety::Safe;
    Some(CodeAction {
        title: if is_safe { title } else { format!("{title}{}", guess.get(language)) },
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![diagnostic(found, document, language)]),
        is_preferred: is_safe.then_some(true),
        edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
        ..CodeAction::default()
    })
}
