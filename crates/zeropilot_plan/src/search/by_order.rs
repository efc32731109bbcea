//! The best way by the documented order, which costs nothing to ask.

use super::PlanError;
use super::asking::Asker;
use super::space::Space;
use super::way::{Sizes, Way};

/// The least costly way of some groups of a kind, if any.
///
/// Larger buffers need more memory: where some do not fit, no larger ones are asked about.
pub(super) fn best_of(
    mut groups: Vec<Way>,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Vec<Way>, PlanError> {
    groups.sort_by(|a, b| a.least_cost().total_cmp(&b.least_cost()));
    let mut best: Option<Way> = None;
    for group in groups {
        let limit = best.map_or(f64::INFINITY, |best| best.cost());
        if group.least_cost() >= limit {
            break;
        }
        best = best_sizes(group, &space.sizes(group.shape), limit, asker)?.or(best);
    }
    Ok(best.into_iter().collect())
}

/// The least costly sizes that fit, if they cost less than `limit`.
fn best_sizes(
    group: Way,
    sizes: &[Sizes],
    limit: f64,
    asker: &mut Asker<'_>,
) -> Result<Option<Way>, PlanError> {
    let ways = sizes.iter().map(|sizes| Way { sizes: *sizes, ..group });
    let mut ways: Vec<(f64, Way)> = ways.map(|way| (way.cost(), way)).collect();
    ways.retain(|(cost, _)| *cost < limit);
    ways.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut open: Vec<Way> = ways.into_iter().map(|(_, way)| way).collect();
    let mut best = None;
    // Where there is room enough, the least costly of all fit.
    let mut next = (!open.is_empty()).then_some(0);
    while let Some(index) = next {
        let way = open[index];
        // The smallest are known to fit.
        if way.sizes == group.sizes || asker.has_room(way)? {
            best = Some(way);
            open.truncate(index);
        } else {
            open.retain(|other| !way.sizes.is_within(&other.sizes));
        }
        next = most_telling(&open);
    }
    Ok(best)
}

/// Which of some ways, sorted by cost, leaves the fewest open whether it fits or not: if it does, those that cost more
/// are out, and if it does not, those that are larger.
fn most_telling(open: &[Way]) -> Option<usize> {
    (0..open.len()).max_by_key(|&index| {
        let sizes = open[index].sizes;
        let larger = open.iter().filter(|other| sizes.is_within(&other.sizes)).count();
        larger.min(open.len() - index)
    })
}
