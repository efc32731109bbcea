//! One recipe in three sizes, to compare speed and memory while training stays the same.
//!
//! The samples per step are kept: a smaller micro batch is made up for by more accumulation. What changes is how
//! much memory is spent on activations and on communication.

use std::num::NonZeroU64;

use zeropilot_config::schema::EngineVersion;
use zeropilot_units::Elements;

use crate::batch::Batch;
use crate::knob::Knob;
use crate::recipe::Recipe;
use crate::zero::Stage;

/// A size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Half the micro batch, a quarter of the buffers.
    Small,
    /// As asked for.
    Medium,
    /// Twice the micro batch, four times the buffers.
    Large,
}

const BUFFER_FACTOR: u64 = 4;

impl Tier {
    /// From the least memory to the most.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    /// The keys that decide how much memory communication takes, by stage.
    pub fn buffers(stage: Stage) -> &'static [Knob] {
        match stage {
            Stage::Zero => &[],
            Stage::One | Stage::Two => &[Knob::ReduceBucketSize, Knob::AllgatherBucketSize],
            Stage::Three => &[
                Knob::ReduceBucketSize,
                Knob::PrefetchBucketSize,
                Knob::MaxLiveParameters,
                Knob::MaxReuseDistance,
            ],
        }
    }

    fn scaled(self, elements: Elements) -> Elements {
        let Elements(elements) = elements;
        Elements(match self {
            // Even, as `allgather_bucket_size` must be, and never nothing.
            Self::Small => (elements / BUFFER_FACTOR / 2 * 2).max(2),
            Self::Medium => elements,
            Self::Large => elements.saturating_mul(BUFFER_FACTOR),
        })
    }

    /// Another micro batch with the same number of samples per step, where that can be.
    fn batch(self, batch: Batch) -> Batch {
        let halved = |number: NonZeroU64| {
            NonZeroU64::new(number.get() / 2).filter(|_| number.get().is_multiple_of(2))
        };
        let doubled = |number: NonZeroU64| number.checked_mul(NonZeroU64::MIN.saturating_add(1));
        let (micro, accumulation) = match self {
            Self::Small => (halved(batch.micro), doubled(batch.accumulation)),
            Self::Medium => (None, None),
            Self::Large => (doubled(batch.micro), halved(batch.accumulation)),
        };
        match (micro, accumulation) {
            (Some(micro), Some(accumulation)) => Batch { micro, accumulation, ..batch },
            _ => batch,
        }
    }
}

impl Recipe {
    /// The recipe in one of three sizes. Buffers become numbers in all three, so that they can be compared.
    #[must_use]
    pub fn tier(&self, tier: Tier) -> Self {
        let mut recipe = self.clone();
        recipe.batch = tier.batch(self.batch);
        for &knob in Tier::buffers(self.zero.stage()) {
            let Some(elements) = self.elements(knob).or_else(|| default(knob)) else { continue };
            recipe.knobs.set_elements(knob, tier.scaled(elements));
            recipe.filled.retain(|filled| *filled != knob);
            recipe.sized.retain(|sized| sized.knob != knob);
        }
        recipe
    }
}

/// The engine's own default of a key of `zero_optimization`.
fn default(knob: Knob) -> Option<Elements> {
    let model = EngineVersion::NEWEST.schema().section_model("zero_optimization")?;
    model.field_for_key(knob.key())?.default.as_u64().map(Elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchRequest, Preset, Request};

    fn recipe(preset: Preset, micro: u64, accumulation: u64) -> Recipe {
        let batch = BatchRequest {
            micro: NonZeroU64::new(micro),
            accumulation: NonZeroU64::new(accumulation),
            ..BatchRequest::default()
        };
        let request = Request { preset: Some(preset), batch, ..Request::default() };
        request.recipe().expect("a preset alone holds together")
    }

    #[test]
    fn every_tier_trains_on_the_same_samples() {
        for (micro, accumulation) in [(2, 32), (1, 8), (4, 3), (3, 5), (1, 1)] {
            let recipe = recipe(Preset::Zero3, micro, accumulation);
            for tier in Tier::ALL {
                let Batch { micro: at_once, accumulation: times, .. } = recipe.tier(tier).batch;
                assert_eq!(at_once.get() * times.get(), micro * accumulation, "{tier:?}");
            }
        }
    }

    /// The engine's default `reduce_bucket_size` is 5e8, and `stage3_prefetch_bucket_size` 5e7.
    #[test]
    fn buffers_are_quartered_and_quadrupled() {
        let recipe = recipe(Preset::Zero3, 2, 2);
        let sizes = |knob: Knob| {
            Tier::ALL.map(|tier| recipe.tier(tier).elements(knob).expect("a number").0)
        };
        assert_eq!(sizes(Knob::ReduceBucketSize), [125_000_000, 500_000_000, 2_000_000_000]);
        assert_eq!(sizes(Knob::PrefetchBucketSize), [12_500_000, 50_000_000, 200_000_000]);
        assert_eq!(recipe.tier(Tier::Small).batch.micro.get(), 1);
        assert_eq!(recipe.tier(Tier::Large).batch.accumulation.get(), 1);
    }
}
