//! What the events of a run come to.

use std::collections::{BTreeMap, VecDeque};

use zeropilot_record::{Event, GpuUse, RunEvent, Setup};

use super::history::History;

/// Events that are kept to be shown.
const KEPT: usize = 200;

/// Memory of a rank, now and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// Bytes at the last look.
    pub now: u64,
    /// Bytes at most, in this attempt.
    pub peak: u64,
}

impl Level {
    fn rise(&mut self, bytes: u64) {
        *self = Self { now: bytes, peak: self.peak.max(bytes) };
    }
}

/// A rank that runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankState {
    /// Resident memory of its process.
    pub resident: Level,
    /// Its GPU, and what it holds of it.
    pub gpu: Option<(u32, Level)>,
}

impl RankState {
    /// The memory that a prediction is about: that of the GPU, if there is one.
    pub fn level(&self) -> Level {
        self.gpu.map_or(self.resident, |(_, level)| level)
    }
}

/// A run as its events tell it. It does not grow with their number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Digest {
    /// Which start of the command this is, and what was changed for it.
    pub attempt: Option<(u32, Setup)>,
    /// The last optimizer step.
    pub step: Option<u64>,
    /// When it was made.
    pub step_at: Option<f64>,
    /// The steps there will be.
    pub total_steps: Option<u64>,
    /// The last loss, of all attempts.
    pub losses: History,
    /// The last loss; NaN since losses or norms are none.
    pub loss: Option<f64>,
    /// Steps in a second.
    pub rates: History,
    /// Tokens in a second.
    pub tokens_per_second: Option<f64>,
    /// The ranks of this attempt.
    pub ranks: BTreeMap<u32, RankState>,
    /// The GPUs.
    pub gpus: Vec<GpuUse>,
    /// What else happened, with its time, oldest first.
    pub told: VecDeque<(f64, RunEvent)>,
    /// When something last happened.
    pub last: Option<f64>,
    /// Whether the record has a pace; otherwise it is taken from steps.
    has_pace: bool,
}

impl Digest {
    /// Of many events.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut digest = Self::default();
        events.into_iter().for_each(|event| digest.take(event));
        digest
    }

    /// Takes one more event in.
    pub fn take(&mut self, event: &Event) {
        self.last = Some(event.at);
        match &event.happening {
            RunEvent::Step { step, loss } => self.stepped(event.at, *step, *loss),
            RunEvent::Memory { ranks } => {
                for rank in ranks {
                    self.ranks.entry(rank.rank).or_default().resident.rise(rank.rss);
                }
            }
            RunEvent::Pace { steps_per_second, tokens_per_second, total_steps } => {
                self.has_pace = true;
                self.rates.push(*steps_per_second);
                self.tokens_per_second = tokens_per_second.or(self.tokens_per_second);
                self.total_steps = total_steps.or(self.total_steps);
            }
            RunEvent::Gpus { gpus } => self.measured(gpus),
            RunEvent::AttemptStarted { attempt, strategy, .. } => {
                let losses = std::mem::take(&mut self.losses);
                let told = std::mem::take(&mut self.told);
                let attempt = Some((*attempt, strategy.clone()));
                let (last, loss) = (self.last, self.loss);
                *self = Self { attempt, losses, loss, told, last, ..Self::default() };
                self.tell(event);
            }
            RunEvent::NotFinite { .. } => {
                self.loss = Some(f64::NAN);
                self.tell(event);
            }
            RunEvent::RankSeen { rank, .. } => {
                self.ranks.entry(*rank).or_default();
            }
            _ => self.tell(event),
        }
    }

    fn stepped(&mut self, at: f64, step: u64, loss: Option<f64>) {
        if let Some(loss) = loss {
            self.loss = Some(loss);
            self.losses.push(loss);
        }
        if let (false, Some(before), Some(last)) = (self.has_pace, self.step_at, self.step)
            && at > before
            && step > last
        {
            self.rates.push((step - last) as f64 / (at - before));
        }
        (self.step, self.step_at) = (Some(step), Some(at));
    }

    fn measured(&mut self, gpus: &[GpuUse]) {
        gpus.clone_into(&mut self.gpus);
        for gpu in gpus {
            for rank in gpu.processes.iter().filter_map(|process| process.rank) {
                let Some(used) = gpu.of_rank(rank) else { continue };
                let state = self.ranks.entry(rank).or_default();
                state.gpu.get_or_insert((gpu.index, Level::default())).1.rise(used);
            }
        }
    }

    fn tell(&mut self, event: &Event) {
        if self.told.len() == KEPT {
            self.told.pop_front();
        }
        self.told.push_back((event.at, event.happening.clone()));
    }

    /// Seconds until the last of so many steps, as things go.
    pub fn remaining(&self, total: u64) -> Option<f64> {
        let left = total.checked_sub(self.step?)?;
        let rate = self.rates.last().filter(|rate| *rate > 0.0)?;
        Some(left as f64 / rate)
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_record::{GpuProcess, RankMemory};

    use super::*;

    fn at(at: f64, happening: RunEvent) -> Event {
        Event::new(at, happening)
    }

    #[test]
    fn what_remains_follows_from_the_pace() {
        let pace = RunEvent::Pace {
            steps_per_second: 0.5,
            tokens_per_second: None,
            total_steps: Some(30),
        };
        let step = RunEvent::Step { step: 10, loss: Some(2.0) };
        let digest = Digest::of(&[at(1.0, step), at(2.0, pace)]);
        // 20 steps at half a step in a second.
        assert_eq!(digest.total_steps.and_then(|total| digest.remaining(total)), Some(40.0));
    }

    #[test]
    fn without_a_pace_the_steps_themselves_tell() {
        let step = |when, step| at(when, RunEvent::Step { step, loss: None });
        let digest = Digest::of(&[step(10.0, 1), step(14.0, 9)]);
        assert_eq!(digest.rates.last(), Some(2.0));
    }

    #[test]
    fn a_new_attempt_begins_with_empty_ranks_and_keeps_the_story() {
        let memory = |rss| RunEvent::Memory { ranks: vec![RankMemory { rank: 0, rss }] };
        let start = |attempt| {
            at(0.0, RunEvent::AttemptStarted { attempt, strategy: Setup::AsGiven, pid: 1 })
        };
        let mut digest = Digest::of(&[start(1), at(1.0, memory(9)), at(2.0, memory(5))]);
        assert_eq!(digest.ranks[&0].level(), Level { now: 5, peak: 9 });
        digest.take(&start(2));
        assert!(digest.ranks.is_empty());
        assert_eq!(digest.told.len(), 2);
    }

    #[test]
    fn memory_of_the_gpu_is_what_a_prediction_is_about() {
        let process = GpuProcess { pid: 1, rank: Some(0), used: Some(70) };
        let gpu = GpuUse {
            index: 4,
            name: "A100".to_owned(),
            used: 80,
            total: 100,
            utilization: None,
            watts: None,
            celsius: None,
            processes: vec![process],
        };
        let memory = RunEvent::Memory { ranks: vec![RankMemory { rank: 0, rss: 7 }] };
        let gpus = RunEvent::Gpus { gpus: vec![gpu] };
        let digest = Digest::of(&[at(1.0, memory), at(2.0, gpus)]);
        assert_eq!(digest.ranks[&0].level().now, 70);
        assert_eq!(digest.ranks[&0].gpu.map(|(index, _)| index), Some(4));
    }
}
