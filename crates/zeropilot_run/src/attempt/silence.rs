//! Noticing that nothing moves, and which rank it is.

use std::sync::atomic::Ordering;
use std::time::Duration;

use zeropilot_record::RunEvent;

use super::watch::Watch;
use crate::process::Rank;
use crate::stacks;

/// Importing, compiling and loading are quiet: until the first step silence is no hang for at least this long.
const QUIET_START: Duration = Duration::from_secs(600);

impl Watch<'_> {
    /// Notices silence.
    pub(super) fn listen(&mut self) {
        let Some(mut limit) = self.start.limits.hang_after else { return };
        if self.observed.last_step.is_none() {
            limit = limit.max(QUIET_START);
        }
        if self.has_ended || self.stopping.is_some() {
            return;
        }
        let spoken = Duration::from_millis(self.spoken.load(Ordering::Relaxed));
        let silence = self.began.elapsed().saturating_sub(spoken);
        // How much each rank computes is measured over the second half of the silence.
        if silence < limit / 2 {
            self.quiet_ticks.clear();
        } else if self.quiet_ticks.is_empty() {
            let ticks = |rank: &Rank| (rank.rank, rank.process.ticks);
            self.quiet_ticks = self.ranks.iter().map(ticks).collect();
        }
        if silence < limit {
            return;
        }
        let ranks = self.standing();
        stacks::dump(&self.ranks, self.start.stacks);
        self.observed.hang = Some(ranks.clone());
        self.say(RunEvent::Hang { seconds: silence.as_secs_f64(), ranks });
        self.stop(15);
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
