//! The words of a screen about a run.

use zeropilot_record::{Ending, Fullest, Phase, RunEvent};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::{Look, Mood};
use crate::escaped;
use crate::run::{cause_words, clock, happening, listing, setup_words};

/// As any terminal has it.
const AT_MOST: &str = "<=";
/// What became of a run, or that it runs.
pub fn state(look: &Look, language: Language) -> (String, Mood) {
    let mood = match (&look.verdict, look.is_running) {
        (Some(verdict), _) if verdict.exit_code == 0 => Mood::Good,
        (Some(_), _) | (None, false) => Mood::Bad,
        (None, true) => Mood::Plain,
    };
    (listing::state(look.verdict.as_ref(), look.is_running, language), mood)
}

/// Which attempt this is, and with which config.
pub fn attempt(look: &Look, language: Language) -> Option<String> {
    let (number, strategy) = look.digest.attempt.as_ref()?;
    let strategy = setup_words(strategy, language);
    Some(tr!(language, "attempt {number}: {strategy}", "第 {number} 次尝试：{strategy}"))
}

/// The step, and of how many.
pub fn step(look: &Look, language: Language) -> String {
    let head = Text::new("step", "步数").get(language);
    match (look.digest.step, look.total_steps()) {
        (None, None) => format!("{head} -"),
        (None, Some(total)) => format!("{head} -/{total}"),
        (Some(step), None) => format!("{head} {step}"),
        (Some(step), Some(total)) => format!("{head} {step}/{total}"),
    }
}

/// How long it will take.
pub fn remaining(look: &Look, language: Language) -> Option<String> {
    let left = clock(look.remaining()? as u64);
    Some(tr!(language, "{left} left", "剩余 {left}"))
}

/// Steps in a second, or seconds of a step where that says more.
pub fn rate(rate: f64, language: Language) -> String {
    let slow = rate > 0.0 && rate < 0.5;
    let value = if slow { 1.0 / rate } else { rate };
    let unit = if slow { Text::new("s/step", "秒/步") } else { Text::new("steps/s", "步/秒") };
    format!("{value:.2} {}", unit.get(language))
}

/// Tokens in a second.
pub fn tokens(look: &Look, language: Language) -> Option<String> {
    let is_counted = look.info.tokens_per_step.is_some();
    look.digest.tokens_per_second.map(|rate| tokens_at(rate, is_counted, language))
}

/// A rate of tokens. Counted from arguments it is the most it can be: not every sequence may be full.
pub(crate) fn tokens_at(rate: f64, is_counted: bool, language: Language) -> String {
    let unit = Text::new("tokens/s", "token/s").get(language);
    format!("{}{} {unit}", if is_counted { AT_MOST } else { "" }, grouped(rate))
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What the bars of the ranks are.
pub fn memory_head(look: &Look, language: Language) -> String {
    let has_gpus = look.digest.ranks.values().any(|rank| rank.gpu.is_some());
    let what = if has_gpus {
        Text::new("GPU memory of ranks", "各 rank 显存")
    } else {
        Text::new("host memory of ranks (RSS)", "各 rank 主机内存（RSS）")
    };
    let mut text = what.get(language).to_owned();
    if let Some(predicted) = look.info.predicted {
        let bytes = Bytes(predicted);
        text.push_str(&tr!(
            language,
            "; | predicted per GPU: {bytes}",
            "；| 为单卡预测值：{bytes}"
        ));
        if let Some(fullest) = &look.info.fullest {
            text.push_str(&moment(fullest, language));
        }
    } else if let (false, Some(host)) = (has_gpus, look.host) {
        let total = Bytes(host.total);
        text.push_str(&tr!(
            language,
            "; this machine has {total} of host memory",
            "；本机主机内存共 {total}"
        ));
    }
    text
}

fn moment(fullest: &Fullest, language: Language) -> String {
    let phase = match fullest.phase {
        Phase::Loading => Text::new("during DeepSpeed initialization", "初始化 DeepSpeed 时"),
        Phase::Forward => Text::new("in the forward pass", "前向时"),
        Phase::Backward => Text::new("in the backward pass", "反向时"),
        Phase::Step => Text::new("in the optimizer step", "参数更新时"),
        Phase::Saving => Text::new("while saving", "保存时"),
    }
    .get(language);
    match &fullest.near {
        None => tr!(language, ", {phase}", "（{phase}）"),
        Some(near) => tr!(language, ", {phase}, near {}", "（{phase}，{} 附近）", escaped(near)),
    }
}

/// What happened, also what is not said beside the output of a run.
pub fn told(event: &RunEvent, language: Language) -> Option<String> {
    let text = match event {
        RunEvent::AttemptStarted { attempt, strategy, .. } => {
            let strategy = setup_words(strategy, language);
            tr!(
                language,
                "attempt {attempt} started: {strategy}",
                "第 {attempt} 次尝试开始：{strategy}"
            )
        }
        RunEvent::RankGone { rank, ending } => gone(*rank, *ending, language)?,
        RunEvent::Preflight { errors, warnings, findings } if errors + warnings > 0 => {
            let findings: String =
                findings.iter().map(|line| format!("; {}", escaped(line))).collect();
            tr!(
                language,
                "preflight check: {errors} errors, {warnings} warnings{findings}",
                "启动前检查：{errors} 个错误，{warnings} 个警告{findings}"
            )
        }
        RunEvent::Fingerprint { line, rank, .. } => {
            let said = rank.map(|rank| format!("[rank{rank}]:")).unwrap_or_default();
            let line = line.trim();
            let line = escaped(line.strip_prefix(&said).unwrap_or(line).trim());
            match rank {
                Some(rank) => {
                    tr!(language, "log of rank {rank}: {line}", "rank {rank} 的日志：{line}")
                }
                None => tr!(language, "log: {line}", "日志：{line}"),
            }
        }
        RunEvent::RunEnded { cause, .. } => {
            tr!(language, "the run ended: {}", "运行结束：{}", cause_words(cause, language))
        }
        other => happening(other, language)?,
    };
    let joint = Text::new("; ", "；").get(language);
    Some(text.split('\n').map(str::trim).collect::<Vec<_>>().join(joint))
}

/// How a rank ended, if not as it should. Nobody may have looked when one did.
fn gone(rank: u32, ending: Ending, language: Language) -> Option<String> {
    Some(match ending {
        Ending::Exited(0) | Ending::Unknown => return None,
        Ending::Signaled(signal) => {
            tr!(
                language,
                "rank {rank} was terminated by signal {signal}",
                "rank {rank} 被信号 {signal} 终止"
            )
        }
        Ending::Exited(code) => {
            tr!(language, "rank {rank} exited with {code}", "rank {rank} 以退出码 {code} 结束")
        }
    })
}

/// How what happened is to be taken.
pub fn mood(event: &RunEvent) -> Mood {
    match event {
        RunEvent::RunEnded { exit_code: 0, .. } => Mood::Good,
        RunEvent::RunEnded { .. } | RunEvent::AttemptEnded { .. } | RunEvent::Hang { .. } => {
            Mood::Bad
        }
        RunEvent::RankGone { .. } | RunEvent::Fingerprint { .. } => Mood::Warning,
        RunEvent::FallbackTaken { .. }
        | RunEvent::BeginningAnew { .. }
        | RunEvent::NotStartedAgain { .. }
        | RunEvent::ScratchNotAllowed { .. }
        | RunEvent::CheckpointsFound { .. }
        | RunEvent::NormNotFinite { .. }
        | RunEvent::NotFinite { .. } => Mood::Warning,
        _ => Mood::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_are_told_in_seconds() {
        assert_eq!(rate(2.5, Language::English), "2.50 steps/s");
        assert_eq!(rate(0.04, Language::Chinese), "25.00 秒/步");
        assert_eq!(rate(0.0, Language::English), "0.00 steps/s");
    }

    #[test]
    fn tokens_are_grouped() {
        assert_eq!(tokens_at(1_234_567.8, true, Language::English), "<=1,234,568 tokens/s");
        assert_eq!(tokens_at(12.0, false, Language::Chinese), "12 token/s");
    }
}
