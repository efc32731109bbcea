//! Noticing that nothing moves, and which rank it is.
//!
//! Silence alone is a weak witness: of a run on several machines only one prints, some programs never do, and a job that was
//! suspended said nothing meanwhile. So whether ranks compute is looked at as well, and time that zeropilot itself did not
//! live through does not count.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zeropilot_doctor::extension_locks;
use zeropilot_record::RunEvent;

use super::watch::Watch;
use crate::hang::{self, Explained};
use crate::process::Rank;
use crate::stacks::{self, Stood};

/// Importing, compiling and loading are quiet: until the first step silence is no hang for at least this long.
const QUIET_START: Duration = Duration::from_secs(600);
/// Two looks that are further apart than this had something between them that stopped zeropilot too.
const PAUSE: Duration = Duration::from_secs(5);
/// Steps may take this many times as long as they usually do before none is too long.
const USUAL: u32 = 10;

/// How long it has been since anything moved.
#[derive(Debug, Clone, Copy)]
struct Stillness {
    /// Since the last output.
    silence: Duration,
    /// Since a rank last computed noticeably.
    idle: Duration,
    /// Since the last step, if there was one, and how long one usually takes.
    step: Option<(Duration, Option<Duration>)>,
}

impl Stillness {
    /// Whether that is a hang, and for how long.
    fn hang(&self, limit: Option<Duration>, step_limit: Option<Duration>) -> Option<Duration> {
        let Some((since_step, usual)) = self.step else {
            // Where no step was ever printed, as on every machine but one, silence says nothing about ranks that compute.
            let limit = limit?.max(QUIET_START);
            return (self.silence >= limit && self.idle >= limit).then_some(self.silence);
        };
        if step_limit.is_some_and(|limit| since_step >= limit) {
            return Some(since_step);
        }
        let limit = limit?;
        if self.silence >= limit {
            return Some(self.silence);
        }
        // A thread may print for ever. An evaluation prints too, and makes no steps, but it computes.
        let patience = limit.max(usual.unwrap_or_default().saturating_mul(USUAL));
        (since_step >= patience && self.idle >= patience).then_some(since_step)
    }
}

impl Watch<'_> {
    /// Notices that nothing moves.
    pub(super) fn listen(&mut self) {
        let now = Instant::now();
        let before = self.listened.replace(now);
        let was_away = before.is_some_and(|before| now.duration_since(before) > PAUSE);
        if was_away || self.start.observer.is_blocked() {
            self.awake_since = now;
            self.pace.interrupt();
        }
        if self.has_ended || self.stopping.is_some() {
            return;
        }
        let since = |at: Instant| now.saturating_duration_since(at.max(self.awake_since));
        let spoken = Duration::from_millis(self.spoken.load(Ordering::Relaxed));
        let stillness = Stillness {
            silence: since(self.began + spoken),
            idle: since(self.computed_at),
            step: self.steps.last().map(|(at, _)| (since(*at), self.usual_step())),
        };
        // How much each rank computes is measured over the second half of the stillness.
        let limits = self.start.limits;
        let still = stillness.step.map_or(stillness.silence, |(since, _)| since);
        if limits.hang_after.is_none_or(|limit| still < limit / 2) {
            self.quiet_ticks.clear();
        } else if self.quiet_ticks.is_empty() {
            let ticks = |rank: &Rank| (rank.rank, rank.process.ticks);
            self.quiet_ticks = self.ranks.iter().map(ticks).collect();
        }
        let Some(lasted) = stillness.hang(limits.hang_after, limits.step_timeout) else { return };
        let explained = self.explained();
        let Explained { odd, stood, reason } = explained.clone();
        self.observed.hang = Some(explained);
        let seconds = lasted.as_secs_f64();
        self.say(RunEvent::Hang { seconds, ranks: odd, stood, explanation: reason });
        self.stop(15);
    }

    /// How long a step took lately.
    pub(super) fn usual_step(&self) -> Option<Duration> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        let steps = u32::try_from(last.1.checked_sub(first.1)?).ok().filter(|steps| *steps > 0)?;
        Some(last.0.duration_since(first.0) / steps)
    }

    /// Where the ranks stand and why, as far as it can be seen.
    fn explained(&self) -> Explained {
        let start = self.start;
        let wants = hang::waits_for_data;
        let stood = stacks::collect(&self.ranks, start.handler, start.stacks, wants);
        let directory = self.observed.directory.as_deref();
        let is_whole = start.world.is_some_and(|world| world <= stood.len());
        let mut explained = hang::explain(&stood, directory, is_whole, extension_lock);
        if explained.odd.is_empty() && explained.reason.is_none() {
            explained.odd = self.standing();
        }
        explained
    }

    /// Ranks that stand still by themselves: stopped ones, else the only one that computes nothing or everything.
    fn standing(&self) -> Vec<u32> {
        let stopped = self.ranks.iter().filter(|rank| rank.process.is_stopped());
        let stopped: Vec<u32> = stopped.map(|rank| rank.rank).collect();
        if !stopped.is_empty() {
            return stopped;
        }
        let computed = |rank: &Rank| {
            let before = self.quiet_ticks.iter().find(|(known, _)| *known == rank.rank)?.1;
            Some((rank.rank, rank.process.ticks.saturating_sub(before)))
        };
        let computed: Vec<(u32, u64)> = self.ranks.iter().filter_map(computed).collect();
        let busy: Vec<u32> =
            computed.iter().filter(|(_, ticks)| *ticks > 0).map(|(rank, _)| *rank).collect();
        // A rank that sleeps while the others spin, or computes while the others sleep, is the odd one.
        let idle: Vec<u32> =
            computed.iter().filter(|(_, ticks)| *ticks == 0).map(|(rank, _)| *rank).collect();
        match (busy.len(), idle.len()) {
            (_, 1) if busy.len() > 1 => idle,
            (1, _) if idle.len() > 1 => busy,
            _ => Vec::new(),
        }
    }
}

/// The lock that a rank waits for in PyTorch's extension cache, if it can be found, and whether a build holds it.
fn extension_lock(stood: &Stood) -> (Option<String>, bool) {
    let variables = stood.process.variables();
    let locks = extension_locks(&|name| variables.get(name).cloned());
    let is_held = locks.iter().any(|lock| lock.is_held);
    let stale = locks.into_iter().find(|lock| !lock.is_held);
    (stale.map(|lock| lock.path), is_held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    fn hangs(silence: u64, idle: u64, since_step: Option<u64>) -> bool {
        let usual = Some(Duration::from_secs(1));
        let step = since_step.map(|since| (minutes(since), usual));
        let still = Stillness { silence: minutes(silence), idle: minutes(idle), step };
        still.hang(Some(minutes(30)), None).is_some()
    }

    #[test]
    fn a_machine_that_prints_nothing_hangs_only_if_it_computes_nothing() {
        assert!(!hangs(600, 0, None), "ranks without rank 0 among them print nothing");
        assert!(hangs(31, 31, None));
        assert!(!hangs(29, 29, None));
    }

    #[test]
    fn silence_after_steps_is_a_hang_even_if_ranks_spin() {
        assert!(hangs(31, 0, Some(31)));
        assert!(!hangs(29, 29, Some(29)));
    }

    #[test]
    fn whoever_prints_without_a_step_hangs_if_nothing_computes() {
        assert!(hangs(0, 31, Some(31)), "a thread prints, the rest waits");
        assert!(!hangs(0, 0, Some(600)), "a long evaluation computes");
        let step = Some((minutes(31), Some(minutes(5))));
        let slow = Stillness { silence: minutes(0), idle: minutes(31), step };
        assert_eq!(slow.hang(Some(minutes(30)), None), None, "steps take minutes here");
    }

    #[test]
    fn a_limit_on_steps_holds_whatever_else_moves() {
        let step = Some((minutes(3), None));
        let busy = Stillness { silence: minutes(0), idle: minutes(0), step };
        assert_eq!(busy.hang(None, Some(minutes(3))), Some(minutes(3)));
        assert_eq!(busy.hang(None, Some(minutes(4))), None);
    }
}
