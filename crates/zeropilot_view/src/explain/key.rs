//! One key: what it does, its unit, default, cost and mistakes, and where the engine reads it.

use zeropilot_config::keys::{self, Facts, Found, KeyText, Presence, history};
use zeropilot_config::schema::EngineVersion;
use zeropilot_text::{Language, Text, tr};

use super::page::Page;
use super::words;
use crate::{Layout, escaped};

/// A label with its text.
type Row = (&'static str, String);

/// The page about a key that has a text.
pub(super) fn key(page: &mut Page, layout: &Layout, path: &str, text: &KeyText) {
    page.title(path);
    page.paragraph(2, words::words(&text.what, layout.language));
    page.blank();
    page.rows(2, &rows(path, text, layout.language));
}

/// Everything beside what the key does. Rows that hang on a model's size belong after `speed`.
fn rows(path: &str, text: &KeyText, language: Language) -> Vec<Row> {
    let history = history(path);
    let facts = match history.last() {
        Some((_, Presence::Read(facts))) => Some(facts.as_ref()),
        _ => None,
    };
    let mut rows = vec![(label("unit", "单位", language), unit(text, facts, language))];
    let mut add = |en, zh, text: Option<String>| {
        if let Some(text) = text {
            rows.push((label(en, zh, language), text));
        }
    };
    add("default", "默认值", words::default(&history, language));
    add("needs", "前提条件", words::needs(text, language));
    add("effect", "影响", words::no_cost(text, language));
    let said = |words: &Option<keys::Words>| {
        words.as_ref().map(|words| words::words(words, language).to_owned())
    };
    add("memory", "显存和主机内存", said(&text.memory));
    add("speed", "速度", said(&text.speed));
    add("mistakes", "易错", said(&text.mistake));
    let versions = words::versions(&history, language);
    add("versions", "版本", (!versions.is_empty()).then(|| versions.join("\n")));
    add("alias", "别名", facts.and_then(|facts| facts.other_name).map(|name| format!("`{name}`")));
    add("keys", "其中的键", members(path, language));
    add("evidence", "依据", Some(words::evidence(text, language)));
    add("source", "出处", Some(sources(text)));
    rows
}

fn label(en: &'static str, zh: &'static str, language: Language) -> &'static str {
    Text::new(en, zh).get(language)
}

/// "elements of a tensor, not bytes; whole number ≥ 0".
fn unit(text: &KeyText, facts: Option<&Facts<'_>>, language: Language) -> String {
    let unit = words::unit(text.unit, language);
    match facts.and_then(|facts| words::takes(&facts.takes, language)) {
        Some(takes) if text.unit == keys::Unit::Choice => takes,
        Some(takes) => format!("{unit}{}{takes}", Text::new("; ", "；").get(language)),
        None => unit.to_owned(),
    }
}

/// The names of the keys directly inside a section.
fn members(path: &str, language: Language) -> Option<String> {
    let names: Vec<&str> = keys::all()
        .filter_map(|(other, _)| other.strip_prefix(path)?.strip_prefix('.'))
        .filter(|name| !name.contains('.'))
        .collect();
    (!names.is_empty()).then(|| words::listed(names.into_iter(), language))
}

fn sources(text: &KeyText) -> String {
    let package = |source: &str| match source.starts_with("https://") {
        true => source.to_owned(),
        false => format!("deepspeed/{source}"),
    };
    text.source.iter().map(|source| package(source)).collect::<Vec<_>>().join("\n")
}

/// The page about a name that has no text of its own.
pub(super) fn other(page: &mut Page, layout: &Layout, found: &Found) {
    let language = layout.language;
    match found {
        Found::HandedOn { path, within } => {
            page.title(&escaped(path));
            page.paragraph(2, &handed_on(within, language));
            if let Some(text) = keys::text(within) {
                page.blank();
                key(page, layout, within, text);
            }
        }
        Found::Gone(path) => {
            page.title(path);
            let versions = words::versions(&history(path), language).join("\n");
            page.rows(2, &[(label("versions", "版本", language), versions)]);
        }
        Found::Several(paths) => {
            page.paragraph(0, &several(paths.len(), language));
            for path in paths {
                page.line(&format!("  {path}"));
            }
        }
        Found::Key(path) => {
            if let Some(text) = keys::text(path) {
                key(page, layout, path, text);
            }
        }
        Found::Unknown(_) => {}
    }
}

fn handed_on(within: &str, language: Language) -> String {
    tr!(
        language,
        "DeepSpeed does not read this key. It passes all of `{within}` to another component, which checks the keys.",
        "DeepSpeed 不读取这个键，而是把整个配置段 `{within}` 传给另一个组件，由该组件检查。"
    )
}

fn several(count: usize, language: Language) -> String {
    tr!(
        language,
        "{count} keys end in this name; give the full path of one:",
        "有 {count} 个键以这个名称结尾，请写出其中一个的完整路径："
    )
}

/// What a named version makes of a key, in a sentence.
pub fn in_version(path: &str, version: EngineVersion, language: Language) -> String {
    match keys::presence(version.schema(), path) {
        Presence::Read(facts) => match &facts.default {
            Some(default) => tr!(
                language,
                "DeepSpeed {version} reads the key; default {}",
                "DeepSpeed {version} 会读取这个键；默认值 {}",
                words::value(default)
            ),
            None => {
                tr!(
                    language,
                    "DeepSpeed {version} reads the key",
                    "DeepSpeed {version} 会读取这个键"
                )
            }
        },
        Presence::Refused(message) => tr!(
            language,
            "DeepSpeed {version} rejects the key: {message}",
            "DeepSpeed {version} 会拒绝这个键：{message}"
        ),
        Presence::Absent => {
            tr!(
                language,
                "DeepSpeed {version} does not read the key",
                "DeepSpeed {version} 不读取这个键"
            )
        }
    }
}
