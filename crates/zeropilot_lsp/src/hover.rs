//! What a key does, where the mouse rests.

use gen_lsp_types::{Contents, Hover, MarkupContent, MarkupKind, Position};
use zeropilot_config::keys::{self, Found};
use zeropilot_config::syntax::{Cursor, Slot, Span, cursor};
use zeropilot_lint::{ExplainedKey, Settings, explain};
use zeropilot_text::{Language, Text};
use zeropilot_view::explain::{in_version, markdown, value_words};

use crate::document::Document;

/// The explanation of the key at a position, or of the key whose value stands there.
pub(crate) fn hover(
    document: &Document,
    position: Position,
    settings: &Settings,
    language: Language,
) -> Option<Hover> {
    let offset = document.positions.offset(&document.text, position);
    // Between two characters an editor means the one after it.
    let at = cursor(&document.text, offset + usize::from(offset < document.text.len()));
    let (path, span) = key(&at)?;
    let mut said = vec![format!("`{path}`")];
    said.push(page(&path, settings, language)?);
    let explained = explain(document.text.as_bytes(), settings);
    if let Some(becomes) = explained.keys.iter().find(|key| key.path == path).and_then(becomes) {
        let here = Text::new("**here**: ", "**此处**：").get(language);
        said.push(format!("{here}{becomes}"));
    }
    let contents = MarkupContent { kind: MarkupKind::Markdown, value: said.join("\n\n") };
    Some(Hover {
        contents: Contents::MarkupContent(contents),
        range: Some(document.positions.range(&document.text, span)),
    })
}

/// The path of the key under the cursor, and the text that the answer is about.
fn key(at: &Cursor) -> Option<(String, Span)> {
    let (name, span) = match &at.slot {
        Slot::Key { name, span, .. } if !name.is_empty() => (name, *span),
        Slot::Value { key, span } if span.start < span.end => (key, *span),
        _ => return None,
    };
    let mut path = at.sections.clone();
    path.push(name.clone());
    Some((path.join("."), span))
}

fn page(path: &str, settings: &Settings, language: Language) -> Option<String> {
    if let Some(page) = markdown(path, settings.version, language) {
        return Some(page);
    }
    match keys::find(path) {
        Found::HandedOn { within, .. } => markdown(&within, settings.version, language),
        _ => Some(in_version(path, settings.version, language)),
    }
}

/// What a value resolves to, where that is not what is written.
fn becomes(key: &ExplainedKey) -> Option<String> {
    match (&key.value, key.filled_from) {
        (_, Some(argument)) => Some(format!("`{}` ← `{argument}`", key.written)),
        (Some(value), None) if key.is_changed => {
            Some(format!("`{}` → `{}`", key.written, value_words(value)))
        }
        _ => None,
    }
}
