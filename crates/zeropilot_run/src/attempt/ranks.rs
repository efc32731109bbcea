//! The ranks of an attempt: found, measured, and noted when they end.

use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use zeropilot_record::{Ending, RankMemory, RunEvent};

use super::watch::{Watch, due, spacing};
use crate::oom::{killed_by_kernel, own_kills, sees_all_numbers};
use crate::process::{self, Process, Rank, descendants, is_node_launcher};

/// Samples of memory in the record are no closer than this, and in a long run no closer than the second.
const RECORD_MEMORY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];

/// Launchers start ranks sooner than this, unless they wait for other nodes.
const RANKS_WITHIN: Duration = Duration::from_secs(60);

/// The share of a processor that a waiting rank does not take.
const NOTICEABLE: f64 = 0.05;

impl Watch<'_> {
    /// Looks for ranks.
    pub(super) fn look(&mut self) {
        let Ok(guard) = i32::try_from(self.child.id()) else { return };
        let below = descendants(guard);
        let mut found = process::ranks(&below);
        // What was adopted is judged by the ranks that are known by then.
        found.sort_by_key(|rank| rank.process.parent == guard);
        self.observed.has_node_launcher |=
            below.iter().any(|process| is_node_launcher(process.pid));
        self.all_seen.extend(below.iter().map(|process| process.pid));
        self.note_computing(&below);
        for rank in found {
            if !self.pids.contains(&rank.process.pid) && !self.is_of_rank(&rank, guard) {
                self.pids.push(rank.process.pid);
                self.numbers.push(rank.rank);
                self.kills.add(&rank.process.pid.to_string());
                let directory = || rank.process.directory();
                self.observed.directory = self.observed.directory.take().or_else(directory);
                self.ranks.push(rank);
                let pid = u32::try_from(rank.process.pid).unwrap_or(0);
                self.say(RunEvent::RankSeen { rank: rank.rank, pid });
            }
        }
        self.refresh();
        self.observed.ranks_seen = self.pids.len();
    }

    /// Whether a process was started by a rank that is known, and only inherited its number: what a rank leaves behind is
    /// adopted by the guard, and must not be taken for the rank itself.
    fn is_of_rank(&self, found: &Rank, guard: i32) -> bool {
        let parent = found.process.parent;
        let is_adopted = parent == guard && self.command != Some(found.process.pid);
        self.numbers.contains(&found.rank) && (is_adopted || self.pids.contains(&parent))
    }

    /// Notes whether the ranks, or whatever runs before there are any, computed since the last look.
    fn note_computing(&mut self, below: &[Process]) {
        let now = Instant::now();
        let is_counted =
            |process: &&Process| self.pids.is_empty() || self.pids.contains(&process.pid);
        let ticks: Vec<(i32, u64)> =
            below.iter().filter(is_counted).map(|process| (process.pid, process.ticks)).collect();
        let Some((before, known)) = &self.computed else {
            self.computed = Some((now, ticks));
            return;
        };
        let seconds = now.duration_since(*before).as_secs_f64();
        let grown = |(pid, ticks): &(i32, u64)| {
            let before =
                known.iter().find(|(known, _)| known == pid).map_or(0, |(_, ticks)| *ticks);
            ticks.saturating_sub(before)
        };
        let most = ticks.iter().map(grown).max().unwrap_or(0) as f64;
        if most >= NOTICEABLE * seconds * clock_ticks_per_second() as f64 {
            self.computed_at = now;
        }
        self.computed = Some((now, ticks));
    }

    /// Reads the ranks again, and notes those that ended.
    fn refresh(&mut self) {
        for rank in &mut self.ranks {
            match Process::read(rank.process.pid) {
                Some(now) if now.began == rank.process.began => rank.process = now,
                _ => rank.process.state = 'X',
            }
        }
    }

    pub(super) fn buried(&mut self) {
        self.refresh();
        let gone: Vec<Rank> =
            self.ranks.iter().filter(|rank| !rank.process.is_alive()).copied().collect();
        self.ranks.retain(|rank| rank.process.is_alive());
        let is_alone = gone.len() == 1 && !self.ranks.is_empty();
        let is_first = self.observed.rank_endings.is_empty();
        for rank in gone {
            let ending = rank.process.ending().unwrap_or(Ending::Unknown);
            if self.stopping.is_none() {
                if is_alone && is_first {
                    self.observed.first_gone = Some((rank.rank, ending));
                }
                self.observed.rank_endings.push((rank.rank, ending));
            }
            self.say(RunEvent::RankGone { rank: rank.rank, ending });
        }
    }

    pub(super) fn sample(&mut self) {
        let memory = |rank: &Rank| RankMemory { rank: rank.rank, rss: rank.process.rss() };
        self.status.memory = self.ranks.iter().map(memory).collect();
        for rank in &self.ranks {
            self.observed.reached(rank.rank, rank.process.peak());
        }
        self.status.elapsed = self.began.elapsed();
        self.status.rate = rate(&self.steps);
        let pace = spacing(RECORD_MEMORY, self.status.elapsed);
        if !self.status.memory.is_empty() && due(&mut self.recorded_memory, pace) {
            self.say(RunEvent::Memory { ranks: self.status.memory.clone() });
        }
        self.start.observer.status(&self.status);
    }

    /// Says once if no rank has come while the launcher only waits, as it does for nodes that do not join.
    pub(super) fn expect_ranks(&mut self) {
        let limits = self.start.limits;
        let within = limits.hang_after.map_or(RANKS_WITHIN, |limit| limit.min(RANKS_WITHIN));
        let waited = self.began.max(self.awake_since).elapsed();
        let wants_ranks = self.start.world.is_some_and(|world| world > 1) && self.pids.is_empty();
        let is_over = self.has_ended || self.stopping.is_some() || self.has_missed_ranks;
        let is_idle = self.computed_at.elapsed() >= within / 2;
        if wants_ranks && !is_over && is_idle && waited >= within {
            self.has_missed_ranks = true;
            self.say(RunEvent::NoRanksYet { seconds: waited.as_secs_f64() });
        }
    }

    /// Processes of this run that the kernel killed for memory.
    pub(super) fn kernel_kills(&self) -> u64 {
        let victims = killed_by_kernel();
        let victims = victims.get(self.killed_before..).unwrap_or_default();
        // In a container processes have other numbers than in the kernel's log.
        let victims = if sees_all_numbers() { victims } else { &[] };
        own_kills(self.kills.kills_since(), victims, &self.all_seen)
    }
}

fn rate(steps: &[(Instant, u64)]) -> Option<f64> {
    let (first, last) = (steps.first()?, steps.last()?);
    let seconds = last.0.duration_since(first.0).as_secs_f64();
    (seconds > 0.0).then(|| (last.1 - first.1) as f64 / seconds)
}
