//! Micro steps on the allocator: how much more is reserved than tensors hold.
//!
//! What ZeRO keeps is put down first, then the activations and gradients of a few micro steps come and go as their
//! traces say. Where the lengths of sequences vary, every length brings blocks of other sizes, and what is cached of one
//! is in the way of the next. What ZeRO gathers and copies in between is not replayed, so that this is the share of the
//! model alone.

use std::collections::BTreeMap;

use zeropilot_units::Bytes;

use super::allocator::{Allocation, Allocator, OutOfMemory, Settings};
use crate::model::ParameterId;
use crate::tape::{Listener, Storage, StorageId, Trace};

/// Rounds until the cache no longer grows: the first finds it empty.
const ROUNDS: usize = 3;

/// The highest points of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// What tensors held.
    pub allocated: Bytes,
    /// What was taken from the driver.
    pub reserved: Bytes,
}

impl Replayed {
    /// What is reserved and holds no tensor when both are highest.
    pub fn slack(&self) -> Bytes {
        self.reserved.saturating_sub(self.allocated)
    }
}

/// What becomes of a finished gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradients {
    /// It stays until the step.
    Kept,
    /// It is copied into a bucket and let go.
    Bucketed,
}

/// What is on a GPU before the first step.
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// What the engine builds its buffers from; it is freed, and its blocks stay in the cache.
    pub freed: Vec<Bytes>,
    /// What stays.
    pub resident: Vec<Bytes>,
}

/// Replays micro steps on the allocator, a few times over, beside what is there before they run.
///
/// # Errors
///
/// If the settings have a limit and it does not fit.
pub fn replay(
    micro_steps: &[Trace],
    before: &Before,
    gradients: Gradients,
    settings: Settings,
) -> Result<Replayed, OutOfMemory> {
    let mut follower = Follower::new(gradients, settings);
    let freed: Vec<Allocation> =
        before.freed.iter().filter_map(|bytes| follower.take(bytes.0)).collect();
    for bytes in &before.resident {
        follower.take(bytes.0);
    }
    freed.into_iter().for_each(|allocation| follower.allocator.free(allocation));
    for _ in 0..ROUNDS {
        let taken = follower.allocator.taken();
        for trace in micro_steps {
            trace.replay(&mut follower);
            follower.end_micro_step();
        }
        // All that came is gone and its blocks have joined again: the next round would find what this one found.
        if follower.allocator.taken() == taken {
            break;
        }
    }
    follower.finish()
}

struct Follower {
    allocator: Allocator,
    gradients: Gradients,
    /// By [`StorageId::index`].
    alive: Vec<Option<Allocation>>,
    kept: Vec<Allocation>,
    /// Parts of gradients that wait for the rest.
    parts: BTreeMap<ParameterId, Allocation>,
    failure: Option<OutOfMemory>,
}

impl Follower {
    fn new(gradients: Gradients, settings: Settings) -> Self {
        let allocator = Allocator::new(settings);
        Self {
            allocator,
            gradients,
            alive: Vec::new(),
            kept: Vec::new(),
            parts: BTreeMap::new(),
            failure: None,
        }
    }

    fn take(&mut self, bytes: u64) -> Option<Allocation> {
        match self.allocator.allocate(bytes) {
            Ok(allocation) => Some(allocation),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                None
            }
        }
    }

    /// A gradient, added to the parts of it that came before.
    fn with_parts(&mut self, parameter: ParameterId, id: StorageId) -> Option<Allocation> {
        let own = self.alive.get_mut(id.index()).and_then(Option::take);
        let Some(sum) = self.parts.remove(&parameter) else { return own };
        own.into_iter().for_each(|own| self.allocator.free(own));
        Some(sum)
    }

    fn end_micro_step(&mut self) {
        for allocation in std::mem::take(&mut self.kept) {
            self.allocator.free(allocation);
        }
        for allocation in self.alive.drain(..).flatten() {
            self.allocator.free(allocation);
        }
    }

    fn finish(self) -> Result<Replayed, OutOfMemory> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(Replayed {
                allocated: self.allocator.peak_allocated(),
                reserved: self.allocator.peak_reserved(),
            }),
        }
    }
}

impl Listener for Follower {
    fn allocate(&mut self, id: StorageId, storage: Storage) {
        if self.alive.len() <= id.index() {
            self.alive.resize(id.index() + 1, None);
        }
        self.alive[id.index()] = self.take(storage.bytes);
    }

    fn free(&mut self, id: StorageId, _storage: Storage) {
        if let Some(allocation) = self.alive.get_mut(id.index()).and_then(Option::take) {
            self.allocator.free(allocation);
        }
    }

    fn part_of_gradient(&mut self, parameter: ParameterId, id: StorageId, _storage: Storage) {
        if let Some(sum) = self.with_parts(parameter, id) {
            self.parts.insert(parameter, sum);
        }
    }

    fn gradient(&mut self, parameter: ParameterId, id: StorageId, _storage: Storage) {
        let Some(allocation) = self.with_parts(parameter, id) else { return };
        match self.gradients {
            Gradients::Kept => self.kept.push(allocation),
            Gradients::Bucketed => self.allocator.free(allocation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Category, Event};

    /// A trace that holds storages of these sizes together and lets them go in order.
    fn trace(sizes: &[u64]) -> Trace {
        let ids: Vec<StorageId> = (0..sizes.len()).map(StorageId::new).collect();
        let allocate = ids.iter().map(|id| Event::Allocate(*id));
        let free = ids.iter().map(|id| Event::Free(*id));
        let storage = |bytes: &u64| Storage { bytes: *bytes, category: Category::Activation };
        Trace {
            events: allocate.chain(free).collect(),
            storages: sizes.iter().map(storage).collect(),
            ..Trace::default()
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_step_that_repeats_reuses_its_blocks() {
        let steps = [trace(&[30 * MIB, 50 * MIB])];
        let before = Before { resident: vec![Bytes(100 * MIB)], ..Before::default() };
        let replayed = replay(&steps, &before, Gradients::Kept, Settings::default());
        let replayed = replayed.unwrap();
        assert_eq!((replayed.allocated, replayed.slack()), (Bytes(180 * MIB), Bytes(0)));
    }

    /// 30 + 50, then 40 + 60: of the first pair only the 50 serves, for the 40; 60 more are reserved.
    #[test]
    fn steps_of_varying_length_leave_blocks_that_do_not_fit() {
        let steps = [trace(&[30 * MIB, 50 * MIB]), trace(&[40 * MIB, 60 * MIB])];
        let replayed =
            replay(&steps, &Before::default(), Gradients::Kept, Settings::default()).unwrap();
        assert_eq!((replayed.allocated, replayed.reserved), (Bytes(100 * MIB), Bytes(140 * MIB)));
    }
}
