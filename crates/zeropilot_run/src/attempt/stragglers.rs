//! Finding the rank that the others wait for: where all of them stand is looked at now and then, while training goes on.
//!
//! Ranks that train together have the same step time, whichever of them is slow. What differs is who waits: a rank that is in no
//! collective while all others of this machine are in one keeps them waiting.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use zeropilot_record::{RanksAt, RunEvent};

use super::watch::{Watch, due};
use crate::{hang, stacks};

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// Looks that are judged together.
const LOOKS: usize = 12;
/// The others must wait for one rank in this many of them.
const WAITED: usize = 7;
/// And for none of the others more often than this.
const CHANCE: usize = 2;

/// What the last looks showed.
#[derive(Debug, Default)]
pub(super) struct Stragglers {
    looked: Option<Instant>,
    /// The rank that alone was away, if one was, and where.
    away: VecDeque<Option<RanksAt>>,
    told: Option<u32>,
}

impl Watch<'_> {
    /// Looks where ranks stand, if that was asked for, and says which one keeps the others waiting.
    pub(super) fn find_straggler(&mut self) {
        let is_over = self.has_ended || self.stopping.is_some();
        let is_wanted = self.start.limits.finds_stragglers && !is_over;
        let is_training = self.ranks.len() > 1 && !self.steps.is_empty();
        let Some(handler) = self.start.handler.filter(|_| is_wanted && is_training) else { return };
        if !due(&mut self.stragglers.looked, LOOK) {
            return;
        }
        let stood = stacks::answers(&self.ranks, handler);
        let positions = hang::positions(&stood, self.observed.directory.as_deref());
        if let Some(found) = self.stragglers.look(alone_away(positions)) {
            self.say(found);
        }
    }
}

/// The one rank that is in no collective, if all others are.
fn alone_away(positions: Vec<RanksAt>) -> Option<RanksAt> {
    let (away, waiting): (Vec<RanksAt>, Vec<RanksAt>) =
        positions.into_iter().partition(|at| at.collective.is_none());
    match <[RanksAt; 1]>::try_from(away) {
        Ok([one]) if one.ranks.len() == 1 && one.no_stack.is_none() && !waiting.is_empty() => {
            Some(one)
        }
        _ => None,
    }
}

impl Stragglers {
    fn look(&mut self, away: Option<RanksAt>) -> Option<RunEvent> {
        if self.away.len() == LOOKS {
            self.away.pop_front();
        }
        self.away.push_back(away);
        if self.away.len() < LOOKS {
            return None;
        }
        let rank_of = |at: &RanksAt| at.ranks.first().copied();
        let times =
            |rank: u32| self.away.iter().flatten().filter(|at| rank_of(at) == Some(rank)).count();
        let ranks = self.away.iter().flatten().filter_map(rank_of);
        let rank = ranks.max_by_key(|rank| times(*rank))?;
        let waited = times(rank);
        let others = self.away.iter().flatten().count() - waited;
        if waited < WAITED || others > CHANCE {
            // It may become slow again.
            self.told = self.told.filter(|_| waited > WAITED / 2);
            return None;
        }
        // It is most often where it was slow; the last look may have met it elsewhere.
        let places = self.away.iter().flatten().filter(|at| rank_of(at) == Some(rank));
        let at = places
            .clone()
            .max_by_key(|at| places.clone().filter(|other| other.place == at.place).count())?;
        let found = RunEvent::Straggler { rank, waited, looks: LOOKS, stood: at.clone() };
        let is_news = self.told.replace(rank) != Some(rank);
        is_news.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rank: u32, collective: Option<&str>) -> RanksAt {
        let collective = collective.map(str::to_owned);
        RanksAt { ranks: vec![rank], collective, ..RanksAt::default() }
    }

    #[test]
    fn one_rank_is_away_if_all_others_wait() {
        let reduce = Some("all_reduce");
        let away = |positions: [RanksAt; 3]| alone_away(positions.into()).map(|at| at.ranks[0]);
        assert_eq!(away([at(0, reduce), at(1, None), at(2, reduce)]), Some(1));
        assert_eq!(away([at(0, reduce), at(1, None), at(2, None)]), None);
        assert_eq!(away([at(0, reduce), at(1, reduce), at(2, reduce)]), None);
        assert_eq!(alone_away(vec![at(0, None)]), None, "nobody waits");
    }

    #[test]
    fn a_rank_that_is_waited_for_most_of_the_time_is_told_once() {
        let mut stragglers = Stragglers::default();
        let mut told = |looks: &[Option<u32>]| -> Vec<u32> {
            let each =
                looks.iter().filter_map(|rank| stragglers.look(rank.map(|rank| at(rank, None))));
            let rank = each.map(|event| match event {
                RunEvent::Straggler { rank, .. } => rank,
                other => panic!("{other:?}"),
            });
            rank.collect()
        };
        // Whoever happens to be last differs from look to look.
        let even = [Some(0), Some(1), None, Some(1), Some(0), None];
        assert_eq!(told(&[even, even, even].concat()), Vec::<u32>::new());
        assert_eq!(told(&[Some(1); 24]), [1]);
    }
}
