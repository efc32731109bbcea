//! How a run stands, in one line of a terminal.

use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::clock;
use super::watch::words;

/// What the line tells.
#[derive(Debug, Clone, Default)]
pub struct StatusLine {
    /// The last step.
    pub step: Option<u64>,
    /// The steps there will be.
    pub total_steps: Option<u64>,
    /// The last loss.
    pub loss: Option<f64>,
    /// Steps in a second.
    pub rate: Option<f64>,
    /// Tokens in a second.
    pub tokens_per_second: Option<f64>,
    /// Whether tokens are counted from arguments, as if every sequence were full.
    pub counts_tokens: bool,
    /// Bytes of the largest rank.
    pub largest: Option<u64>,
    /// Whether they are of a GPU, and not resident.
    pub is_gpu: bool,
    /// Predicted bytes, if known.
    pub predicted: Option<u64>,
    /// Ranks on this machine.
    pub ranks: usize,
    /// Seconds since the start.
    pub seconds: u64,
}

/// The line.
pub fn status(line: &StatusLine, language: Language) -> String {
    let time = clock(line.seconds);
    let mut parts = vec![tr!(language, "running {time}", "已运行 {time}")];
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    if let Some(step) = line.step {
        let total = line.total_steps.map_or(String::new(), |total| format!("/{total}"));
        parts.push(format!("{} {step}{total}", words("step", "步")));
    }
    if let Some(loss) = line.loss {
        parts.push(format!("loss {loss:.4}"));
    }
    parts.extend(line.rate.map(|rate| words::rate(rate, language)));
    let counted = line.counts_tokens;
    parts.extend(line.tokens_per_second.map(|rate| words::tokens_at(rate, counted, language)));
    parts.extend(line.largest.map(|largest| memory(line, largest, language)));
    parts
        .extend(remaining(line).map(|seconds| tr!(language, "{} left", "剩余 {}", clock(seconds))));
    parts.join(" · ")
}

fn memory(line: &StatusLine, largest: u64, language: Language) -> String {
    let predicted = line.predicted.map_or(String::new(), |bytes| format!(" / {}", Bytes(bytes)));
    let (ranks, bytes) = (line.ranks, Bytes(largest));
    match line.is_gpu {
        false => tr!(
            language,
            "{ranks} ranks, RSS up to {bytes}{predicted}",
            "{ranks} 个 rank，RSS 最大 {bytes}{predicted}"
        ),
        true => tr!(
            language,
            "{ranks} ranks, GPU memory up to {bytes}{predicted}",
            "{ranks} 个 rank，显存最大 {bytes}{predicted}"
        ),
    }
}

fn remaining(line: &StatusLine) -> Option<u64> {
    let left = line.total_steps?.checked_sub(line.step?)?;
    let rate = line.rate.filter(|rate| *rate > 0.0)?;
    Some((left as f64 / rate) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_only_what_is_known() {
        let line = StatusLine { seconds: 3723, ..StatusLine::default() };
        assert_eq!(status(&line, Language::English), "running 1:02:03");
        let line = StatusLine { step: Some(3), loss: Some(0.5), seconds: 5, ..line };
        assert_eq!(status(&line, Language::Chinese), "已运行 0:05 · 步 3 · loss 0.5000");
    }

    #[test]
    fn a_status_says_all_that_is_known() {
        let line = StatusLine {
            step: Some(12),
            total_steps: Some(100),
            loss: Some(2.25),
            rate: Some(2.0),
            tokens_per_second: Some(16384.0),
            counts_tokens: true,
            largest: Some(3 << 30),
            is_gpu: false,
            predicted: Some(4 << 30),
            ranks: 2,
            seconds: 6,
        };
        // 88 steps at 2 in a second.
        let expected = "running 0:06 · step 12/100 · loss 2.2500 · 2.00 steps/s · <=16,384 tokens/s · 2 ranks, RSS up to 3.00 GiB / 4.00 GiB · 0:44 left";
        assert_eq!(status(&line, Language::English), expected);
    }
}
