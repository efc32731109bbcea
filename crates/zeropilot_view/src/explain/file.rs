//! A config file, key by key.

use zeropilot_config::keys::{self, KeyText, Status, Unit};
use zeropilot_config::syntax::LineIndex;
use zeropilot_lint::{Diagnostic, ExplainedKey, Explanation, Severity};
use zeropilot_text::{Language, Text, tr};

use super::page::Page;
use super::words;
use crate::place::decodable;
use crate::{FileResult, Layout, escaped, human};

/// The verdict on a file, then its keys in their order, each with its value and what it does.
pub(super) fn file(layout: &Layout, name: &str, bytes: &[u8], explained: &Explanation) -> String {
    let language = layout.language;
    let report = &explained.report;
    let file = FileResult { name, bytes, report, is_named: true, headline: None };
    if explained.keys.is_empty() && !report.diagnostics.is_empty() {
        return human::file(layout, &file);
    }
    let mut page = Page::new(layout);
    page.line(&human::verdict(layout, &file));
    for index in &explained.loose {
        finding(&mut page, 0, &report.diagnostics[*index], language);
    }
    let lines = LineIndex::new(decodable(bytes));
    let last = explained.keys.last().map_or(1, |key| lines.line_column(key.span.start).line);
    let margin = last.to_string().len();
    for key in &explained.keys {
        page.blank();
        let line = lines.line_column(key.span.start).line;
        let number = page.dim(&format!("{line:>margin$}"));
        let indent = margin + 2 + key.depth * 2;
        let head = head(&page, key, language);
        page.line(&format!("{number}  {:depth$}{head}", "", depth = key.depth * 2));
        for index in &key.findings {
            finding(&mut page, indent + 2, &report.diagnostics[*index], language);
        }
        body(&mut page, indent + 2, key, language);
    }
    page.into_text()
}

/// "`stage3_prefetch_bucket_size` = 5e7 → 50000000".
fn head(page: &Page, key: &ExplainedKey, language: Language) -> String {
    let name = key.path.rsplit('.').next().unwrap_or(&key.path);
    let name = page.bold(&escaped(name));
    if key.is_section {
        return name;
    }
    let written = escaped(&key.written);
    let becomes = match (&key.value, key.filled_from) {
        (_, Some(argument)) => filled(argument, language),
        (Some(value), None) if key.is_changed => format!(" → {}", escaped(&words::value(value))),
        _ => String::new(),
    };
    format!("{name} = {written}{becomes}")
}

fn filled(argument: &str, language: Language) -> String {
    tr!(language, " → filled from `{argument}` at run time", " → 运行时由 `{argument}` 填入")
}

fn body(page: &mut Page, indent: usize, key: &ExplainedKey, language: Language) {
    match &key.status {
        Status::Read(path) => {
            if let Some(text) = path.as_deref().and_then(keys::text) {
                text_of(page, indent, text, language);
            }
        }
        Status::HandedOn(Some(within)) => page.paragraph(indent, &handed_on(within, language)),
        Status::HandedOn(None) | Status::Refused => {}
        Status::Unread => {
            let said = Text::new(
                "DeepSpeed does not read this key: it has no effect.",
                "DeepSpeed 不读取这个键，设置不生效。",
            );
            page.warning(indent, said.get(language));
        }
    }
}

fn text_of(page: &mut Page, indent: usize, text: &KeyText, language: Language) {
    page.paragraph(indent, words::words(&text.what, language));
    if text.unit == Unit::Section {
        return;
    }
    if text.is_unread()
        && let Some(said) = words::no_cost(text, language)
    {
        let label = Text::new("effect", "影响").get(language);
        page.rows(indent, &[(label, said)]);
    }
    let cost = |en, zh, words: &Option<keys::Words>| {
        let words = words.as_ref()?;
        Some((Text::new(en, zh).get(language), words::words(words, language).to_owned()))
    };
    let rows = [cost("memory", "显存和主机内存", &text.memory), cost("speed", "速度", &text.speed)];
    page.rows(indent, &rows.into_iter().flatten().collect::<Vec<_>>());
}

fn handed_on(within: &str, language: Language) -> String {
    tr!(
        language,
        "DeepSpeed passes this key on unchanged as part of `{within}`.",
        "DeepSpeed 把这个键随 `{within}` 原样传递。"
    )
}

/// "warning[K02]: …", and what to do.
fn finding(page: &mut Page, indent: usize, diagnostic: &Diagnostic, language: Language) {
    let name = match diagnostic.severity {
        Severity::Error => Text::new("error", "错误"),
        Severity::Warning => Text::new("warning", "警告"),
        Severity::Note => Text::new("note", "提示"),
    };
    let colon = Text::new(": ", "：").get(language);
    let code = diagnostic.rule.code;
    let message = diagnostic.message(language);
    let text = format!("{}[{code}]{colon}{message}", name.get(language));
    page.warning(indent, &escaped(&text));
}
