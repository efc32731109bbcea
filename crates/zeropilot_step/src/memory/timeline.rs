//! The memory of a GPU over one steady step, in a few hundred stretches.

use super::prediction::{Counting, Phase};
use super::rank::{Follower, FrozenRank};
use crate::lower::{Lowered, RankOf};
use crate::zero::{
    Category, Handle, Ledger, Place, Resident, Rest, Sink, frozen_rest, optimizer_step,
};

/// The fullest moment of a stretch of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The phase it belongs to.
    pub phase: Phase,
    /// What was alive.
    pub alive: Rest,
}

/// One steady step, forward and backward of its last micro step in equal numbers of stretches, then the update.
#[must_use]
pub fn timeline(
    lowered: &Lowered,
    rank: &RankOf<'_>,
    counting: Counting,
    stretches: usize,
) -> Vec<Stretch> {
    let run = lowered.run(rank);
    let frozen_ranks = lowered.frozen_ranks(rank);
    let frozen = FrozenRank::all(lowered, &frozen_ranks);
    // Below stage 3 nothing happens to modules: they are told all the same, so that a pass is more than one stretch.
    let told = lowered.micro_step_by_modules();
    let mut follower = Follower::new(
        &run,
        lowered.model(),
        lowered.modules(),
        told.as_ref().unwrap_or(lowered.micro_step()),
        &frozen,
        counting.backend,
    );
    let each = (stretches * 2 / 5).max(1);
    let mut timeline = Vec::with_capacity(stretches);
    follower.last_micro_step(each, &mut |phase, ledger: &Ledger| {
        timeline.push(Stretch { phase, alive: ledger.at_peak_in(Place::Device) });
    });
    let mut update = Update { ledger: Ledger::new(), peaks: Vec::new() };
    for model in &frozen {
        Resident::open(&frozen_rest(&model.real), &mut update.ledger);
    }
    optimizer_step(&run, &mut update);
    let rest = stretches.saturating_sub(timeline.len()).max(1);
    let chunk = update.peaks.len().div_ceil(rest).max(1);
    for peaks in update.peaks.chunks(chunk) {
        if let Some(fullest) = peaks.iter().max_by_key(|rest| rest.at(Place::Device)) {
            timeline.push(Stretch { phase: Phase::Step, alive: fullest.clone() });
        }
    }
    timeline
}

/// Keeps what is alive after every allocation of the update.
struct Update {
    ledger: Ledger,
    peaks: Vec<Rest>,
}

impl Sink for Update {
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle {
        let handle = self.ledger.allocate(category, place, bytes);
        if bytes > 0 {
            self.peaks.push(self.ledger.alive());
        }
        handle
    }

    fn opened(&mut self) {
        self.peaks = vec![self.ledger.alive()];
    }

    fn free(&mut self, handle: Handle) {
        self.ledger.free(handle);
    }
}
