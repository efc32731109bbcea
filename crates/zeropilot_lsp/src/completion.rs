//! Keys and values that can be written where the cursor is, as the protocol has them.

use gen_lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTag, Documentation, InsertTextFormat,
    MarkupContent, MarkupKind, Position, Range, TextEdit,
};
use zeropilot_config::completion::{Choice, Completion, Start};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Span;
use zeropilot_text::Language;
use zeropilot_view::completion::Note;
use zeropilot_view::explain::markdown;

use crate::document::Document;

/// How completions are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) version: EngineVersion,
    pub(crate) language: Language,
    /// Whether the editor knows placeholders.
    pub(crate) snippets: bool,
}

/// What can be written at a position.
pub(crate) fn completions(
    document: &Document,
    position: Position,
    style: Style,
) -> Vec<CompletionItem> {
    let offset = document.positions.offset(&document.text, position);
    let found = Completion::at(&document.text, offset, style.version);
    let place = Place { document, span: found.span };
    let comma = found.comma.map(|end| vec![place.insert(end, ",")]);
    let items = found.choices.iter().map(|choice| match &choice.path {
        Some(path) => CompletionItem {
            additional_text_edits: comma.clone(),
            ..key(choice, path, &place, style)
        },
        None => value(choice, &place),
    });
    items.collect()
}

/// The text that a completion replaces.
struct Place<'d> {
    document: &'d Document,
    span: Span,
}

impl Place<'_> {
    fn range(&self) -> Range {
        self.document.positions.range(&self.document.text, self.span)
    }

    fn insert(&self, offset: usize, text: &str) -> TextEdit {
        let span = Span::new(offset, offset);
        let range = self.document.positions.range(&self.document.text, span);
        TextEdit { range, new_text: text.to_owned() }
    }

    /// What an editor compares with what is typed: with quotes if they are typed.
    fn filter(&self, quoted: &str) -> String {
        let typed = self.span.of(&self.document.text).unwrap_or("");
        if typed.starts_with(['"', '\'']) { quoted.to_owned() } else { quoted.replace('"', "") }
    }
}

fn key(choice: &Choice, path: &str, place: &Place<'_>, style: Style) -> CompletionItem {
    let Choice { label, head, tail, .. } = choice;
    let new_text = match &choice.value {
        None => head.clone(),
        Some(start) if style.snippets => format!("{head}{}{tail}", snippet(start)),
        Some(start) => format!("{head}{}{tail}", start.plain()),
    };
    let is_snippet = style.snippets && choice.value.is_some();
    let note = Note::of(choice, style.version, style.language);
    let documentation = markdown(path, style.version, style.language).map(|value| {
        Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
    });
    CompletionItem {
        label: label.clone(),
        kind: Some(if choice.is_section {
            CompletionItemKind::Module
        } else {
            CompletionItemKind::Property
        }),
        tags: note.is_deprecated.then(|| vec![CompletionItemTag::Deprecated]),
        // What is going stands below everything else.
        sort_text: Some(format!("{}{label}", if note.is_deprecated { "~" } else { "" })),
        detail: note.words,
        documentation,
        filter_text: Some(place.filter(&format!("\"{label}\""))),
        insert_text_format: is_snippet.then_some(InsertTextFormat::Snippet),
        text_edit: Some(TextEdit { range: place.range(), new_text }.into()),
        ..CompletionItem::default()
    }
}

fn value(choice: &Choice, place: &Place<'_>) -> CompletionItem {
    let new_text = choice.head.clone();
    CompletionItem {
        label: choice.label.clone(),
        kind: Some(CompletionItemKind::Value),
        filter_text: Some(place.filter(&choice.label)),
        text_edit: Some(TextEdit { range: place.range(), new_text }.into()),
        ..CompletionItem::default()
    }
}

/// A value to begin with, as a placeholder that is typed over or chosen from.
fn snippet(start: &Start) -> String {
    let Start::OneOf(values) = start else { return "{\n\t$0\n}".to_owned() };
    let escaped =
        |text: &String| text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}");
    let choices: Vec<String> = values.iter().map(escaped).collect();
    match choices.as_slice() {
        [] => "$1".to_owned(),
        [only] => format!("${{1:{only}}}"),
        several => {
            let several = several.iter().map(|text| text.replace(',', "\\,").replace('|', "\\|"));
            format!("${{1|{}|}}", several.collect::<Vec<_>>().join(","))
        }
    }
}
