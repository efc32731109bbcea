//! What to fall back to when the choice runs out of device memory after all.
//!
//! A fallback is taken when the run before it failed, so that it has to need clearly less, and nothing is gained by one that
//! another beats in both memory and time. Going down, sequences are never added to a micro batch, and accumulation makes
//! up for those taken from it: a step remains what it was. What the script already does to save memory it keeps doing.

use std::cmp::Ordering;

use zeropilot_units::Bytes;

use super::asking::Asker;
use super::space::Space;
use super::way::{Shape, Sizes, Way, Work};
use super::{Fitting, PlanError};

/// A fallback saves at least this share of a GPU: a smaller one is within what predictions miss.
const STEP: u64 = 20;

/// The last one, below which there is nothing, at least this share.
const LAST_STEP: u64 = 100;

/// A fallback is left out if the next one, which needs clearly less, takes hardly more of the time.
const AS_FAST: f64 = 1.05;

struct Candidate {
    way: Way,
    need: Bytes,
    cost: f64,
}

impl Candidate {
    fn by_need(&self, other: &Self) -> Ordering {
        self.need.cmp(&other.need).then(self.cost.total_cmp(&other.cost))
    }
}

/// The fallbacks below the first of what fits.
pub(super) fn below(
    space: &Space,
    asker: &mut Asker<'_>,
    fitting: &[Fitting],
) -> Result<Vec<Fitting>, PlanError> {
    let Some((choice, others)) = fitting.split_first() else { return Ok(Vec::new()) };
    let mut reached = choice.answer.device().expected();
    let device = asker.capacity().0;
    let mut candidates = Vec::new();
    for way in ways(choice.way, others, space) {
        if let Some(need) = asker.need_if_it_fits(way)?.filter(|need| *need < reached) {
            candidates.push(Candidate { way, need, cost: asker.cost(way)? });
        }
    }
    let mut fallbacks: Vec<&Candidate> = Vec::new();
    while let Some(fallback) = next(&candidates, reached.saturating_sub(Bytes(device / STEP))) {
        reached = fallback.need;
        if fallbacks.last().is_some_and(|above| fallback.cost <= above.cost * AS_FAST) {
            fallbacks.pop();
        }
        fallbacks.push(fallback);
    }
    let least = candidates.iter().min_by(|a, b| a.by_need(b));
    let is_lower = |least: &&Candidate| least.need + Bytes(device / LAST_STEP) <= reached;
    fallbacks.extend(least.filter(is_lower));
    fallbacks.into_iter().map(|fallback| asker.fitting(fallback.way)).collect()
}

/// The fastest that needs no more than this; of those, the one that needs least.
fn next(candidates: &[Candidate], at_most: Bytes) -> Option<&Candidate> {
    let low = candidates.iter().filter(|candidate| candidate.need <= at_most);
    low.min_by(|a, b| a.cost.total_cmp(&b.cost).then(a.by_need(b)))
}

/// Every way that may be a fallback: the others that fit, and each shape with no more work at once than the choice has.
fn ways(choice: Way, others: &[Fitting], space: &Space) -> Vec<Way> {
    let work = work(choice.work, space);
    let mut ways: Vec<Way> = others.iter().map(|other| other.way).collect();
    ways.retain(|way| work.contains(&way.work));
    for &shape in &space.shapes {
        let mut sizes = vec![space.smallest(shape), space.usual(shape)];
        sizes.extend((shape.stage == choice.shape.stage).then_some(choice.sizes));
        ways.extend(of_shape(shape, choice.hpz, &work, &sizes, space));
    }
    let mut seen = std::collections::HashSet::new();
    ways.retain(|way| *way != choice && seen.insert(*way));
    ways
}

fn of_shape(shape: Shape, hpz: u64, work: &[Work], sizes: &[Sizes], space: &Space) -> Vec<Way> {
    let groups = space.hpz_of(shape).iter().filter(|&&size| size == 1 || size == hpz);
    let mut ways = Vec::new();
    for &hpz in groups {
        for &work in work {
            ways.extend(sizes.iter().map(|&sizes| Way { shape, work, hpz, sizes }));
        }
    }
    ways
}

/// The same sequences per step in micro batches that are no larger, with all that the choice does to save memory.
fn work(choice: Work, space: &Space) -> Vec<Work> {
    let sequences = choice.micro_batch * choice.accumulation;
    let mut all = Vec::new();
    for &micro_batch in &space.micro_batches {
        if micro_batch > choice.micro_batch || !sequences.is_multiple_of(micro_batch) {
            continue;
        }
        for &checkpointing in space.checkpointing.iter().filter(|is| **is >= choice.checkpointing) {
            for &fused_loss in space.fused_loss.iter().filter(|is| **is >= choice.fused_loss) {
                let accumulation = sequences / micro_batch;
                all.push(Work { micro_batch, accumulation, checkpointing, fused_loss, ..choice });
            }
        }
    }
    all
}
