//! How a run stands, for a terminal of 80 columns without colours, and as data.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zeropilot_lint::{Language, Text};
use zeropilot_record::{Event, Happening, RankMemory, RunInfo, Verdict};
use zeropilot_units::Bytes;

use super::{Row, clock, happening};
use crate::escaped;

/// A run as its record has it at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    /// What was asked for.
    pub info: RunInfo,
    /// What became of it.
    pub verdict: Option<Verdict>,
    /// Whether its supervisor lives.
    pub is_running: bool,
    /// What happened.
    pub events: Vec<Event>,
}

#[derive(Default)]
struct Seen {
    losses: Vec<f64>,
    step: Option<u64>,
    rate: Option<f64>,
    memory: Vec<RankMemory>,
    peaks: BTreeMap<u32, u64>,
    alerts: Vec<(f64, Happening)>,
    last: f64,
}

impl Seen {
    fn of(look: &Look) -> Self {
        let mut seen = Self { last: look.info.started_at, ..Self::default() };
        let mut before: Option<(f64, u64)> = None;
        for event in &look.events {
            seen.last = event.at;
            match &event.happening {
                Happening::Step { step, loss } => {
                    seen.losses.extend(loss);
                    seen.rate = before
                        .filter(|(at, last)| event.at > *at && step > last)
                        .map(|(at, last)| (step - last) as f64 / (event.at - at));
                    before = Some((event.at, *step));
                    seen.step = Some(*step);
                }
                Happening::Memory { ranks } => {
                    for rank in ranks {
                        let peak = seen.peaks.entry(rank.rank).or_default();
                        *peak = rank.rss.max(*peak);
                    }
                    seen.memory.clone_from(ranks);
                }
                Happening::AttemptStarted { .. } => (before, seen.step) = (None, None),
                other => seen.alerts.push((event.at, other.clone())),
            }
        }
        seen
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last values as a row of bars.
fn sparkline(values: &[f64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    values.iter().map(bar).collect()
}

/// The screen.
pub fn text(look: &Look, width: usize, language: Language) -> String {
    let seen = Seen::of(look);
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let row = Row { info: &look.info, verdict: look.verdict.as_ref(), is_running: look.is_running };
    let seconds = (seen.last - look.info.started_at).max(0.0) as u64;
    let mut text =
        format!("{}  {}  {}\n", escaped(&look.info.id), row.state(language), clock(seconds));
    let step = seen.step.map_or("-".to_owned(), |step| step.to_string());
    let rate = seen
        .rate
        .map_or(String::new(), |rate| format!("  {rate:.2} {}", words("steps/s", "步/秒")));
    let loss = seen.losses.last().map_or(String::new(), |loss| format!("  loss {loss:.4}"));
    text.push_str(&format!("{} {step}{loss}{rate}\n", words("step", "步")));
    if seen.losses.len() > 1 {
        text.push_str(&format!("loss {}\n", sparkline(&seen.losses, width.clamp(20, 200) - 6)));
    }
    let largest = seen.peaks.values().copied().chain(look.info.predicted).max().unwrap_or(1).max(1);
    let room = width.clamp(50, 120) - 44;
    for rank in &seen.memory {
        let filled = usize::try_from(rank.rss * room as u64 / largest).unwrap_or(room).min(room);
        let peak = seen.peaks.get(&rank.rank).copied().unwrap_or(rank.rss);
        text.push_str(&format!(
            "rank {:<4} {}{} {} ({} {})\n",
            rank.rank,
            "█".repeat(filled),
            "·".repeat(room - filled),
            Bytes(rank.rss),
            words("peak", "峰值"),
            Bytes(peak),
        ));
    }
    let told = seen.alerts.iter().filter_map(|(at, event)| {
        let at = clock((at - look.info.started_at).max(0.0) as u64);
        Some(format!("{at} {}\n", happening(event, language)?.replace('\n', " ")))
    });
    let told: Vec<String> = told.collect();
    text.extend(told.into_iter().rev().take(6).collect::<Vec<_>>().into_iter().rev());
    text
}

/// The same for machines.
pub fn json(look: &Look) -> Value {
    let seen = Seen::of(look);
    json!({
        "shape": 1,
        "id": look.info.id,
        "is_running": look.is_running,
        "step": seen.step,
        "loss": seen.losses.last(),
        "steps_per_second": seen.rate,
        "ranks": seen.memory.iter().map(|rank| json!({
            "rank": rank.rank,
            "rss": rank.rss,
            "peak": seen.peaks.get(&rank.rank),
        })).collect::<Vec<_>>(),
        "predicted": look.info.predicted,
        "verdict": look.verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_the_lowest_to_the_highest() {
        assert_eq!(sparkline(&[9.0, 0.0, 3.5, 7.0], 3), "▁▅█");
        assert_eq!(sparkline(&[1.0, 1.0], 9), "▁▁");
    }
}
