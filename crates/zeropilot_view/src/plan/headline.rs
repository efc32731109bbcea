//! The answer in the few words that are read first.

use serde::Serialize;
use zeropilot_plan::{Fitting, Rejected};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Estimate;

use super::{PlanReport, offers};
use crate::cost;
use crate::escaped;
use crate::memory::{Fit, fit};
use crate::simulate::human::{grouped, token_words};

/// The answer in few words: whether it fits, what is free, how fast it is, and what it takes to finish.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct HeadlineWords {
    title: String,
    verdict: Fit,
    verdict_words: &'static str,
    /// What a GPU has; what it needs and what is free where something fits, and what it lacks where nothing does.
    capacity: String,
    need: Option<String>,
    free: Option<String>,
    lacks: Option<String>,
    host: Option<String>,
    step: Option<String>,
    rate: Option<String>,
    mfu: Option<String>,
    /// What is to be finished, if that was said.
    tokens: Option<String>,
    duration: Option<String>,
    gpu_hours: Option<String>,
    cost: Option<String>,
}

impl HeadlineWords {
    pub(super) fn of(report: &PlanReport<'_>, language: Language) -> Self {
        let (model, gpus) = (escaped(report.model), report.place(language));
        let capacity = report.capacity.expected();
        let choice = report.plan.fitting.first();
        let verdict = match choice {
            Some(choice) => fit(choice.answer.device(), report.capacity),
            None => report.plan.rejected.iter().map(of_rejected).min().unwrap_or(Fit::DoesNotFit),
        };
        let lacks = report.plan.rejected.iter().map(Rejected::over_by).filter(|over| over.0 > 0);
        let timed = choice.and_then(|choice| choice.time.map(|time| (choice, time)));
        let hours = timed.and_then(|(choice, _)| {
            let bill = report.bill?;
            Some((bill, offers::gpu_hours(choice, bill, report.length)?))
        });
        Self {
            title: tr!(language, "{model} on {gpus}", "{model}，{gpus}"),
            verdict,
            verdict_words: verdict.words(language),
            capacity: capacity.to_string(),
            need: choice.map(|choice| choice.answer.device().to_string()),
            free: choice.map(|choice| {
                capacity.saturating_sub(choice.answer.device().expected()).to_string()
            }),
            lacks: lacks.min().filter(|_| choice.is_none()).map(|lacks| lacks.to_string()),
            host: choice.map(|choice| choice.answer.node().expected().to_string()),
            step: timed.map(|(_, time)| duration(time.expected.total, language)),
            rate: timed.and_then(|(choice, _)| rate(choice, report.length)),
            mfu: timed.map(|(_, time)| format!("{:.0}%", time.expected.mfu * 100.0)),
            tokens: report.bill.map(|bill| token_words(bill.tokens, language)),
            duration: hours
                .map(|(_, hours)| duration(hours * 3600.0 / report.world.max(1) as f64, language)),
            gpu_hours: hours.map(|(_, hours)| cost::short(hours)),
            cost: hours.and_then(|(bill, hours)| {
                let sign = bill.currency.map_or(String::new(), String::from);
                Some(format!("{sign}{}", cost::money(hours * bill.per_gpu_hour?)))
            }),
        }
    }
}

fn of_rejected(rejected: &Rejected) -> Fit {
    match rejected.over_by().0 {
        0 => Fit::DoesNotFit,
        _ => fit(rejected.device, Estimate::exact(rejected.capacity)),
    }
}

/// Tokens per second of a GPU.
fn rate(choice: &Fitting, length: u64) -> Option<String> {
    Some(grouped(length as f64 / choice.seconds_per_sequence()?))
}

/// "1.23 s", "45 min", "3.2 days", in the words of the reader.
fn duration(seconds: f64, language: Language) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 3600.0;
    const DAY: f64 = 86_400.0;
    let (value, unit) = match seconds {
        ..1.0 => (seconds * 1e3, Text::new("ms", "毫秒")),
        ..120.0 => (seconds, Text::new("s", "秒")),
        ..7200.0 => (seconds / MINUTE, Text::new("min", "分钟")),
        ..172_800.0 => (seconds / HOUR, Text::new("hours", "小时")),
        _ => (seconds / DAY, Text::new("days", "天")),
    };
    let number = match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => grouped(value),
    };
    format!("{number} {}", unit.get(language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_in_the_words_of_the_reader() {
        let english = |seconds| duration(seconds, Language::English);
        assert_eq!(english(0.0456), "45.6 ms");
        assert_eq!(english(1.234), "1.23 s");
        assert_eq!(english(2700.0), "45.0 min");
        assert_eq!(english(90_000.0), "25.0 hours");
        // 345,600 s / 86,400 s.
        assert_eq!(english(345_600.0), "4.00 days");
        assert_eq!(duration(345_600.0, Language::Chinese), "4.00 天");
    }
}
