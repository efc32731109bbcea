//! A run on one page: HTML that needs nothing else.

mod compared;
mod curve;
mod figures;
mod measures;
mod next_time;
mod style;

use std::fmt::Write as _;

use zeropilot_record::{Event, RunEvent, RunInfo, Verdict};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use self::figures::figures;
use self::measures::Measures;
use self::style::STYLE;
use super::ending::loss_words;
use super::watch::words;
use super::{attempt, cause_words, clock, evidence};

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
    /// Whether it has no verdict and nobody supervises it any more.
    pub is_lost: bool,
}

/// Text made harmless in HTML, with its lines and tabs.
pub(super) fn html(text: &str) -> String {
    let harmless = |piece: &str| {
        let words = piece.strip_suffix(['\n', '\t']).unwrap_or(piece);
        crate::html::text(words) + &piece[words.len()..]
    };
    text.split_inclusive(['\n', '\t']).map(harmless).collect()
}

/// The page.
pub fn page(page: &Page<'_>, language: Language) -> String {
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let code = if language == Language::Chinese { "zh-CN" } else { "en" };
    let id = html(&page.info.id);
    let measures = Measures::of(page.info, page.events);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"{code}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{id}</title><style>{STYLE}</style></head><body>\n<h1>{} {id}</h1>\n",
        words("Run", "运行")
    );
    text.push_str(&verdict(page, language));
    text.push_str(&facts(page, &measures, language));
    let wishes = next_time::wishes(page, &measures, language);
    if !wishes.is_empty() {
        let head = words("Changes for the next run", "下次运行的改进建议");
        let _ = write!(text, "<h2>{head}</h2>\n<ul>");
        for wish in wishes {
            let _ = write!(text, "<li>{}</li>", html(&wish));
        }
        text.push_str("</ul>\n");
    }
    text.push_str(&compared::table(page, language));
    text.push_str(&figures(page, &measures, language));
    text.push_str(&attempts(page, language));
    text.push_str(&timeline(page, language));
    let head = words("Command", "命令");
    let _ = writeln!(text, "<h2>{head}</h2>\n<pre>{}</pre>", html(&page.info.command.join(" ")));
    if !page.tail.trim().is_empty() {
        let head = words("Last lines of the log", "日志末尾");
        let _ = writeln!(text, "<h2>{head}</h2>\n<pre>{}</pre>", html(page.tail.trim_end()));
    }
    let _ = writeln!(text, "<footer>zeropilot {}</footer>", html(&page.info.zeropilot));
    text.push_str("</body></html>\n");
    text
}

fn verdict(page: &Page<'_>, language: Language) -> String {
    let Some(verdict) = page.verdict else {
        let words = match page.is_lost {
            true => Text::new(
                "lost: zeropilot was killed or the machine went down, so the record has no result",
                "已丢失：zeropilot 被杀死或机器宕机，记录里没有结果",
            ),
            false => Text::new("no verdict yet", "尚无结论"),
        };
        let words = words.get(language);
        return format!("<p class=\"verdict open\"><strong>{words}</strong></p>\n");
    };
    let good = if verdict.exit_code == 0 { " good" } else { "" };
    let code = tr!(language, "exit code {}", "退出码 {}", verdict.exit_code);
    format!(
        "<p class=\"verdict{good}\"><strong>{}</strong> · {code}</p>\n",
        html(&cause_words(&verdict.cause, language)),
    )
}

/// The numbers one looks for first.
fn facts(page: &Page<'_>, measures: &Measures, language: Language) -> String {
    let name = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let by_clock = |verdict: &Verdict| verdict.ended_at - page.info.started_at;
    let took = |verdict: &Verdict| verdict.seconds.unwrap_or_else(|| by_clock(verdict));
    let until = page.verdict.map(took);
    let last_loss = page.verdict.and_then(Verdict::last_loss).or(measures.last_loss);
    let mean = |points: &[(f64, f64)]| {
        let sum: f64 = points.iter().map(|point| point.1).sum();
        (!points.is_empty()).then(|| sum / points.len() as f64)
    };
    let counted = page.info.tokens_per_step.is_some();
    let memory = measures.fullest().map(|(rank, bytes)| format!("{} (rank {rank})", Bytes(bytes)));
    let on_gpus = !measures.on_gpu.is_empty();
    let most = if on_gpus {
        name("peak GPU memory", "显存峰值")
    } else {
        name("peak host memory", "主机内存峰值")
    };
    let attempts = page.verdict.map(|verdict| verdict.attempts.as_slice()).unwrap_or_default();
    let seconds: f64 = attempts.iter().map(|attempt| attempt.seconds).sum();
    let gpus = page.info.world_size.filter(|_| on_gpus && seconds > 0.0);
    let gpu_hours = gpus.map(|gpus| gpus as f64 * seconds / 3600.0);
    let saved = page.verdict.and_then(|verdict| verdict.checkpoint.as_ref());
    let saved = saved.map(|saved| {
        let step = saved.step;
        let step = tr!(language, "step {step}", "第 {step} 步");
        format!("{step} · {}", saved.path)
    });
    let versions: Vec<String> =
        page.info.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let facts = [
        (name("duration", "用时"), Some(clock(until.unwrap_or(measures.end).max(0.0) as u64))),
        (name("machine", "机器"), page.info.host.clone()),
        (
            name("versions", "版本"),
            Some(versions.join(", ")).filter(|versions| !versions.is_empty()),
        ),
        (name("ranks", "总卡数"), page.info.world_size.map(|ranks| ranks.to_string())),
        (name("last step", "最后一步"), measures.last_step.map(|step| step.to_string())),
        (name("last loss", "最后的 loss"), last_loss.map(loss_words)),
        (
            name("mean speed", "平均速度"),
            mean(&measures.rates).map(|rate| words::rate(rate, language)),
        ),
        (
            name("mean throughput", "平均吞吐"),
            mean(&measures.tokens)
                .map(|rate| words::tokens_at(rate, counted, language).replace("<=", "≤ ")),
        ),
        (most, memory),
        (name("GPU hours", "GPU 小时"), gpu_hours.map(|hours| format!("{hours:.1}"))),
        (name("newest checkpoint", "最新的 checkpoint"), saved),
        (name("config", "配置"), page.info.config.clone()),
        (
            name("predicted per GPU", "单卡预测值"),
            page.info.predicted.map(|bytes| Bytes(bytes).to_string()),
        ),
    ];
    let mut text = "<dl class=\"facts\">".to_owned();
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = write!(text, "<div><dt>{name}</dt><dd>{}</dd></div>", html(&value));
        }
    }
    text + "</dl>\n"
}

fn attempts(page: &Page<'_>, language: Language) -> String {
    let attempts = page.verdict.map(|verdict| verdict.attempts.as_slice()).unwrap_or_default();
    if attempts.is_empty() {
        return String::new();
    }
    let head = Text::new("Attempts", "各次尝试").get(language);
    let mut text = format!("<h2>{head}</h2>\n<ul class=\"attempts\">");
    for one in attempts {
        let _ = write!(text, "<li>{}", html(&attempt(one, language)));
        for told in &one.evidence {
            let _ = write!(text, "<br><code>{}</code>", html(&evidence::words(told, language)));
        }
        text.push_str("</li>");
    }
    text + "</ul>\n"
}

fn timeline(page: &Page<'_>, language: Language) -> String {
    let mut rows = String::new();
    for event in page.events {
        let Some(told) = words::told(&event.happening, language) else { continue };
        let at = clock((event.at - page.info.started_at).max(0.0) as u64);
        let is_log = matches!(event.happening, RunEvent::Fingerprint { .. });
        let class = if is_log { " class=\"log\"" } else { "" };
        let _ = write!(rows, "<tr><td>{at}</td><td{class}>{}</td></tr>", html(&told));
    }
    if rows.is_empty() {
        return rows;
    }
    let head = Text::new("Events", "事件").get(language);
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
            RunEvent::Fingerprint { id: evil.to_owned(), line: evil.to_owned(), rank: None };
        let step = RunEvent::Step { step: 1, loss: Some(2.0) };
        let events =
            [Event::new(1.0, fingerprint), Event::new(2.0, step.clone()), Event::new(3.0, step)];
        for language in [Language::English, Language::Chinese] {
            let page = page(
                &Page {
                    info: &info,
                    verdict: Some(&verdict),
                    events: &events,
                    tail: evil,
                    is_lost: false,
                },
                language,
            );
            assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
            assert!(page.contains("&lt;script&gt;") && page.contains("<polyline"), "{page}");
            assert!(!page.contains("http"), "nothing is fetched from elsewhere");
        }
    }

    /// Healthy losses, and then none: the page must not show the last healthy one as the last.
    #[test]
    fn a_loss_that_became_nan_is_the_last_loss() {
        let info = RunInfo::default();
        let happened = [
            RunEvent::Step { step: 7, loss: Some(3.8) },
            RunEvent::Step { step: 10, loss: None },
            RunEvent::NotFinite { since: Some(8) },
        ];
        let events = happened.map(|happening| Event::new(1.0, happening));
        let page = Page { info: &info, verdict: None, events: &events, tail: "", is_lost: false };
        let page = super::page(&page, Language::English);
        assert!(
            page.contains("<dt>last loss</dt><dd>NaN</dd>") && !page.contains("3.8000</dd>"),
            "{page}"
        );
    }

    /// A restart makes steps 3 and 4 again: joined to one line, that would look as if the loss went up.
    #[test]
    fn losses_of_attempts_are_lines_of_their_own_over_steps() {
        let info = RunInfo::default();
        let start = |attempt| {
            let strategy = zeropilot_record::Setup::AsGiven;
            RunEvent::AttemptStarted { attempt, strategy, pid: 1 }
        };
        let step = |step| RunEvent::Step { step, loss: Some(4.0 / step as f64) };
        let happened = [start(1), step(2), step(3), step(4), start(2), step(3), step(4), step(8)];
        let events: Vec<Event> = (0..)
            .zip(happened)
            .map(|(at, happening)| Event::new(f64::from(at), happening))
            .collect();
        let page = Page { info: &info, verdict: None, events: &events, tail: "", is_lost: false };
        let page = super::page(&page, Language::English);
        let (_, figure) = page.split_once("loss over steps</figcaption>").expect("a figure");
        let wide = figure.split("</svg>").next().expect("a drawing");
        let lines: Vec<usize> = wide
            .split("<polyline points=\"")
            .skip(1)
            .map(|line| line.split('"').next().unwrap_or_default().split(' ').count())
            .collect();
        assert_eq!(lines, [3, 3], "{wide}");
        assert!(wide.contains(">4</text>") && wide.contains(">8</text>"), "the axis: {wide}");
    }

    #[test]
    fn a_lost_run_is_called_lost_and_a_clock_that_was_set_changes_no_duration() {
        let info = RunInfo { started_at: 100_000.0, ..RunInfo::default() };
        let verdict =
            Verdict::new("a", Cause::DiskFull, Vec::new(), 100_000.0 + 86_400.0).after(8.0);
        let page = |verdict: Option<&Verdict>, is_lost| {
            let page = Page { info: &info, verdict, events: &[], tail: "", is_lost };
            super::page(&page, Language::English)
        };
        assert!(page(None, true).contains("lost: zeropilot was killed"));
        assert!(page(None, false).contains("no verdict yet"));
        assert!(page(Some(&verdict), false).contains("<dd>0:08</dd>"));
    }
}
