//! The end of a run on a terminal: why it ended, how far it came, and what to do now.

use zeropilot_record::{Cause, Evidence, RunInfo, Verdict};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::{advice_after, cause_words, clock, evidence};
use crate::escaped;

/// A run that ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// What was asked for.
    pub info: &'a RunInfo,
    /// What became of it.
    pub verdict: &'a Verdict,
    /// Where its record is.
    pub directory: &'a str,
    /// The command that writes its page.
    pub report: &'a str,
    /// The command that goes on with it, if there is something to go on from.
    pub resume: Option<&'a str>,
}

/// The end of a run.
pub fn verdict(ended: &Ended<'_>, language: Language) -> String {
    let verdict = ended.verdict;
    let cause = cause_words(&verdict.cause, language);
    let id = escaped(&verdict.id);
    let mut lines = vec![tr!(language, "run {id}: {cause}", "运行 {id}：{cause}")];
    let last = verdict.attempts.last();
    let told = last.map(|attempt| attempt.evidence.as_slice()).unwrap_or_default();
    let is_told = |one: &&Evidence| match verdict.cause {
        // That it completed is what everything else shows.
        Cause::Completed => matches!(one, Evidence::NormNotFiniteSince(_)),
        // The checkpoint has a line of its own.
        _ => verdict.checkpoint.is_none() || !matches!(one, Evidence::ResumableFrom { .. }),
    };
    for one in told.iter().filter(is_told) {
        lines.push(format!("  - {}", escaped(&evidence::words(one, language))));
    }
    // Where ranks stood explains more than what hangs have in common.
    let is_explained = told.iter().any(|evidence| matches!(evidence, Evidence::Hang(_)));
    let advice = advice_after(ended.info, verdict, language);
    if let Some(advice) = advice.filter(|_| !is_explained) {
        lines.push(line(Text::new("help: ", "建议："), &advice, language));
    }
    if !verdict.attempts.is_empty() {
        lines.push(format!("  {}", progress(ended, language)));
    }
    lines.extend(memory(ended, language));
    lines.extend(checkpoint(verdict, language));
    if let Some(resume) = ended.resume {
        lines.push(line(Text::new("continue: ", "续训："), &escaped(resume), language));
    }
    if !verdict.attempts.is_empty() {
        lines.push(line(Text::new("report: ", "报告："), &escaped(ended.report), language));
    }
    lines.push(line(Text::new("record: ", "记录："), &escaped(ended.directory), language));
    lines.join("\n")
}

fn line(head: Text, rest: &str, language: Language) -> String {
    format!("  {}{rest}", head.get(language))
}

/// How far it came: `step 12/12 · loss 2.3412 · duration 1:02:03 · 2 attempts`.
fn progress(ended: &Ended<'_>, language: Language) -> String {
    let verdict = ended.verdict;
    let (step, total) = verdict.steps();
    let total = total.or(ended.info.total_steps);
    let mut parts = Vec::new();
    if let Some(step) = step {
        let of = total.map_or(String::new(), |total| format!("/{total}"));
        parts.push(tr!(language, "step {step}{of}", "第 {step}{of} 步"));
    }
    parts.extend(verdict.last_loss().map(|loss| format!("loss {}", loss_words(loss))));
    let seconds = verdict.seconds.unwrap_or(verdict.ended_at - ended.info.started_at);
    let time = clock(seconds.max(0.0) as u64);
    parts.push(tr!(language, "duration {time}", "用时 {time}"));
    let attempts = verdict.attempts.len();
    if attempts > 1 {
        parts.push(tr!(language, "{attempts} attempts", "共 {attempts} 次尝试"));
    }
    parts.join(" · ")
}

/// A loss as people read it.
pub fn loss_words(loss: f64) -> String {
    if loss.is_finite() { format!("{loss:.4}") } else { "NaN".to_owned() }
}

/// What the fullest rank needed, against the prediction for the same config.
fn memory(ended: &Ended<'_>, language: Language) -> Option<String> {
    let attempts = ended.verdict.attempts.iter().rev();
    let mut measured =
        attempts.filter(|attempt| attempt.measured.device.or(attempt.measured.resident).is_some());
    let attempt = measured.next()?;
    let (what, bytes) = match (attempt.measured.device, attempt.measured.resident) {
        (Some(bytes), _) => (Text::new("peak GPU memory of a rank", "单个 rank 的显存峰值"), bytes),
        (None, Some(bytes)) => (
            Text::new("peak host memory of a rank (RSS)", "单个 rank 的主机内存峰值（RSS）"),
            bytes,
        ),
        (None, None) => return None,
    };
    let (what, bytes) = (what.get(language), Bytes(bytes));
    let predicted = ended.info.predicted.filter(|_| attempt.strategy.is_as_given()).map(Bytes);
    Some(match predicted {
        Some(predicted) => tr!(
            language,
            "  {what}: {bytes}, predicted {predicted}",
            "  {what}：{bytes}，预测 {predicted}"
        ),
        None => tr!(language, "  {what}: {bytes}", "  {what}：{bytes}"),
    })
}

fn checkpoint(verdict: &Verdict, language: Language) -> Option<String> {
    let saved = verdict.checkpoint.as_ref()?;
    let (step, path) = (saved.step, escaped(&saved.path));
    Some(match verdict.cause {
        Cause::Completed => tr!(
            language,
            "  newest checkpoint: step {step}, {path}",
            "  最新的 checkpoint：第 {step} 步，{path}"
        ),
        _ => tr!(
            language,
            "  checkpoint to resume from: step {step}, {path}",
            "  可以续训的 checkpoint：第 {step} 步，{path}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use zeropilot_record::{Attempt, Ending, Measured, Saved, Setup};

    use super::*;

    fn attempt(cause: Cause, evidence: Vec<Evidence>) -> Attempt {
        Attempt {
            number: 1,
            strategy: Setup::AsGiven,
            config: None,
            resumed_from: None,
            ending: Ending::Exited(0),
            cause,
            last_step: Some(12),
            total_steps: Some(15),
            last_loss: Some(2.34121),
            seconds: 9.0,
            measured: Measured { device: Some(3 << 30), ..Measured::default() },
            evidence,
        }
    }

    fn said(cause: Cause, evidence: Vec<Evidence>, language: Language) -> String {
        let info = RunInfo { predicted: Some(2 << 30), ..RunInfo::default() };
        let attempts = vec![attempt(cause.clone(), evidence)];
        let saved = Saved { step: 10, path: "/out/global_step10".to_owned(), at: None };
        let end = Verdict::new("a", cause, attempts, 9.0).after(3723.0);
        let end = end.with_checkpoint(Some(saved));
        let (report, resume) = ("zeropilot report a", Some("zeropilot run --continue"));
        let ended = Ended { info: &info, verdict: &end, directory: "/r", report, resume };
        verdict(&ended, language)
    }

    #[test]
    fn the_end_has_what_one_asks_for_next() {
        let text = said(Cause::Completed, vec![Evidence::LossNotFinite], Language::English);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // An hour, two minutes and three seconds.
        assert_eq!(lines[..2], ["run a: completed", "step 12/15 · loss 2.3412 · duration 1:02:03"]);
        assert_eq!(lines[2], "peak GPU memory of a rank: 3.00 GiB, predicted 2.00 GiB");
        assert_eq!(lines[3], "newest checkpoint: step 10, /out/global_step10");
        assert!(lines.contains(&"report: zeropilot report a"), "{text}");
    }

    #[test]
    fn advice_names_what_is_there_and_can_be_done() {
        let zh = Language::Chinese;
        let after = |cause: Cause, evidence: Vec<Evidence>, falls_back: bool, language| {
            let config = Some("ds.json".to_owned());
            let info = RunInfo { falls_back, config, ..RunInfo::default() };
            let attempts = vec![attempt(cause.clone(), Vec::new()), {
                let number = 2;
                Attempt { number, ..attempt(cause.clone(), evidence) }
            }];
            let end = Verdict::new("a", cause, attempts, 9.0);
            advice_after(&info, &end, language).expect("advice")
        };
        let short = Cause::OutOfMemory {
            memory: zeropilot_record::Memory::Device,
            shortage: zeropilot_record::Shortage::Refused,
            phase: None,
        };
        let asks = |falls_back, language| after(short.clone(), Vec::new(), falls_back, language);
        for language in [Language::English, zh] {
            assert!(asks(false, language).contains("--fallback"));
            assert!(!asks(true, language).contains("--fallback)"), "it was given");
            assert!(!asks(true, language).contains("加 --fallback"), "it was given");
            let failed = after(Cause::ProgramFailed { rank: None }, Vec::new(), false, language);
            assert!(failed.contains("tail-2.log"), "{failed}");
            let hang = || Cause::Hang { ranks: Vec::new() };
            let at = zeropilot_record::RanksAt::default();
            let seen = after(hang(), vec![Evidence::RanksAt(at)], false, language);
            assert!(seen.contains("stacks-2"), "{seen}");
            // No rank, no stack.
            let unseen = after(hang(), Vec::new(), false, language);
            assert!(!unseen.contains("stacks-"), "{unseen}");
            let timeout = after(Cause::CollectiveTimeout, Vec::new(), false, language);
            assert!(!timeout.contains("stacks-"), "{timeout}");
        }
    }

    #[test]
    fn a_completed_run_tells_of_norms_that_are_none_in_both_languages() {
        for language in [Language::English, Language::Chinese] {
            let evidence = vec![Evidence::NormNotFiniteSince(4)];
            let text = said(Cause::Completed, evidence.clone(), language);
            assert!(text.contains(&evidence::words(&evidence[0], language)), "{text}");
        }
    }
}
