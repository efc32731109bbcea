//! What of a way is given, so that the search chooses the rest.

use std::num::NonZeroU64;

use super::way::{Offloaded, Shape};
use crate::zero::Stage;

/// What is given; everything else is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// The stage.
    pub stage: Option<Stage>,
    /// What is kept off the GPUs, in host memory or on a disk.
    pub offloaded: Option<Offloaded>,
    /// Sequences a GPU takes at once.
    pub micro_batch: Option<NonZeroU64>,
    /// Whether layers are recomputed in backward.
    pub checkpointing: Option<bool>,
}

impl Held {
    /// Whether the search chooses everything.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn allows(&self, shape: Shape) -> bool {
        self.stage.is_none_or(|stage| shape.stage == stage)
            && self
                .offloaded
                .is_none_or(|offloaded| shape.offloaded.in_host() == offloaded.in_host())
    }

    /// All shapes that are allowed. Nobody who may choose offloads the optimizer of stage 1: stage 2 needs less and takes
    /// no longer.
    pub(super) fn shapes(&self) -> impl Iterator<Item = Shape> {
        let of_stage_1 = Shape { stage: Stage::One, offloaded: Offloaded::Optimizer };
        let is_asked = self.stage == Some(Stage::One);
        let all = Shape::ALL.into_iter().chain(is_asked.then_some(of_stage_1));
        all.filter(|shape| self.allows(*shape))
    }
}
