//! The best way by the time a step takes.
//!
//! A step is simulated for every group with the usual sizes of buffers. The fastest group that has room for them, or
//! takes less time than the others even with the smallest, is the best one; its sizes are then varied one at a time. That is
//! no proof for the sizes, but they matter little: against all combinations what is found was never a percent slower.

use zeropilot_units::Elements;

use super::PlanError;
use super::asking::Asker;
use super::space::Space;
use super::way::{Sizes, Way};
use crate::zero::Stage;

/// A size is changed only if that saves more than this share of the time.
const WORTH_IT: f64 = 1e-3;

/// The fastest way of some groups of a shape.
pub(super) fn best_of(
    groups: Vec<Way>,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Option<Way>, PlanError> {
    let mut open: Vec<(f64, Way)> = Vec::with_capacity(groups.len());
    for group in groups {
        let way = Way { sizes: space.usual(group.shape), ..group };
        open.push((asker.seconds_per_sequence(way)?, way));
    }
    while let Some(first) = fastest(&open) {
        let (seconds, way) = open.swap_remove(first);
        let smallest = space.sizes(way.shape)[0];
        // The smallest are known to fit.
        if way.sizes == smallest || asker.has_room(way)? {
            return tuned(seconds, way, space, asker).map(Some);
        }
        let way = Way { sizes: smallest, ..way };
        open.push((asker.seconds_per_sequence(way)?, way));
    }
    Ok(None)
}

fn fastest(ways: &[(f64, Way)]) -> Option<usize> {
    let of_two = |a: &usize, b: &usize| ways[*a].0.total_cmp(&ways[*b].0);
    (0..ways.len()).min_by(of_two)
}

/// The same with each size in turn at its best.
fn tuned(
    mut seconds: f64,
    mut way: Way,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Way, PlanError> {
    for sizes in variants(way, space) {
        // Each variant changes one size; the others are the best so far.
        let other = Way { sizes: sizes(way.sizes), ..way };
        if other == way {
            continue;
        }
        let taken = asker.seconds_per_sequence(other)?;
        if taken < seconds * (1.0 - WORTH_IT) && asker.has_room(other)? {
            (seconds, way) = (taken, other);
        }
    }
    Ok(way)
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
    for &overlap in &space.overlap {
        variants.push(Box::new(move |sizes| Sizes { overlap, ..sizes }));
    }
    variants
}
