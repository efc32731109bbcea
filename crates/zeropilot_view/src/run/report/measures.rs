//! What the events of a run measured, over its time.

use std::collections::BTreeMap;

use zeropilot_record::{Event, RunEvent, RunInfo};

type Points = Vec<(f64, f64)>;

/// Series, in seconds since the start.
#[derive(Debug, Default)]
pub(super) struct Measures {
    /// Losses over steps, attempt by attempt.
    pub(super) losses_by_step: BTreeMap<u32, Points>,
    /// Steps in a second.
    pub(super) rates: Points,
    pub(super) tokens: Points,
    /// Resident bytes by rank.
    pub(super) resident: BTreeMap<u32, Points>,
    /// Bytes of a GPU by rank.
    pub(super) on_gpu: BTreeMap<u32, Points>,
    /// When attempts began, but for the first.
    pub(super) attempts: Vec<f64>,
    pub(super) last_step: Option<u64>,
    /// The last loss; NaN since losses or norms are none.
    pub(super) last_loss: Option<f64>,
    /// The smallest GPU of a rank.
    pub(super) gpu_total: Option<u64>,
    pub(super) end: f64,
}

impl Measures {
    pub(super) fn of(info: &RunInfo, events: &[Event]) -> Self {
        let mut measures = Self::default();
        let mut before: Option<(f64, u64)> = None;
        let mut number = 1;
        let has_pace = events.iter().any(|event| matches!(event.happening, RunEvent::Pace { .. }));
        for event in events {
            let at = (event.at - info.started_at).max(0.0);
            measures.end = at;
            match &event.happening {
                RunEvent::AttemptStarted { attempt, .. } => {
                    (before, number) = (None, *attempt);
                    if *attempt > 1 {
                        measures.attempts.push(at);
                    }
                }
                RunEvent::Step { step, loss } => {
                    let of_attempt = measures.losses_by_step.entry(number).or_default();
                    of_attempt.extend(loss.map(|loss| (*step as f64, loss)));
                    measures.last_loss = loss.or(measures.last_loss);
                    measures.last_step = Some(*step);
                    if let Some((then, last)) = before
                        && !has_pace
                        && at > then
                        && *step > last
                    {
                        measures.rates.push((at, (*step - last) as f64 / (at - then)));
                    }
                    before = Some((at, *step));
                }
                RunEvent::NotFinite { .. } => measures.last_loss = Some(f64::NAN),
                RunEvent::Pace { steps_per_second, tokens_per_second, .. } => {
                    measures.rates.push((at, *steps_per_second));
                    measures.tokens.extend(tokens_per_second.map(|rate| (at, rate)));
                }
                _ => measures.memory(at, &event.happening),
            }
        }
        measures
    }

    fn memory(&mut self, at: f64, happening: &RunEvent) {
        match happening {
            RunEvent::Memory { ranks } => {
                for rank in ranks {
                    self.resident.entry(rank.rank).or_default().push((at, rank.rss as f64));
                }
            }
            RunEvent::Gpus { gpus } => {
                for gpu in gpus {
                    for rank in gpu.processes.iter().filter_map(|process| process.rank) {
                        let Some(used) = gpu.of_rank(rank) else { continue };
                        self.on_gpu.entry(rank).or_default().push((at, used as f64));
                        let least = self.gpu_total.map_or(gpu.total, |least| least.min(gpu.total));
                        self.gpu_total = Some(least);
                    }
                }
            }
            _ => {}
        }
    }

    /// The memory that a prediction is about: that of GPUs, if there are any.
    pub(super) fn memory_of_ranks(&self) -> &BTreeMap<u32, Points> {
        if self.on_gpu.is_empty() { &self.resident } else { &self.on_gpu }
    }

    /// The rank that held most, and how much.
    pub(super) fn fullest(&self) -> Option<(u32, u64)> {
        let most = |points: &Points| points.iter().map(|point| point.1 as u64).max();
        let ranks = self.memory_of_ranks().iter();
        ranks
            .filter_map(|(rank, points)| Some((*rank, most(points)?)))
            .max_by_key(|(_, most)| *most)
    }
}
