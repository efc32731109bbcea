//! The best way by the time a step takes.
//!
//! A step is simulated for every group with the usual sizes of buffers. The sizes of the fastest group that has room for
//! them, or takes less time than the others even with the smallest, and of the one next to it are then varied one at a time,
//! with overlap and without. That is no proof for the sizes, but a test holds what is found against all combinations.

use zeropilot_units::Elements;

use super::PlanError;
use super::asking::Asker;
use super::fewer::NEGLIGIBLE;
use super::space::Space;
use super::way::{Sizes, Way};
use crate::zero::Stage;

/// A size is changed only if that saves more than this share of the time.
const WORTH_IT: f64 = 1e-3;

/// The fastest way of some groups of a kind, then one that takes hardly longer and leaves headroom, if it does not.
pub(super) fn best_of(
    groups: Vec<Way>,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Vec<Way>, PlanError> {
    let mut open: Vec<(f64, Way)> = Vec::with_capacity(groups.len());
    for group in groups {
        let way = Way { sizes: space.usual(group.shape), ..group };
        open.push((asker.seconds_per_sequence(way)?, way));
    }
    while let Some(first) = fastest(&open) {
        let (seconds, way) = open.swap_remove(first);
        let smallest = space.smallest(way.shape);
        // The smallest are known to fit.
        if way.sizes == smallest || asker.has_room(way)? {
            let limit = seconds * (1.0 + NEGLIGIBLE);
            let mut fastest = tuned(seconds, way, space, asker)?;
            // With other sizes the next one may be the fastest of all.
            let next = fastest_that(&open, limit, |way| asker.has_room(way))?;
            if let Some((seconds, way)) = next {
                let other = tuned(seconds, way, space, asker)?;
                fastest = if other.0 < fastest.0 { other } else { fastest };
            }
            let fastest = fastest.1;
            let mut ways = vec![fastest];
            if !asker.leaves_headroom(fastest)? {
                open.push((seconds, way));
                let roomiest = fastest_that(&open, limit, |way| asker.leaves_headroom(way))?;
                ways.extend(roomiest.map(|(_, way)| way));
            }
            return Ok(ways);
        }
        let way = Way { sizes: smallest, ..way };
        open.push((asker.seconds_per_sequence(way)?, way));
    }
    Ok(Vec::new())
}

/// The fastest way that takes no longer than `limit` and of which something holds.
fn fastest_that(
    ways: &[(f64, Way)],
    limit: f64,
    mut holds: impl FnMut(Way) -> Result<bool, PlanError>,
) -> Result<Option<(f64, Way)>, PlanError> {
    let mut near: Vec<(f64, Way)> = ways.iter().filter(|way| way.0 <= limit).copied().collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    for way in near {
        if holds(way.1)? {
            return Ok(Some(way));
        }
    }
    Ok(None)
}

fn fastest(ways: &[(f64, Way)]) -> Option<usize> {
    let of_two = |a: &usize, b: &usize| ways[*a].0.total_cmp(&ways[*b].0);
    (0..ways.len()).min_by(of_two)
}

/// The same with each size in turn at its best, with overlap and without: which sizes are good depends on it.
fn tuned(
    seconds: f64,
    way: Way,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<(f64, Way), PlanError> {
    let mut best = (seconds, way);
    let changes = variants(way, space);
    for &overlap in &space.overlap {
        let with_overlap = |sizes| Way { sizes: Sizes { overlap, ..sizes }, ..way };
        let mut found = with_overlap(way.sizes);
        if found != way && !asker.has_room(found)? {
            found = with_overlap(space.smallest(way.shape));
            // Where the smallest have no room, nothing has.
            if !asker.has_room(found)? {
                continue;
            }
        }
        let mut taken = asker.seconds_per_sequence(found)?;
        // A second round, since sizes that were varied first were judged beside others.
        for change in changes.iter().chain(&changes) {
            let other = Way { sizes: change(found.sizes), ..found };
            if other == found {
                continue;
            }
            let seconds = asker.seconds_per_sequence(other)?;
            if seconds < taken * (1.0 - WORTH_IT) && asker.has_room(other)? {
                (taken, found) = (seconds, other);
            }
        }
        if taken < best.0 * (1.0 - WORTH_IT) {
            best = (taken, found);
        }
    }
    Ok(best)
}

/// Changes of one size.
fn variants(way: Way, space: &Space) -> Vec<Box<dyn Fn(Sizes) -> Sizes>> {
    let mut variants: Vec<Box<dyn Fn(Sizes) -> Sizes>> = Vec::new();
    let mut vary = |list: &[Elements], set: fn(&mut Sizes, Elements)| {
        for &size in list {
            variants.push(Box::new(move |mut sizes| {
                set(&mut sizes, size);
                sizes
            }));
        }
    };
    match way.shape.stage {
        Stage::Zero => return variants,
        Stage::One | Stage::Two => vary(&space.allgather, |sizes, size| sizes.gather = size),
        Stage::Three => {
            vary(&space.prefetch, |sizes, size| sizes.gather = size);
            vary(&space.persistent, |sizes, size| sizes.persistent = size);
            vary(&space.live, |sizes, size| sizes.live = size);
        }
    }
    vary(&space.reduce, |sizes, size| sizes.reduce = size);
    variants
}
