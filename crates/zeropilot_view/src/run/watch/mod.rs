//! How a run or a machine stands: as data, as lines of text, for a screen, and for monitoring.
//!
//! A [`Digest`] takes events in as they come; a [`Look`] is a run at one moment. Screens are drawn elsewhere, with these
//! [`words`].

mod alerts;
mod chart;
mod digest;
mod history;
pub mod machine;
pub mod metrics;
pub mod words;

use serde_json::{Value, json};
use zeropilot_record::{RunInfo, Saved, Verdict};
use zeropilot_text::{Language, Text};
use zeropilot_units::Bytes;

pub use self::alerts::alerts;
pub use self::chart::{Glyphs, bar, sparkline};
pub use self::digest::{Digest, Level, RankState};
pub use self::history::History;
use self::machine::HostMemory;
use super::clock;
use super::ending::loss_words;
use super::nodes::{self, JobLook};
use crate::escaped;

/// How something is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it is.
    Plain,
    /// With relief.
    Good,
    /// With care.
    Warning,
    /// As a failure.
    Bad,
}

/// A run as its record has it at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    /// What was asked for.
    pub info: RunInfo,
    /// What became of it.
    pub verdict: Option<Verdict>,
    /// Whether its supervisor lives.
    pub is_running: bool,
    /// The moment, in seconds since 1970.
    pub now: f64,
    /// What happened until then.
    pub digest: Digest,
    /// Memory of the machine it runs on.
    pub host: Option<HostMemory>,
    /// The newest checkpoint that it wrote, where that was looked for.
    pub checkpoint: Option<Saved>,
    /// The job of several nodes that it is a part of, if others have a record here.
    pub job: Option<JobLook>,
}

impl Look {
    /// Seconds since it began, until it ended.
    pub fn elapsed(&self) -> u64 {
        let until = match &self.verdict {
            Some(Verdict { seconds: Some(seconds), .. }) => return seconds.max(0.0) as u64,
            Some(verdict) => verdict.ended_at,
            None if self.is_running => self.now,
            None => self.digest.last.unwrap_or(self.info.started_at),
        };
        (until - self.info.started_at).max(0.0) as u64
    }

    /// The steps there will be.
    pub fn total_steps(&self) -> Option<u64> {
        self.digest.total_steps.or(self.info.total_steps)
    }

    /// Seconds until the last step, while it runs.
    pub fn remaining(&self) -> Option<f64> {
        self.digest.remaining(self.total_steps()?).filter(|_| self.is_running)
    }

    /// The bytes that fill a bar: a GPU or what was predicted, else the machine; in any case what was seen.
    pub fn scale(&self) -> u64 {
        let gpus = self.digest.gpus.iter();
        let gpus = gpus.filter(|gpu| gpu.processes.iter().any(|process| process.rank.is_some()));
        let seen = self.digest.ranks.values().map(|rank| rank.level().peak);
        let known = gpus.map(|gpu| gpu.total).chain(self.info.predicted).max();
        let whole = known.or(self.host.map(|host| host.total));
        whole.into_iter().chain(seen).max().unwrap_or(0).max(1)
    }
}

/// The run in a few lines.
pub fn text(look: &Look, width: usize, glyphs: Glyphs, language: Language) -> String {
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let mut lines = vec![
        [
            Some(escaped(&look.info.id).into_owned()),
            Some(words::state(look, language).0),
            Some(clock(look.elapsed())),
            words::attempt(look, language),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("  "),
    ];
    lines.extend(job_lines(look, language));
    let digest = &look.digest;
    let loss = digest.loss.map(|loss| format!("loss {}", loss_words(loss)));
    let rate = digest.rates.last().map(|rate| words::rate(rate, language));
    let tokens = words::tokens(look, language);
    let parts = [Some(words::step(look, language)), loss, rate, tokens];
    let parts = parts.into_iter().chain([words::remaining(look, language)]).flatten();
    lines.push(parts.collect::<Vec<_>>().join("  "));
    let width = width.clamp(50, 120);
    let losses = digest.losses.resampled(width - 6);
    if losses.len() > 1 {
        lines.push(format!("loss {}", sparkline(&losses, None, glyphs)));
    }
    if !digest.ranks.is_empty() {
        lines.push(words::memory_head(look, language));
    }
    let room = width - 44;
    for (rank, state) in &digest.ranks {
        let level = state.level();
        lines.push(format!(
            "rank {rank:<4} {} {:>8} ({} {})",
            bar(level.now, look.info.predicted, look.scale(), room, glyphs),
            Bytes(level.now),
            words("peak", "峰值"),
            Bytes(level.peak),
        ));
    }
    lines.extend(digest.gpus.iter().map(|gpu| machine::gpu_line(gpu, glyphs, language)));
    lines.extend(alerts(look, language).into_iter().map(|alert| format!("! {alert}")));
    let told = digest.told.iter().filter_map(|(at, event)| {
        let at = clock((at - look.info.started_at).max(0.0) as u64);
        Some(format!("{at} {}", words::told(event, language)?))
    });
    let told: Vec<String> = told.collect();
    lines.extend(told.into_iter().rev().take(6).rev());
    lines.join("\n") + "\n"
}

/// The job of several nodes, with a line for each node.
pub fn job_lines(look: &Look, language: Language) -> Vec<String> {
    let Some(job) = &look.job else { return Vec::new() };
    let members = nodes::members(job, language).into_iter().map(|line| format!("  {line}"));
    std::iter::once(nodes::head(job, language)).chain(members).collect()
}

/// The same for machines.
pub fn json(look: &Look) -> Value {
    let digest = &look.digest;
    let rank = |(rank, state): (&u32, &RankState)| {
        json!({
            "rank": rank,
            "rss": state.resident.now,
            "peak": state.resident.peak,
            "gpu": state.gpu.map(|(index, level)| json!({
                "index": index,
                "used": level.now,
                "peak": level.peak,
            })),
        })
    };
    json!({
        "shape": 1,
        "id": look.info.id,
        "is_running": look.is_running,
        "elapsed_seconds": look.elapsed(),
        "attempt": digest.attempt.as_ref().map(|(number, _)| number),
        "strategy": digest.attempt.as_ref().map(|(_, strategy)| strategy),
        "step": digest.step,
        "total_steps": look.total_steps(),
        "loss": digest.loss,
        "steps_per_second": digest.rates.last(),
        "tokens_per_second": digest.tokens_per_second,
        "remaining_seconds": look.remaining(),
        "ranks": digest.ranks.iter().map(rank).collect::<Vec<_>>(),
        "gpus": digest.gpus,
        "predicted": look.info.predicted,
        "fullest": look.info.fullest,
        "verdict": look.verdict,
        "job": look.job.as_ref().map(nodes::json),
    })
}
