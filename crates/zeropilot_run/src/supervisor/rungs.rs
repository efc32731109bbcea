//! Which rung comes next: the first that the engine takes and that fits, given what was measured.

use zeropilot_record::{Happening, Memory, Phase};

use super::Run;
use super::following::Next;
use crate::command::value;
use crate::forecast::{Forecast, Measured};
use crate::ladder::{self, BatchArguments, Rung};
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
            self.say(Happening::MemoryCompared {
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

    /// The rung to take, and how many rungs of a plan are used up by then.
    pub(super) fn rung(&self, next: &Next, shortage: &Shortage) -> Option<(Rung, usize)> {
        let below = self.below(next, shortage.memory);
        // What saving takes for a moment is in no prediction.
        let is_comparable =
            shortage.measured.reached > 0 && shortage.measured.phase != Some(Phase::Saving);
        let Some(failed) = shortage.forecast.as_ref().filter(|_| is_comparable) else {
            return below.into_iter().next();
        };
        let known: Vec<((Rung, usize), Option<Forecast>)> = below
            .into_iter()
            .map(|rung| {
                let told = arguments(next).with(&rung.0.arguments);
                let forecast = self.predict.forecast(&rung.0.config, told);
                (rung, forecast)
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
        known.into_iter().nth(chosen).map(|(rung, _)| rung)
    }

    /// Whether the host has room for what a rung moves there.
    fn has_room(&self, shortage: &Shortage, forecast: &Forecast) -> bool {
        shortage.memory == Memory::Host || memory_left().is_none_or(|left| forecast.host <= left)
    }

    /// Everything below, in order, that the engine would take.
    fn below(&self, next: &Next, short: Memory) -> Vec<(Rung, usize)> {
        let Some(config) = &next.config else { return Vec::new() };
        let (arguments, world) = (arguments(next), self.command.world);
        let mut found = Vec::new();
        for (index, plan) in self.policy.rungs.iter().enumerate().skip(next.planned) {
            found.push((ladder::overlaid(config, plan, arguments, (world, short)), index + 1));
        }
        // A plan may have few rungs that a config alone can take; the fixed ones come after it.
        let (mut lower, mut told) = (config.clone(), arguments);
        while let Some(rung) = ladder::next(&lower, told, world, short) {
            lower.clone_from(&rung.config);
            told = told.with(&rung.arguments);
            found.push((rung, self.policy.rungs.len()));
        }
        let is_other = |rung: &Rung| rung.config != *config || !rung.arguments.is_empty();
        found.retain(|(rung, _)| is_other(rung) && (self.judge)(&rung.config));
        found
    }
}

fn arguments(next: &Next) -> BatchArguments {
    BatchArguments::read(|name| value(&next.words, name))
}
