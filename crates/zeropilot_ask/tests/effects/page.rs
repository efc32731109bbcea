//! `docs/reference/effects.md`: every key and what becomes of it, in both languages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use zeropilot_config::keys::{self, Unit};
use zeropilot_text::{Language, Text, tr};

use crate::judge::{Case, Measured, NEAR, Verdict, knowledge};

/// Keys that no run tries, and why: a line of `knowledge/effects/not_run.json`.
#[derive(Deserialize)]
pub(crate) struct NotRun {
    /// Keys, or a section with `.*`.
    pub(crate) keys: Vec<String>,
    en: String,
    zh: String,
}

impl NotRun {
    pub(crate) fn all() -> Vec<Self> {
        knowledge("effects/not_run.json")
    }

    pub(crate) fn names(&self, key: &str) -> bool {
        self.keys.iter().any(|name| match name.strip_suffix('*') {
            Some(section) => key.starts_with(section),
            None => key == name,
        })
    }

    fn words(&self, language: Language) -> &str {
        match language {
            Language::English => &self.en,
            Language::Chinese => &self.zh,
        }
    }
}

/// The keys of the newest engine that take a value.
pub(crate) fn all_keys() -> impl Iterator<Item = &'static str> {
    keys::all().filter(|(_, text)| text.unit != Unit::Section).map(|(path, _)| path)
}

/// A table of the page: which verdicts it has, its heading, what it says about a row.
type Table = (fn(&Verdict) -> bool, Text, Text);

const TABLES: [Table; 5] = [
    (
        |verdict| matches!(verdict, Verdict::Exact),
        Text::new("Modeled exactly", "完全一致"),
        Text::new(
            "The prediction changes by the same bytes and the same calls as the run.",
            "预测与实际运行的字节数、通信调用变化完全相同。",
        ),
    ),
    (
        |verdict| matches!(verdict, Verdict::Within(_)),
        Text::new("Modeled closely", "基本一致"),
        Text::new(
            "The calls are the same; the bytes differ by this share of the rank's peak.",
            "通信调用相同；表中是字节数的误差，以占相应 rank 峰值的百分比表示。",
        ),
    ),
    (
        |verdict| matches!(verdict, Verdict::NoEffect),
        Text::new("No effect", "没有影响"),
        Text::new(
            "Neither the run nor the prediction changes by a byte or a call.",
            "实际运行和预测的字节数、通信调用都不变。",
        ),
    ),
    (
        |verdict| matches!(verdict, Verdict::Named { .. }),
        Text::new("Not modeled, and named", "未建模，回答中会指出"),
        Text::new(
            "The prediction does not include the effect of these keys. Every answer for such a config names the key. The last column shows how much more memory a step needed than predicted.",
            "预测没有计入这些键的影响；凡是用到这类配置的回答都会注明。最后一列：一步的实际占用比预测高多少。",
        ),
    ),
    (
        |verdict| matches!(verdict, Verdict::Refused { .. }),
        Text::new("Rejected by DeepSpeed", "DeepSpeed 不接受"),
        Text::new(
            "DeepSpeed stops with this error on CPU ranks, so there is nothing to compare.",
            "取下表中的值时，DeepSpeed 在 CPU 上报错退出（错误见最后一列），没有可比较的数据。",
        ),
    ),
];

fn detail(case: &Case, verdict: &Verdict, language: Language) -> String {
    match verdict {
        Verdict::Within(percent) => format!("{:.3}%", percent.max(0.001)),
        Verdict::Named { notes, .. } => {
            let words = notes.iter().map(|note| match language {
                Language::English => note.en.as_str(),
                Language::Chinese => note.zh.as_str(),
            });
            words.collect::<Vec<_>>().join(Text::new("; ", "；").get(language))
        }
        Verdict::Refused { .. } => format!("`{}`", case.refused.as_deref().unwrap_or_default()),
        Verdict::NoEffect | Verdict::Exact | Verdict::Silent(_) => String::new(),
    }
}

/// What a table says about a key: its values, how many runs, and what they have in common.
#[derive(Default)]
struct Row {
    values: Vec<String>,
    runs: usize,
    detail: String,
    /// Least and most percent that a step needed more than predicted.
    more: Option<(f64, f64)>,
}

fn rows<'a>(
    judged: &'a [(&Case, Verdict)],
    is_here: fn(&Verdict) -> bool,
    language: Language,
) -> BTreeMap<&'a str, Row> {
    let mut rows = BTreeMap::<&str, Row>::new();
    for (case, verdict) in judged.iter().filter(|(_, verdict)| is_here(verdict)) {
        let row = rows.entry(&case.key).or_default();
        let value = format!("`{}`", case.value);
        if !row.values.contains(&value) {
            row.values.push(value);
        }
        row.runs += 1;
        if let Verdict::Named { more, .. } = verdict {
            let (least, most) = row.more.unwrap_or((*more, *more));
            row.more = Some((least.min(*more), most.max(*more)));
        }
        // Percentages have the same width, so that the largest is the last.
        row.detail = detail(case, verdict, language).max(std::mem::take(&mut row.detail));
    }
    rows
}

pub(crate) fn page(
    measured: &Measured,
    judged: &[(&Case, Verdict)],
    not_run: &[NotRun],
    language: Language,
) -> String {
    let (engine, runs) = (&measured.versions["deepspeed"], judged.len());
    let mut text = tr!(
        language,
        "# Effect of every key\n\nDeepSpeed {engine} trained small models on two CPU ranks with and without each key, in {runs} runs. \
         The tests compare the bytes that each rank stored and the calls that it made with the prediction for the same config. \
         If a key changes either, the prediction must change by the same amount, within {NEAR}%, or the answer must name the \
         key as not modeled.\n\n\
         Generated by `cargo test -p zeropilot_ask --test effects` with `ZEROPILOT_UPDATE_DOCS=1` from \
         `knowledge/effects`, which `oracle/measure/effects.py` measures.\n",
        "# 每个键的影响\n\nDeepSpeed {engine} 在两个 CPU rank 上训练小模型，每个键都分别在设置和不设置时运行，共 {runs} 次。\
         测试把各 rank 占用的字节和发出的通信调用，与同一份配置的预测比较：键若改变了其中任何一项，\
         预测必须同样改变（误差不超过 {NEAR}%），否则回答必须注明该键未建模。\n\n\
         本页由 `cargo test -p zeropilot_ask --test effects` 在 `ZEROPILOT_UPDATE_DOCS=1` 下根据 \
         `knowledge/effects` 生成；测量程序是 `oracle/measure/effects.py`。\n"
    );
    let by_table = TABLES.map(|(is_here, ..)| rows(judged, is_here, language));
    let is_run = |key: &str| judged.iter().any(|(case, _)| case.key == key);
    let not_tried = all_keys().filter(|key| !is_run(key)).count();
    let silent = judged.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Silent(_))).count();
    let _ = write!(
        text,
        "\n{}\n| --- | ---: | ---: |\n",
        Text::new("| result | keys | runs |", "| 结果 | 键 | 运行 |").get(language)
    );
    for ((_, title, _), rows) in TABLES.iter().zip(&by_table) {
        let runs: usize = rows.values().map(|row| row.runs).sum();
        let _ = writeln!(text, "| {} | {} | {runs} |", title.get(language), rows.len());
    }
    let not_run_title = Text::new("Not run", "未运行").get(language);
    let _ = writeln!(text, "| {not_run_title} | {} | |", not_tried);
    let _ = writeln!(
        text,
        "| {} | {silent} | {silent} |",
        Text::new("Neither modeled nor named", "既未计入也未指出").get(language)
    );
    for ((_, title, about), rows) in TABLES.iter().zip(&by_table) {
        let _ = write!(text, "\n## {}\n\n{}\n\n", title.get(language), about.get(language));
        table(&mut text, rows, language);
    }
    let _ = write!(text, "\n## {not_run_title}\n\n");
    for why in not_run {
        let keys: Vec<String> = why.keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = keys.join(Text::new(", ", "、").get(language));
        let words = why.words(language);
        let _ = writeln!(text, "{}", tr!(language, "- {keys}: {words}", "- {keys}：{words}"));
    }
    text
}

fn table(text: &mut String, rows: &BTreeMap<&str, Row>, language: Language) {
    let has_detail = rows.values().any(|row| !row.detail.is_empty());
    let columns = Text::new("| key | values | runs |", "| 键 | 取值 | 运行 |").get(language);
    let has_more = rows.values().any(|row| row.more.is_some());
    let (more, line) = match (has_detail, has_more) {
        (_, true) => (" | |", " --- | --- |"),
        (true, false) => (" |", " --- |"),
        (false, false) => ("", ""),
    };
    let _ = writeln!(text, "{columns}{more}\n| --- | --- | ---: |{line}");
    for (key, row) in rows {
        let values = row.values.join(Text::new(", ", "、").get(language));
        let detail = if has_detail { format!(" {} |", row.detail) } else { String::new() };
        let more = row.more.map_or_else(String::new, |(least, most)| {
            let (least, most) = (signed(least), signed(most));
            tr!(language, " {least} to {most} |", " {least} 至 {most} |")
        });
        let _ = writeln!(text, "| `{key}` | {values} | {} |{detail}{more}", row.runs);
    }
}

/// A percentage with its sign; nothing has none.
fn signed(percent: f64) -> String {
    if percent.abs() < 0.05 { "0.0%".to_owned() } else { format!("{percent:+.1}%") }
}
