//! Keys and values that can be written where the cursor is.

use gen_lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTag, Documentation, InsertTextFormat,
    MarkupContent, MarkupKind, Position, Range, TextEdit,
};
use zeropilot_config::constructors::Constructors;
use zeropilot_config::front_end::fills_auto;
use zeropilot_config::keys::{self, Facts, Presence, Takes, Unit, presence};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::{EngineVersion, FieldType};
use zeropilot_config::syntax::{Slot, Span, cursor};
use zeropilot_text::Language;
use zeropilot_view::explain::{deprecation, markdown, value_words};

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
    let at = cursor(&document.text, offset);
    let section = at.sections.join(".");
    match at.slot {
        Slot::Key { span, has_colon, comma_before, comma_after, .. } => {
            let place = Place { document, span };
            let comma = comma_before.map(|end| place.insert(end, ","));
            let is_spoken_for = |name: &String| at.present.contains(name);
            let names = keys::members(style.version.schema(), &section);
            let names = names.into_iter().filter(|name| !is_spoken_for(name));
            names
                .map(|name| {
                    let mut item = key(&section, &name, &place, style, has_colon, comma_after);
                    item.additional_text_edits = comma.clone().map(|comma| vec![comma]);
                    item
                })
                .collect()
        }
        Slot::Value { key, span } => {
            let place = Place { document, span };
            let path = joined(&section, &key);
            values(&path, style).into_iter().map(|text| value(&text, &place)).collect()
        }
        Slot::Other => Vec::new(),
    }
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

fn joined(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

fn facts(path: &str, version: EngineVersion) -> Option<Box<Facts<'static>>> {
    match presence(version.schema(), path) {
        Presence::Read(facts) => Some(facts),
        _ => None,
    }
}

fn key(
    section: &str,
    name: &str,
    place: &Place<'_>,
    style: Style,
    has_colon: bool,
    comma_after: bool,
) -> CompletionItem {
    let path = joined(section, name);
    let facts = facts(&path, style.version);
    let quoted = format!("\"{name}\"");
    let comma = if comma_after { "," } else { "" };
    let new_text = match (has_colon, style.snippets) {
        (true, _) => quoted.clone(),
        (false, true) => format!("{quoted}: {}{comma}", snippet(&path, style)),
        (false, false) => format!("{quoted}: {}{comma}", plain(&path, style)),
    };
    let is_snippet = style.snippets && !has_colon;
    let deprecated = facts.as_ref().and_then(|facts| deprecation(facts, style.language));
    let default = facts.as_ref().and_then(|facts| facts.default.as_ref()).map(value_words);
    let documentation = markdown(&path, style.version, style.language).map(|value| {
        Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
    });
    CompletionItem {
        label: name.to_owned(),
        kind: Some(if is_section(&path, style.version) {
            CompletionItemKind::Module
        } else {
            CompletionItemKind::Property
        }),
        tags: deprecated.as_ref().map(|_| vec![CompletionItemTag::Deprecated]),
        // What is going stands below everything else.
        sort_text: Some(format!("{}{name}", if deprecated.is_some() { "~" } else { "" })),
        detail: deprecated.or(default),
        documentation,
        filter_text: Some(place.filter(&quoted)),
        insert_text_format: is_snippet.then_some(InsertTextFormat::Snippet),
        text_edit: Some(TextEdit { range: place.range(), new_text }.into()),
        ..CompletionItem::default()
    }
}

fn value(text: &str, place: &Place<'_>) -> CompletionItem {
    CompletionItem {
        label: text.to_owned(),
        kind: Some(CompletionItemKind::Value),
        filter_text: Some(place.filter(text)),
        text_edit: Some(TextEdit { range: place.range(), new_text: text.to_owned() }.into()),
        ..CompletionItem::default()
    }
}

fn is_section(path: &str, version: EngineVersion) -> bool {
    !keys::members(version.schema(), path).is_empty()
        || keys::canonical(path)
            .and_then(|path| keys::text(&path))
            .is_some_and(|text| text.unit == Unit::Section)
}

/// The values a key can have, as they are written; the default first.
fn values(path: &str, style: Style) -> Vec<String> {
    let mut found = Vec::new();
    let facts = facts(path, style.version);
    let text = keys::canonical(path).and_then(|path| keys::text(&path));
    match facts.as_ref().map(|facts| &facts.takes) {
        Some(Takes::Typed(kind, _)) => typed(kind, &mut found),
        Some(Takes::Words(words)) => found.extend(words.iter().map(|word| format!("\"{word}\""))),
        _ if text.is_some_and(|text| text.unit == Unit::Boolean) => switch(&mut found),
        _ => {}
    }
    let constructors = Constructors::of(style.version);
    match path {
        "optimizer.type" => {
            found
                .extend(constructors.deepspeed_optimizers.iter().map(|name| format!("\"{name}\"")));
        }
        "scheduler.type" => {
            found.extend(constructors.schedulers.keys().map(|name| format!("\"{name}\"")));
        }
        _ => {}
    }
    let default = facts.and_then(|facts| facts.default.clone());
    if let Some(default) = default.filter(|default| *default != PyValue::None) {
        let default = serde_json::to_string(&default).unwrap_or_default();
        found.retain(|value| *value != default);
        found.insert(0, default);
    }
    if fills_auto(path) {
        found.push("\"auto\"".to_owned());
    }
    found
}

fn typed(kind: &FieldType, found: &mut Vec<String>) {
    match kind {
        FieldType::Bool => switch(found),
        FieldType::IntEnum(values) => found.extend(values.iter().map(i64::to_string)),
        FieldType::StrEnum(words) | FieldType::Literal(words) => {
            found.extend(words.iter().map(|word| format!("\"{word}\"")));
        }
        FieldType::Optional(inner) => typed(inner, found),
        FieldType::Union(kinds) => kinds.iter().for_each(|kind| typed(kind, found)),
        _ => {}
    }
}

fn switch(found: &mut Vec<String>) {
    found.extend(["true".to_owned(), "false".to_owned()]);
}

/// A value to begin with, as a placeholder that is typed over or chosen from.
fn snippet(path: &str, style: Style) -> String {
    if is_section(path, style.version) {
        return "{\n\t$0\n}".to_owned();
    }
    let escaped =
        |text: &String| text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}");
    let choices: Vec<String> = values(path, style).iter().map(escaped).collect();
    match choices.as_slice() {
        [] => "$1".to_owned(),
        [only] => format!("${{1:{only}}}"),
        several => {
            let several = several.iter().map(|text| text.replace(',', "\\,").replace('|', "\\|"));
            format!("${{1|{}|}}", several.collect::<Vec<_>>().join(","))
        }
    }
}

/// The same where an editor knows no placeholders.
fn plain(path: &str, style: Style) -> String {
    if is_section(path, style.version) {
        return "{}".to_owned();
    }
    values(path, style).into_iter().next().unwrap_or_default()
}
