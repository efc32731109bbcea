//! What two configs make the engine do differently.

use zeropilot_config::keys;
use zeropilot_lint::{Difference, Side};
use zeropilot_text::{Language, Text, tr};

use super::page::Page;
use super::words;
use crate::{Layout, escaped};

/// The keys that differ, each with both values and what it does.
pub(super) fn differences(layout: &Layout, names: [&str; 2], found: &[Difference]) -> String {
    let language = layout.language;
    let mut page = Page::new(layout);
    let [left, right] = names.map(escaped);
    page.line(&match found.len() {
        0 => tr!(
            language,
            "{left} and {right}: all keys resolve to the same values",
            "{left} 与 {right}：所有键的最终取值都相同"
        ),
        1 => tr!(
            language,
            "{left} → {right}: 1 key resolves to a different value",
            "{left} → {right}：1 个键的最终取值不同"
        ),
        count => tr!(
            language,
            "{left} → {right}: {count} keys resolve to different values",
            "{left} → {right}：{count} 个键的最终取值不同"
        ),
    });
    for difference in found {
        page.blank();
        let path = page.bold(&escaped(&difference.path));
        let [left, right] = [&difference.left, &difference.right].map(|side| said(side, language));
        page.line(&format!("{path}: {} → {}", escaped(&left), escaped(&right)));
        let text = keys::canonical(&difference.path).and_then(|path| keys::text(&path));
        if let Some(text) = text {
            page.paragraph(2, words::words(&text.what, language));
            let cost = |en, zh, words: &Option<keys::Words>| {
                let words = words.as_ref()?;
                Some((Text::new(en, zh).get(language), words::words(words, language).to_owned()))
            };
            let rows = [
                cost("memory", "显存和主机内存", &text.memory),
                cost("speed", "速度", &text.speed),
            ];
            page.rows(2, &rows.into_iter().flatten().collect::<Vec<_>>());
        }
    }
    page.into_text()
}

fn said(side: &Side, language: Language) -> String {
    match side {
        Side::Value(value) => words::value(value),
        Side::Section => tr!(language, "(section present)", "（有这个配置段）"),
        Side::Open => tr!(language, "(known at run time)", "（运行时才知道）"),
        Side::Absent => tr!(language, "(not set)", "（未设置）"),
    }
}
