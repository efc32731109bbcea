//! A run on one page: HTML that needs nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zeropilot_lint::{Language, Text};
use zeropilot_record::{Event, Happening, RunInfo, Verdict};
use zeropilot_units::Bytes;

use super::curve::{Line, chart};
use super::{advice, attempt, cause_words, clock, happening};

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// What was asked for.
    pub info: &'a RunInfo,
    /// What became of it.
    pub verdict: Option<&'a Verdict>,
    /// What happened.
    pub events: &'a [Event],
    /// The last lines of the last attempt.
    pub tail: &'a str,
}

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.55 system-ui,sans-serif;max-width:780px;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.35rem}h2{font-size:1.05rem;margin-top:2rem}code,pre{font:12.5px/1.45 ui-monospace,monospace}\
pre{overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;max-height:24rem;padding:.7rem;border:1px solid #8884;border-radius:6px}\
.verdict{padding:.7rem 1rem;border-left:5px solid #dc2626;background:#8881;border-radius:0 6px 6px 0}\
.verdict.good{border-color:#059669}figure{margin:1rem 0}figcaption{font-weight:600}svg{width:100%;height:auto}\
.grid{stroke:#8884}.axis{font-size:11px;fill:currentColor;opacity:.75}.legend{font-size:12.5px;margin:.2rem 0}\
table{border-collapse:collapse;width:100%}td{padding:.15rem .6rem .15rem 0;vertical-align:top}td:first-child{white-space:nowrap;opacity:.75}";

/// Text made harmless in HTML.
pub(super) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            other if crate::escape::is_harmful(other) => {
                // Writing to a string cannot fail.
                let _ = write!(safe, "{}", other.escape_default());
            }
            other => safe.push(other),
        }
    }
    safe
}

/// The page.
pub fn page(page: &Page<'_>, language: Language) -> String {
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let code = if language == Language::Chinese { "zh-CN" } else { "en" };
    let id = html(&page.info.id);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"{code}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{id}</title><style>{STYLE}</style></head><body>\n<h1>{} {id}</h1>\n",
        words("Run", "运行")
    );
    text.push_str(&verdict(page, language));
    let _ = writeln!(text, "<pre>{}</pre>", html(&page.info.command.join(" ")));
    if let Some(verdict) = page.verdict {
        let _ = write!(text, "<h2>{}</h2>\n<ul>", words("Attempts", "各次运行"));
        for one in &verdict.attempts {
            let _ = write!(text, "<li>{}", html(&attempt(one, language)));
            for evidence in &one.evidence {
                let _ = write!(text, "<br><code>{}</code>", html(evidence));
            }
            text.push_str("</li>");
        }
        text.push_str("</ul>\n");
    }
    text.push_str(&curves(page, language));
    text.push_str(&timeline(page, language));
    if !page.tail.trim().is_empty() {
        let head = words("Last lines", "日志末尾");
        let _ = writeln!(text, "<h2>{head}</h2>\n<pre>{}</pre>", html(page.tail));
    }
    text.push_str("</body></html>\n");
    text
}

fn verdict(page: &Page<'_>, language: Language) -> String {
    let Some(verdict) = page.verdict else {
        let words = Text::new("no verdict yet", "尚无结论").get(language);
        return format!("<p class=\"verdict\">{words}</p>\n");
    };
    let good = if verdict.exit_code == 0 { " good" } else { "" };
    let advice = advice(&verdict.cause, language)
        .map_or(String::new(), |advice| format!("<br>{}", html(advice)));
    let seconds = (verdict.ended_at - page.info.started_at).max(0.0) as u64;
    format!(
        "<p class=\"verdict{good}\"><strong>{}</strong> · {}{advice}</p>\n",
        html(&cause_words(&verdict.cause, language)),
        clock(seconds)
    )
}

fn curves(page: &Page<'_>, language: Language) -> String {
    let began = page.info.started_at;
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let mut losses = Vec::new();
    let mut steps = Vec::new();
    let mut memory: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for event in page.events {
        let at = event.at - began;
        match &event.happening {
            Happening::Step { step, loss } => {
                steps.push((at, *step as f64));
                losses.extend(loss.map(|loss| (at, loss)));
            }
            Happening::Memory { ranks } => {
                for rank in ranks {
                    memory.entry(rank.rank).or_default().push((at, rank.rss as f64));
                }
            }
            _ => {}
        }
    }
    let line = |name: &str, points| Line { name: name.to_owned(), points };
    let mut lines: Vec<Line> =
        memory.into_iter().map(|(rank, points)| line(&format!("rank {rank}"), points)).collect();
    let end = page.events.last().map_or(0.0, |event| event.at - began);
    if let Some(predicted) = page.info.predicted {
        let predicted = predicted as f64;
        lines.push(line(words("predicted", "预测"), vec![(0.0, predicted), (end, predicted)]));
    }
    let mut text = String::new();
    text.push_str(&chart("loss", &[line("loss", losses)], end, |value| format!("{value:.3}")));
    text.push_str(&chart(words("step", "步"), &[line("step", steps)], end, |value| {
        format!("{value:.0}")
    }));
    text.push_str(&chart(
        words("memory of the ranks (RSS)", "各 rank 的内存（RSS）"),
        &lines,
        end,
        |value| Bytes(value.max(0.0) as u64).to_string(),
    ));
    text
}

fn timeline(page: &Page<'_>, language: Language) -> String {
    let mut rows = String::new();
    for event in page.events {
        let told = match &event.happening {
            Happening::Fingerprint { line, .. } => Some(line.clone()),
            other => happening(other, language),
        };
        if let Some(told) = told {
            let at = clock((event.at - page.info.started_at).max(0.0) as u64);
            let _ = write!(rows, "<tr><td>{at}</td><td>{}</td></tr>", html(&told));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let head = Text::new("What happened", "经过").get(language);
    format!("<h2>{head}</h2>\n<table>{rows}</table>\n")
}

#[cfg(test)]
mod tests {
    use zeropilot_record::Cause;

    use super::*;

    #[test]
    fn nothing_of_a_log_becomes_markup() {
        let evil = "</pre><script>alert(1)</script>\u{202e}";
        let info = RunInfo {
            shape: 1,
            id: evil.to_owned(),
            command: vec![evil.to_owned()],
            predicted: Some(5),
            ..RunInfo::default()
        };
        let verdict = Verdict::new(evil, Cause::DiskFull, Vec::new(), 9.0);
        let fingerprint =
            Happening::Fingerprint { id: evil.to_owned(), line: evil.to_owned(), rank: None };
        let step = Happening::Step { step: 1, loss: Some(2.0) };
        let events =
            [Event::new(1.0, fingerprint), Event::new(2.0, step.clone()), Event::new(3.0, step)];
        for language in [Language::English, Language::Chinese] {
            let page = page(
                &Page { info: &info, verdict: Some(&verdict), events: &events, tail: evil },
                language,
            );
            assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
            assert!(page.contains("&lt;script&gt;") && page.contains("<polyline"), "{page}");
            assert!(!page.contains("http"), "nothing is fetched from elsewhere");
        }
    }
}
