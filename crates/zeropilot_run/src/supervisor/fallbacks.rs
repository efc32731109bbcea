//! Which fallback comes next: the first that the engine takes and that fits, given what was measured.

use zeropilot_record::{Memory, NoResume, Phase, RunEvent};

use super::Run;
use super::following::Next;
use crate::command::value;
use crate::fallbacks::{self, BatchArguments, Fallback};
use crate::forecast::{Forecast, Measured};
use crate::memory_group::memory_left;
use crate::observed::Observed;

/// What ran out, and what was known about it.
pub(super) struct Shortage {
    pub(super) memory: Memory,
    measured: Measured,
    /// What the config that failed was predicted to need.
    forecast: Option<Forecast>,
}

impl Run<'_> {
    /// Compares what was measured with the prediction, and says so.
    pub(super) fn compare(
        &self,
        next: &Next,
        observed: &Observed,
        memory: Memory,
        phase: Option<Phase>,
    ) -> Shortage {
        let measured = observed.measured(memory, phase);
        let forecast = |config| self.predict.forecast(config, arguments(next));
        let forecast = next.config.as_ref().and_then(forecast);
        if let Some(peak) = forecast.as_ref().and_then(|forecast| forecast.compared(&measured))
            && measured.reached > 0
        {
            self.say(RunEvent::MemoryCompared {
                rank: measured.rank,
                phase: peak.phase,
                measured: measured.needed(),
                predicted: peak.bytes,
                terms: peak.terms.clone(),
                larger: measured.larger(peak).map(str::to_owned),
            });
        }
        Shortage { memory, measured, forecast }
    }

    /// The fallback to take, and how many fallbacks of a plan are used up by then. With a checkpoint, those that cannot resume
    /// from it are taken only if that is allowed.
    pub(super) fn fallback(&self, next: &Next, shortage: &Shortage) -> Option<(Fallback, usize)> {
        let below = self.below(next, shortage.memory);
        let Some(found) = self.checkpoint(next).filter(|_| !self.policy.allows_scratch) else {
            return self.first_with_room(below, next, shortage);
        };
        let can_resume = self.resume_option().is_some();
        let keeps = |fallback: &Fallback| {
            can_resume && found.shape.suits(fallback.strategy.stage, self.command.world)
        };
        let (kept, lost): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|(fallback, _)| keeps(fallback));
        let chosen = self.first_with_room(kept, next, shortage);
        if chosen.is_none() && !lost.is_empty() {
            let reason = if can_resume { NoResume::OtherShape } else { NoResume::OptionUnknown };
            self.refuse_scratch(reason, &found);
        }
        chosen
    }

    /// The first of these fallbacks that fits, as far as it is known.
    fn first_with_room(
        &self,
        below: Vec<(Fallback, usize)>,
        next: &Next,
        shortage: &Shortage,
    ) -> Option<(Fallback, usize)> {
        // What saving takes for a moment is in no prediction.
        let is_comparable =
            shortage.measured.reached > 0 && shortage.measured.phase != Some(Phase::Saving);
        let Some(failed) = shortage.forecast.as_ref().filter(|_| is_comparable) else {
            return below.into_iter().next();
        };
        let known: Vec<((Fallback, usize), Option<Forecast>)> = below
            .into_iter()
            .map(|fallback| {
                let told = arguments(next).with(&fallback.0.arguments);
                let forecast = self.predict.forecast(&fallback.0.config, told);
                (fallback, forecast)
            })
            .filter(|(_, forecast)| {
                forecast.as_ref().is_none_or(|forecast| self.has_room(shortage, forecast))
            })
            .collect();
        let fits = |forecast: &Option<Forecast>| {
            forecast.as_ref().is_none_or(|forecast| forecast.fits_where(failed, &shortage.measured))
        };
        let first = known.iter().position(|(_, forecast)| fits(forecast));
        // If none is predicted to fit, one is still worth a try. What a GPU holds is predicted well, so it is the one that
        // needs least. A process keeps much of what it freed, more of it in a lower stage, so there it is the next.
        let needs = |index: &usize| known[*index].1.as_ref().map_or(u64::MAX, Forecast::peak);
        let instead = || match shortage.memory {
            Memory::Device => {
                (0..known.len()).min_by_key(needs).filter(|least| needs(least) < failed.peak())
            }
            Memory::Host => (0..known.len()).find(|index| needs(index) <= failed.peak()),
        };
        let chosen = first.or_else(instead)?;
        known.into_iter().nth(chosen).map(|(fallback, _)| fallback)
    }

    /// Whether the host has room for what a fallback moves there.
    fn has_room(&self, shortage: &Shortage, forecast: &Forecast) -> bool {
        shortage.memory == Memory::Host || memory_left().is_none_or(|left| forecast.host <= left)
    }

    /// Everything below, in order, that the engine would take. Where the run has a checkpoint, what can go on from it
    /// comes first: the rest begins anew.
    fn below(&self, next: &Next, short: Memory) -> Vec<(Fallback, usize)> {
        let Some(config) = &next.config else { return Vec::new() };
        let (arguments, world) = (arguments(next), self.command.world);
        let shape = self.checkpoint(next).map(|checkpoint| checkpoint.shape);
        let shape = shape.filter(|_| self.resume_option().is_some());
        let keeps = |stage: u64| shape.is_some_and(|shape| shape.suits(stage, world));
        let mut found = Vec::new();
        for (index, plan) in self.policy.fallbacks.iter().enumerate().skip(next.planned) {
            found.push((fallbacks::overlaid(config, plan, arguments, (world, short)), index + 1));
        }
        // A plan may have few fallbacks that a config alone can take; the fixed ones come after it.
        let descents: [&dyn Fn(u64) -> bool; 2] = [&keeps, &|_| true];
        for may_use in descents.into_iter().skip(usize::from(shape.is_none())) {
            let (mut lower, mut told) = (config.clone(), arguments);
            while let Some(fallback) = fallbacks::next_within(&lower, told, world, short, may_use) {
                lower.clone_from(&fallback.config);
                told = told.with(&fallback.arguments);
                found.push((fallback, self.policy.fallbacks.len()));
            }
        }
        let is_other =
            |fallback: &Fallback| fallback.config != *config || !fallback.arguments.is_empty();
        found.retain(|(fallback, _)| is_other(fallback) && (self.judge)(&fallback.config));
        found.sort_by_key(|(fallback, _)| shape.is_some() && !keeps(fallback.strategy.stage));
        found
    }
}

fn arguments(next: &Next) -> BatchArguments {
    BatchArguments::read(|name| value(&next.words, name))
}
