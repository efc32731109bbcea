//! Bounds with a stated meaning: within them lay nine tenths of the published runs like the one asked about.
//!
//! A residual is the logarithm of measurement over prediction. The bounds of a group are the quantile of the sizes of its
//! residuals, with the correction for a finite number of rows (split conformal prediction). They are the same either way,
//! since the sign of the error changes from source to source. How well they hold is told with every
//! source left out once: its rows are judged by bounds from all others.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use zeropilot_step::conformal::{SHARE, quantile};
use zeropilot_step::lower::Method;
use zeropilot_step::memory::Group;

use crate::judgement::Judged;

/// Of fewer rows none is left outside.
const LEAST: usize = 19;

/// The bounds of a group: measured over predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// What is known of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    /// Which.
    pub group: &'static str,
    /// From all rows of the group.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// Rows they rest on.
    pub rows: usize,
    /// Sources of the rows.
    pub sources: usize,
    /// Rows within bounds that come from all other sources.
    pub inside: usize,
    /// Rows below the upper of those bounds.
    pub below: usize,
}

/// A row as far as it matters here.
#[derive(Debug, Clone, Copy)]
struct Residual<'r> {
    source: &'r str,
    group: Group,
    log: f64,
}

impl<'r> Residual<'r> {
    fn of(judged: &Judged<'r>) -> Option<Self> {
        let question = judged.question.as_ref().ok()?;
        let log = -judged.error()?.ln_1p();
        Some(Self {
            source: judged.row.prefix(),
            group: Group::of(matches!(question.method, Method::QLora { .. })),
            log,
        })
    }
}

/// The bounds of every group from the rows that take part in them, and for every row those that its own source has no
/// part in.
pub fn calibrate<'r>(
    rows: &mut [Judged<'r>],
    takes_part: impl Fn(&Judged<'r>) -> bool,
) -> Vec<Calibrated> {
    let residuals: Vec<Option<Residual<'_>>> = rows.iter().map(Residual::of).collect();
    let parts = rows.iter().zip(&residuals).filter(|(judged, _)| takes_part(judged));
    let known: Vec<Residual<'_>> = parts.filter_map(|(_, residual)| *residual).collect();
    let mut apart: BTreeMap<(&str, Group), Bounds> = BTreeMap::new();
    for (judged, residual) in rows.iter_mut().zip(&residuals) {
        let Some(Residual { source, group, .. }) = *residual else { continue };
        let bounds = apart
            .entry((source, group))
            .or_insert_with(|| bounds(known.iter().filter(|other| other.source != source), group));
        judged.bounds = Some(*bounds);
    }
    Group::ALL.into_iter().filter_map(|group| of_group(group, &known, &apart)).collect()
}

fn of_group(
    group: Group,
    known: &[Residual<'_>],
    apart: &BTreeMap<(&str, Group), Bounds>,
) -> Option<Calibrated> {
    let own: Vec<&Residual<'_>> = known.iter().filter(|other| other.group == group).collect();
    own.first()?;
    let sources: BTreeSet<&str> = own.iter().map(|residual| residual.source).collect();
    let count = |holds: &dyn Fn(f64, Bounds) -> bool| {
        let held = own.iter().filter(|residual| {
            let bounds = apart.get(&(residual.source, residual.group));
            bounds.is_some_and(|bounds| holds(residual.log.exp(), *bounds))
        });
        held.count()
    };
    Some(Calibrated {
        group: group.name(),
        bounds: bounds(known.iter(), group),
        rows: own.len(),
        sources: sources.len(),
        inside: count(&|ratio, bounds| bounds.contain(ratio)),
        below: count(&|ratio, bounds| ratio <= bounds.high),
    })
}

impl Bounds {
    /// Whether a ratio lies within.
    pub fn contain(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }
}

/// The bounds of a group; of all rows where the group has too few.
fn bounds<'r>(known: impl Iterator<Item = &'r Residual<'r>> + Clone, group: Group) -> Bounds {
    let logs = |residuals: &mut dyn Iterator<Item = &'r Residual<'r>>| -> Vec<f64> {
        residuals.map(|residual| residual.log).collect()
    };
    let mut own = logs(&mut known.clone().filter(|residual| residual.group == group));
    if own.len() < LEAST {
        own = logs(&mut known.clone());
    }
    own.iter_mut().for_each(|log| *log = log.abs());
    let high = quantile(&mut own, SHARE).exp();
    Bounds { low: rounded(high.recip()), high: rounded(high) }
}

/// To a thousandth, which is finer than it is known.
fn rounded(factor: f64) -> f64 {
    (factor * 1000.0).round() / 1000.0
}

/// `knowledge/field/interval.json`.
pub fn file(groups: &[Calibrated]) -> String {
    let value = serde_json::json!({ "share": SHARE, "groups": groups });
    format!("{:#}\n", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_few_rows_has_the_bounds_of_all() {
        let row = |group, log| Residual { source: "a", group, log };
        let mut known: Vec<Residual<'_>> =
            (0..40).map(|place| row(Group::Full, f64::from(place) / 100.0)).collect();
        known.push(row(Group::FourBit, 2.0));
        let of = |group| bounds(known.iter(), group);
        // 0.9 × 41 of forty sizes is the 37th, 0.9 × 42 of all is the 38th.
        assert_eq!(of(Group::Full).high, rounded((0.36_f64).exp()));
        assert_eq!(of(Group::FourBit).high, rounded((0.37_f64).exp()));
        assert_eq!(of(Group::FourBit).low, rounded((-0.37_f64).exp()));
    }
}
