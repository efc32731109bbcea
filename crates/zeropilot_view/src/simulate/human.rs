//! The report for people.

use unicode_width::UnicodeWidthStr;
use zeropilot_ask::Bill;
use zeropilot_step::time::{StepTime, Stream};
use zeropilot_step::traffic::Traffic;
use zeropilot_text::{Language, Text, tr};

use super::SimulateReport;
use super::words::{advice, cause};
use crate::memory::bars::bar;
use crate::memory::{batch, headline, own_bounds, task};
use crate::page::ShareWords;
use crate::{Layout, cost, provenance};

/// Columns of the bars.
const BAR: usize = 26;
/// A wait below this share is not worth a word.
const NOTEWORTHY: f64 = 0.1;

/// The report.
pub fn human(report: &SimulateReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let mut text = format!("{}\n", headline(report.name, &report.question, language));
    text.push_str(&format!(
        "  {}{}\n",
        batch(&report.question, language),
        accumulation(report, language)
    ));
    text.push_str(&task::lines(
        report.task,
        &report.question.recipe.task,
        report.question.micro_batch,
        report.frozen,
        language,
    ));
    text.push_str(&network(report, language));
    text.push_str(&room(report, layout));
    text.push('\n');
    text.push_str(&step(report, language));
    text.push('\n');
    text.push_str(&shares(report, language));
    text.push('\n');
    text.push_str(&sent(report.traffic, language));
    text.push_str(&verdict(report, language));
    if let Some(bill) = &report.bill {
        text.push_str(&bill_words(report, bill, language));
    }
    text.push_str(&provenance::below(report.provenance, language));
    text
}

fn accumulation(report: &SimulateReport<'_>, language: Language) -> String {
    match report.program.accumulation {
        1 => String::new(),
        count => {
            tr!(language, ", {count} micro-batches per step", "，每步累积 {count} 个 micro batch")
        }
    }
}

/// That the step cannot be made there, or may not; of processors, what a rank takes of their memory.
fn room(report: &SimulateReport<'_>, layout: &Layout) -> String {
    if let Some(process) = report.process {
        let language = layout.language;
        return tr!(
            language,
            "  host memory of a rank: {process}\n",
            "  每个 rank 的主机内存：{process}\n"
        );
    }
    let Some(fit) = report.fit.filter(|fit| !fit.is_safe()) else { return String::new() };
    let (start, end) = if layout.color { (fit.style(), "\u{1b}[0m") } else { ("", "") };
    let (language, words) = (layout.language, fit.words(layout.language));
    tr!(
        language,
        "  {start}{words} in memory{end}: the times below assume that the run fits; `zeropilot memory` shows how much memory is missing\n",
        "  {start}{words}{end}：下面的用时假设放得下；差多少请看 `zeropilot memory`\n"
    )
}

fn network(report: &SimulateReport<'_>, language: Language) -> String {
    let Some(network) = report.network else { return String::new() };
    let rate = rate(network.gb_s());
    match network.stated {
        true => tr!(
            language,
            "  nodes linked by {network}, {rate} GB/s each\n",
            "  节点间网络 {network}，每节点 {rate} GB/s\n"
        ),
        false => tr!(
            language,
            "  nodes linked by {network}, {rate} GB/s each (assumed; set yours with --network)\n",
            "  节点间网络按 {network}（每节点 {rate} GB/s）估算，可用 --network 指定\n"
        ),
    }
}

/// "1.25", "12.5", "400".
fn rate(gigabytes: f64) -> String {
    ((gigabytes * 100.0).round() / 100.0).to_string()
}

/// "1.23 s", "45.6 ms", "33.6 d".
pub(crate) fn seconds(value: f64) -> String {
    const HOUR: f64 = 3600.0;
    match value {
        value if value >= 48.0 * HOUR => format!("{} d", short(value / (24.0 * HOUR))),
        value if value >= 2.0 * HOUR => format!("{:.1} h", value / HOUR),
        value if value >= 600.0 => format!("{:.1} min", value / 60.0),
        value if value >= 100.0 => format!("{value:.0} s"),
        value if value >= 1.0 => format!("{value:.2} s"),
        value if value >= 1e-3 => format!("{:.1} ms", value * 1e3),
        value => format!("{:.0} µs", value * 1e6),
    }
}

/// The same in a sentence: "1.23 s", "1.23 秒".
pub(crate) fn duration(value: f64, language: Language) -> String {
    let text = seconds(value);
    if language == Language::English {
        return text;
    }
    let (number, unit) = text.rsplit_once(' ').unwrap_or((&text, "s"));
    let unit = match unit {
        "d" => "天",
        "h" => "小时",
        "min" => "分钟",
        "s" => "秒",
        "ms" => "毫秒",
        _ => "微秒",
    };
    format!("{number} {unit}")
}

/// One decimal where it says something.
fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value) }
}

/// "12,345".
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn step(report: &SimulateReport<'_>, language: Language) -> String {
    let time = &report.time.expected;
    let words = |value| duration(value, language);
    let (low, high) = (words(report.time.best.total), words(report.time.worst.total));
    let total = words(time.total);
    let [forward, backward, update] = [time.forward, time.backward, time.step].map(words);
    let all = report.tokens() / time.total;
    let (all, each) = (grouped(all), grouped(all / report.program.ranks as f64));
    let rate = time.model_rate() / 1e12;
    let (mfu, hfu) = (time.mfu * 100.0, time.hfu * 100.0);
    let phases = tr!(
        language,
        "Step: {total} ({low} to {high}), with forward {forward}, backward {backward}, optimizer step {update}\n",
        "每步：{total}（{low} 到 {high}），其中前向 {forward}，反向 {backward}，参数更新 {update}\n"
    );
    // Processors have no data sheet that a share could be of.
    let rates = match report.question.cluster.computes_on_host() {
        true => tr!(
            language,
            "  {all} tokens/s in total, {each} per rank\n",
            "  总计 {all} token/s，每个 rank {each}\n"
        ),
        false => tr!(
            language,
            "  {all} tokens/s in total, {each} per GPU; {rate:.0} TFLOPS per GPU, MFU {mfu:.0}%, HFU {hfu:.0}%\n",
            "  总计 {all} token/s，每卡 {each}；每卡 {rate:.0} TFLOPS，MFU {mfu:.0}%，HFU {hfu:.0}%\n"
        ),
    };
    let own = report.time.own.map(|own| format!("  {}\n", own_bounds(own, language)));
    phases + &rates + &own.unwrap_or_default()
}

/// Kernels, then what they wait for, the longest first, in seconds.
fn causes(report: &SimulateReport<'_>, language: Language) -> Vec<(&'static str, f64)> {
    let time = &report.time.expected;
    let kernels = match report.question.cluster.computes_on_host() {
        true => Text::new("kernels", "计算"),
        false => Text::new("kernels on the GPU", "GPU 计算"),
    };
    let kernels = kernels.get(language);
    let mut rows = vec![(kernels, time.busy(Stream::Compute))];
    rows.extend(
        time.causes().into_iter().map(|(reason, wait)| (cause(reason).get(language), wait)),
    );
    rows
}

/// Where the time goes, for pages that lay it out themselves.
pub fn share_words(report: &SimulateReport<'_>, language: Language) -> Vec<ShareWords> {
    let total = report.time.expected.total;
    let row = |(words, value)| ShareWords { words, time: seconds(value), share: value / total };
    causes(report, language).into_iter().map(row).collect()
}

fn shares(report: &SimulateReport<'_>, language: Language) -> String {
    let time = &report.time.expected;
    let rows = causes(report, language);
    let widest = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut text = tr!(
        language,
        "Time of a step (all rows except kernels are waiting time):\n",
        "每步的时间构成（除计算外都是等待时间）：\n"
    );
    for (name, value) in rows {
        let padding = " ".repeat(widest - name.width());
        let share = 100.0 * value / time.total;
        // A bar is drawn in whole microseconds.
        let drawn = bar(micros(value), micros(time.total), BAR);
        text.push_str(&format!("  {name}{padding}  {drawn} {:>9} {share:>5.0}%\n", seconds(value)));
    }
    text
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time per step")]
fn micros(value: f64) -> u64 {
    (value * 1e6) as u64
}

/// "12.3 GB".
pub(crate) fn gigabytes(bytes: u64) -> String {
    let value = bytes as f64 / 1e9;
    if value >= 100.0 { format!("{value:.0} GB") } else { format!("{value:.1} GB") }
}

/// What a GPU sends in a step, and with which calls.
pub fn sent(traffic: &Traffic, language: Language) -> String {
    let calls: Vec<String> = traffic
        .calls
        .iter()
        .filter(|(_, total)| total.bytes > 1_000_000)
        .map(|((kind, ranks), total)| {
            tr!(
                language,
                (
                    "{} over {ranks} {}: {} in {} {}",
                    kind.name(),
                    if *ranks == 1 { "rank" } else { "ranks" },
                    gigabytes(total.bytes),
                    total.calls,
                    if total.calls == 1 { "call" } else { "calls" }
                ),
                (
                    "{} 个 rank 的 {}：{}，{} 次调用",
                    ranks,
                    kind.name(),
                    gigabytes(total.bytes),
                    total.calls
                )
            )
        })
        .collect();
    let mut text =
        tr!(language, "Each GPU sends {} per step\n", "每卡每步发送 {}\n", gigabytes(traffic.sent));
    calls.iter().for_each(|call| text.push_str(&format!("  {call}\n")));
    if traffic.to_device + traffic.to_host > 0 {
        let (to, from) = (gigabytes(traffic.to_device), gigabytes(traffic.to_host));
        text.push_str(&tr!(
            language,
            "  host to GPU {to}, GPU to host {from}\n",
            "  主机到 GPU {to}，GPU 到主机 {from}\n"
        ));
    }
    text
}

/// The longest wait, and what would help.
pub fn verdict(report: &SimulateReport<'_>, language: Language) -> String {
    let time: &StepTime = &report.time.expected;
    // What helps is about GPUs.
    if report.question.cluster.computes_on_host() {
        return String::new();
    }
    let Some(&(longest, wait)) = time.causes().first() else { return String::new() };
    let share = wait / time.total;
    if share < NOTEWORTHY {
        return tr!(
            language,
            "\nThe GPU spends almost no time waiting.\n",
            "\nGPU 几乎没有等待时间。\n"
        );
    }
    let (name, help) = (cause(longest).get(language), advice(report, longest).get(language));
    let percent = share * 100.0;
    tr!(
        language,
        "\nKernels wait {percent:.0}% of the step for {name}: {help}.\n",
        "\n一步里有 {percent:.0}% 的时间在等待：{name}。{help}。\n"
    )
}

/// What it takes to finish, if that was asked.
pub fn bill(report: &SimulateReport<'_>, language: Language) -> Option<String> {
    report.bill.as_ref().map(|bill| bill_words(report, bill, language).trim().to_owned())
}

fn bill_words(report: &SimulateReport<'_>, bill: &Bill, language: Language) -> String {
    let tokens = token_words(bill.tokens, language);
    let cost = cost::words(report.gpu_hours(bill), report.program.ranks, bill, language);
    tr!(language, "\n{tokens}: {cost}\n", "\n{tokens}：{cost}\n")
}

/// "10 billion tokens", with as many decimals as say something.
pub(crate) fn token_words(tokens: f64, language: Language) -> String {
    let (count, unit) = match (language, tokens) {
        (Language::English, ..1e9) => (tokens / 1e6, "million tokens"),
        (Language::English, ..1e12) => (tokens / 1e9, "billion tokens"),
        (Language::English, _) => (tokens / 1e12, "trillion tokens"),
        (Language::Chinese, ..1e8) => (tokens / 1e4, "万 token"),
        (Language::Chinese, ..1e12) => (tokens / 1e8, "亿 token"),
        (Language::Chinese, _) => (tokens / 1e12, "万亿 token"),
    };
    format!("{} {unit}", (count * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(seconds(0.000_042), "42 µs");
        assert_eq!(seconds(0.0456), "45.6 ms");
        assert_eq!(seconds(1.234), "1.23 s");
        assert_eq!(seconds(345.6), "346 s");
        assert_eq!(seconds(2700.0), "45.0 min");
        assert_eq!(seconds(90_000.0), "25.0 h");
        // 2,899,462 s / 86,400 s.
        assert_eq!(seconds(2_899_462.0), "33.6 d");
        assert_eq!(duration(90_000.0, Language::English), "25.0 h");
        assert_eq!(duration(90_000.0, Language::Chinese), "25.0 小时");
        assert_eq!(duration(0.000_042, Language::Chinese), "42 微秒");
        assert_eq!([1.25, 12.5, 400.0].map(rate), ["1.25", "12.5", "400"]);
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(12.0), "12");
        assert_eq!(gigabytes(12_340_000_000), "12.3 GB");
    }
}
