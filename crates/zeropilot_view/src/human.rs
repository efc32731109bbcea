//! For people: the verdict on a file, then each finding with its place, its reason and its remedy.

mod source;

use annotate_snippets::{Group, Level, Patch, Renderer, Snippet};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::python::{Number, PyValue, python_str};
use zeropilot_config::syntax::Span;
use zeropilot_lint::{Diagnostic, Outcome, Report, ResolvedValues, Safety, Severity, WorldSource};
use zeropilot_text::{Language, Text, tr};

use self::source::Source;
use crate::strategy;
use crate::wrap::wrap;
use crate::{FileResult, Layout, escaped};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;

/// Everything about a file; nothing about an accepted one that the user did not name.
pub(crate) fn file(layout: &Layout, file: &FileResult<'_>) -> String {
    let report = file.report;
    let is_quiet = layout.quiet || !file.is_named && report.fixed.is_empty();
    if report.diagnostics.is_empty() && is_quiet {
        return String::new();
    }
    let mut text = String::new();
    if !layout.quiet {
        text.push_str(&verdict(layout, file));
        text.push('\n');
        text.push_str(&mended(report, layout.language));
        text.push_str(&known(report, layout.language));
    }
    let source = Source::new(file);
    let renderer = if layout.color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(columns(layout));
    for diagnostic in &report.diagnostics {
        text.push_str(&renderer.render(&groups(layout, diagnostic, &source)));
        text.push_str("\n\n");
    }
    text
}

/// The verdict on a file whose findings were told before.
pub(crate) fn repeated(layout: &Layout, file: &FileResult<'_>) -> String {
    if layout.quiet {
        return String::new();
    }
    let same = match file.report.diagnostics.is_empty() {
        true => "",
        false => {
            Text::new("  same findings as above\n\n", "  问题与上面相同\n\n").get(layout.language)
        }
    };
    format!("{}\n{same}", verdict(layout, file))
}

/// What was put right, a line each.
fn mended(report: &Report, language: Language) -> String {
    let word = Text::new("fixed", "已修复").get(language);
    let colon = Text::new(": ", "：").get(language);
    let lines = report.fixed.iter().filter_map(|found| {
        let title = found.fix_title(language)?;
        Some(format!("  {word} {}{colon}{}\n", found.rule.code, escaped(&title)))
    });
    lines.collect()
}

/// How many findings the baseline holds.
fn known(report: &Report, language: Language) -> String {
    match report.known.len() {
        0 => String::new(),
        1 => tr!(language, "  1 finding is in the baseline\n", "  基线中有 1 个问题，不再报告\n"),
        count => tr!(
            language,
            "  {count} findings are in the baseline\n",
            "  基线中有 {count} 个问题，不再报告\n"
        ),
    }
}

/// The head line: what happens to the file, and under which assumptions.
pub(crate) fn verdict(layout: &Layout, file: &FileResult<'_>) -> String {
    let language = layout.language;
    let report = file.report;
    if let Some(headline) = file.headline {
        let colon = Text::new(": ", "：").get(language);
        return format!("{}{colon}{}", escaped(file.name), escaped(headline));
    }
    let word = match report.outcome() {
        Outcome::Runs => Text::new("accepted", "通过"),
        Outcome::Fails => Text::new("loads, but the run fails", "能加载，但训练会失败"),
        Outcome::Rejected => Text::new("rejected", "不通过"),
    };
    let style = match report.outcome() {
        Outcome::Runs => "\u{1b}[1;32m",
        Outcome::Fails | Outcome::Rejected => "\u{1b}[1;31m",
    };
    let word = word.get(language);
    let word = if layout.color { format!("{style}{word}\u{1b}[0m") } else { word.to_owned() };
    let colon = Text::new(": ", "：").get(language);
    let outcome = match &report.resolved {
        Some(values) => tr!(language, ", {}", "，{}", batch(values, report, language)),
        None => tr!(language, ", {}", "，{}", ranks(report, language)),
    };
    format!("{}{colon}{word}{outcome}\n  {}", escaped(file.name), surroundings(report, language))
}

/// "ZeRO stage 3, batch 256 = 2 per GPU × 32 accumulation steps × 4 ranks".
fn batch(values: &ResolvedValues, report: &Report, language: Language) -> String {
    let ranks = ranks(report, language);
    let stage = values.stage;
    let numbers =
        [&values.train_batch_size, &values.micro_batch_size, &values.gradient_accumulation_steps];
    if let [None, Some(micro), Some(steps)] = numbers.map(Option::as_ref)
        && values.shares_samples
    {
        let [micro, steps] = [micro, steps].map(plain);
        let accumulated = strategy::accumulation(&steps);
        return tr!(
            language,
            "ZeRO stage {stage}, {micro} per GPU × {accumulated} × data-parallel ranks set by the script; {ranks} in total",
            "ZeRO stage {stage}，每卡 {micro} × 梯度累积 {steps} × 脚本设定的数据并行数；共 {ranks}"
        );
    }
    let [Some(train), Some(micro), Some(steps)] = numbers.map(Option::as_ref) else {
        return tr!(
            language,
            "ZeRO stage {stage}, batch from the training arguments, {ranks}",
            "ZeRO stage {stage}，batch 由训练参数决定，{ranks}"
        );
    };
    if let Some(interval) = zenflow_interval(values).filter(|interval| *interval != steps) {
        let [micro, interval] = [micro, interval].map(plain);
        let accumulated = strategy::accumulation(&interval);
        return tr!(
            language,
            "ZeRO stage {stage}, {micro} per GPU × {accumulated} (ZenFlow's `update_interval`) × {ranks}",
            "ZeRO stage {stage}，每卡 {micro} × 梯度累积 {interval}（ZenFlow 的 `update_interval`）× {ranks}"
        );
    }
    let ranks = match data_parallel([train, micro, steps], report.world.size) {
        None => ranks,
        Some(parallel) => tr!(
            language,
            "{parallel} data-parallel ranks; {ranks} in total",
            "数据并行 {parallel}；共 {ranks}"
        ),
    };
    let [train, micro, steps] = [train, micro, steps].map(plain);
    let accumulated = strategy::accumulation(&steps);
    tr!(
        language,
        "ZeRO stage {stage}, batch {train} = {micro} per GPU × {accumulated} × {ranks}",
        "ZeRO stage {stage}，batch {train} = 每卡 {micro} × 梯度累积 {steps} × {ranks}"
    )
}

/// The number with which ZenFlow replaces the accumulation steps after DeepSpeed has checked the batch.
fn zenflow_interval(values: &ResolvedValues) -> Option<&PyValue> {
    let interval = values.zero_optimization.get("zenflow")?.get("update_interval")?;
    matches!(interval, PyValue::Int(_)).then_some(interval)
}

/// How many ranks have samples of their own, where these are not all: with sequence parallelism several share one.
fn data_parallel([train, micro, steps]: [&PyValue; 3], world: usize) -> Option<String> {
    let of_a_rank = micro.number()?.multiply(&steps.number()?).ok()?;
    let parallel = Number::Float(train.number()?.true_divide(&of_a_rank).ok()?);
    let is_all = parallel.equals(&Number::from_usize(world));
    (!is_all).then(|| plain(&PyValue::from(parallel)))
}

/// A number as people write it: sequence parallelism makes floats of batch sizes.
fn plain(number: &PyValue) -> String {
    let text = python_str(number);
    match (number, text.strip_suffix(".0")) {
        (PyValue::Float(_), Some(whole)) => whole.to_owned(),
        _ => text,
    }
}

/// "4 ranks", and where the number comes from if nobody said it.
fn ranks(report: &Report, language: Language) -> String {
    let world = report.world.size;
    let source = match report.world.source {
        WorldSource::Given => Text::new("", ""),
        WorldSource::Assumed => Text::new(" (assumed)", "（假定）"),
        WorldSource::Inferred => Text::new(" (from the batch sizes)", "（根据 batch 大小推断）"),
    };
    let source = source.get(language);
    let ranks = if world == 1 { "rank" } else { "ranks" };
    tr!(language, "{world} {ranks}{source}", "{world} 个 rank{source}")
}

/// "for DeepSpeed 0.19.8, read by the HF Trainer (guessed: it contains "auto"), which fills 9 keys at run time".
fn surroundings(report: &Report, language: Language) -> String {
    let front_end = match report.front_end {
        FrontEnd::DeepSpeed => Text::new("read by DeepSpeed itself", "由 DeepSpeed 直接读取"),
        FrontEnd::HfTrainer => Text::new("read by the HF Trainer", "由 HF Trainer 读取"),
        FrontEnd::Accelerate => Text::new("read by accelerate", "由 accelerate 读取"),
    };
    let guess = match (report.front_end_guessed, report.front_end) {
        (false, _) => Text::new("", ""),
        (true, FrontEnd::DeepSpeed) => {
            Text::new(" (guessed: the file has no \"auto\")", "（推测：文件里没有 \"auto\"）")
        }
        (true, _) => {
            Text::new(" (guessed: the file contains \"auto\")", "（推测：文件里有 \"auto\"）")
        }
    };
    let version = report.version.name();
    let (front_end, guess) = (front_end.get(language), guess.get(language));
    let pending = pending(report, language);
    tr!(
        language,
        "for DeepSpeed {version}, {front_end}{guess}{pending}",
        "针对 DeepSpeed {version}，{front_end}{guess}{pending}"
    )
}

fn pending(report: &Report, language: Language) -> String {
    let count = report.pending.len();
    if count == 0 || report.outcome() == Outcome::Rejected {
        return String::new();
    }
    let keys = if count == 1 { "key" } else { "keys" };
    tr!(language, ", which fills {count} {keys} at run time", "，其中 {count} 个键到运行时才填")
}

fn groups<'a>(
    layout: &Layout,
    diagnostic: &'a Diagnostic,
    source: &'a Source<'_>,
) -> Vec<Group<'a>> {
    let language = layout.language;
    let name = match diagnostic.severity {
        Severity::Error => Text::new("error", "错误"),
        Severity::Warning => Text::new("warning", "警告"),
        Severity::Note => Text::new("note", "提示"),
    };
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let message = escaped(&diagnostic.message(language)).into_owned();
    let title = level.with_name(name.get(language)).primary_title(message).id(diagnostic.rule.code);
    let mut group = match source.window(diagnostic, language) {
        Some(snippet) => title.element(snippet),
        None => title.element(source.origin(diagnostic.span)),
    };
    let why = Text::new("why", "原因").get(language);
    let help = Text::new("help", "建议").get(language);
    for (level, name, text) in [
        (Level::NOTE, why, diagnostic.why(language)),
        (Level::HELP, help, diagnostic.help(language)),
    ] {
        let text = wrapped(&escaped(&text), layout, name);
        group = group.element(level.with_name(name).message(text));
    }
    let mut groups = vec![group];
    groups.extend(fix(diagnostic, source, layout));
    groups
}

fn fix<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a Source<'_>,
    layout: &Layout,
) -> Option<Group<'a>> {
    let language = layout.language;
    let fix = diagnostic.fix.as_ref()?;
    let title = diagnostic.fix_title(language)?;
    let note = match fix.safety {
        Safety::Safe => Text::new("", ""),
        Safety::Unsafe => Text::new(
            " (unsafe fix: check that this is what you want)",
            "（不安全修复，请确认是否符合本意）",
        ),
    };
    let title = format!("{}{}", escaped(&title), note.get(language));
    let first = fix.edits.first()?.span.start;
    let last = fix.edits.last()?.span.end;
    let name = Text::new("fix", "修复").get(language);
    let title = Level::HELP.with_name(name).secondary_title(title);
    let window = source.lines(Span::new(first, last)).filter(|window| window.start <= first);
    let window = window.and_then(|window| window.around(fix, columns(layout)));
    let Some(window) = window else { return Some(Group::with_title(title)) };
    let patches = fix.edits.iter().map(|edit| {
        let span = edit.span.start - window.start..edit.span.end - window.start;
        Patch::new(span, edit.text.as_str())
    });
    let snippet = Snippet::source(window.text).line_start(window.line).patches(patches);
    Some(title.element(snippet))
}

/// The text broken into lines that fit beside the margin.
fn wrapped(text: &str, layout: &Layout, name: &str) -> String {
    let margin = 8 + name.chars().count() * 2;
    wrap(text, columns(layout).saturating_sub(margin).max(40))
}

/// Columns that a report may take.
fn columns(layout: &Layout) -> usize {
    layout.width.unwrap_or(WIDTH).clamp(60, 140)
}

#[cfg(test)]
mod tests {
    use zeropilot_lint::{Settings, check};

    use super::*;

    fn line(config: &str, language: Language) -> String {
        let settings = Settings {
            world_size: Some(8),
            front_end: Some(FrontEnd::DeepSpeed),
            ..Settings::default()
        };
        let report = check(config.as_bytes(), &settings);
        batch(report.resolved.as_ref().expect("an accepted config"), &report, language)
    }

    #[test]
    fn batch_sizes_multiply_with_sequence_parallelism() {
        let shared = r#"{"train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 2}"#;
        assert_eq!(
            line(shared, Language::English),
            "ZeRO stage 0, batch 8 = 2 per GPU × 1 accumulation step × 4 data-parallel ranks; 8 ranks in total"
        );
        assert_eq!(
            line(shared, Language::Chinese),
            "ZeRO stage 0，batch 8 = 每卡 2 × 梯度累积 1 × 数据并行 4；共 8 个 rank"
        );
        let alone = r#"{"train_micro_batch_size_per_gpu": 2}"#;
        assert_eq!(
            line(alone, Language::English),
            "ZeRO stage 0, batch 16 = 2 per GPU × 1 accumulation step × 8 ranks"
        );
    }

    #[test]
    fn zenflow_replaces_the_accumulation_steps() {
        let config = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
            "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 2}}}"#;
        assert_eq!(
            line(config, Language::English),
            "ZeRO stage 2, 2 per GPU × 2 accumulation steps (ZenFlow's `update_interval`) × 8 ranks"
        );
        assert_eq!(
            line(
                &config.replace("\"update_interval\": 2", "\"update_interval\": 4"),
                Language::English
            ),
            "ZeRO stage 2, batch 64 = 2 per GPU × 4 accumulation steps × 8 ranks"
        );
    }
}
