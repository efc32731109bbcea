//! What an attempt was measured to need.

use serde::{Deserialize, Serialize};

use crate::event::{Event, RunEvent};

/// What an attempt needed, of the rank that needed most; what was not measured is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes of the GPU as the driver counts them for the process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<u64>,
    /// Resident bytes of the process on the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resident: Option<u64>,
    /// Bytes of tensors, as the log tells: `torch.cuda.max_memory_allocated`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allocated: Option<u64>,
    /// Bytes that PyTorch took from the driver, as the log tells: `torch.cuda.max_memory_reserved`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reserved: Option<u64>,
    /// Seconds of an optimizer step, of which half took at most as long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step_seconds: Option<f64>,
    /// Seconds of its parts, where DeepSpeed's `wall_clock_breakdown` prints them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts: Option<StepParts>,
}

/// Seconds of the parts of an optimizer step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StepParts {
    /// All forward passes.
    pub forward: f64,
    /// All backward passes.
    pub backward: f64,
    /// The optimizer step.
    pub step: f64,
}

/// Steps after the first that are not timed: kernels are chosen and caches filled in them.
const WARM_UP: u64 = 2;
/// Intervals between steps that a time per step rests on at least.
const INTERVALS: usize = 3;

impl Measured {
    /// What the events of one attempt measured, and its last step.
    pub fn of(events: impl IntoIterator<Item = Event>, number: u32) -> (Self, u64) {
        let mut measured = Self::default();
        let mut steps: Vec<(f64, u64)> = Vec::new();
        let mut is_it = number == 1;
        for event in events {
            match &event.happening {
                RunEvent::AttemptStarted { attempt, .. } => is_it = *attempt == number,
                _ if !is_it => {}
                RunEvent::Step { step, .. } => steps.push((event.at, *step)),
                RunEvent::Memory { ranks } => {
                    measured.resident =
                        measured.resident.max(ranks.iter().map(|rank| rank.rss).max());
                }
                RunEvent::Gpus { gpus } => {
                    let of_ranks = gpus.iter().flat_map(|gpu| {
                        let ranks = gpu.processes.iter().filter_map(|process| process.rank);
                        ranks.filter_map(|rank| gpu.of_rank(rank))
                    });
                    measured.device = measured.device.max(of_ranks.max());
                }
                RunEvent::Allocator { allocated, reserved } => {
                    measured.allocated = measured.allocated.max(*allocated);
                    measured.reserved = measured.reserved.max(*reserved);
                }
                _ => {}
            }
        }
        measured.step_seconds = step_seconds(&steps);
        (measured, steps.last().map_or(0, |(_, step)| *step))
    }
}

/// The usual time of a step: what half of the intervals between recorded steps took at most. Evaluation and saving fall
/// into few of them.
fn step_seconds(steps: &[(f64, u64)]) -> Option<f64> {
    let first = steps.first()?.1;
    let warm = steps.iter().filter(|(_, step)| *step >= first + WARM_UP);
    let warm: Vec<&(f64, u64)> = warm.collect();
    let mut each: Vec<f64> = warm
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1 && pair[1].0 > pair[0].0)
        .map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1) as f64)
        .collect();
    each.sort_by(f64::total_cmp);
    (each.len() >= INTERVALS).then(|| each[each.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RankMemory;
    use crate::setup::Setup;

    fn step(at: f64, step: u64) -> Event {
        Event::new(at, RunEvent::Step { step, loss: None })
    }

    fn started(attempt: u32) -> Event {
        let strategy = Setup::AsGiven;
        Event::new(0.0, RunEvent::AttemptStarted { attempt, strategy, pid: 1 })
    }

    fn resident(bytes: u64) -> Event {
        let ranks = vec![RankMemory { rank: 0, rss: 1 }, RankMemory { rank: 1, rss: bytes }];
        Event::new(0.0, RunEvent::Memory { ranks })
    }

    #[test]
    fn a_pause_for_saving_does_not_count_as_a_slow_step() {
        // Two seconds a step from step 3 on, and half a minute between 5 and 6.
        let steps = [(0.0, 1), (9.0, 2), (11.0, 3), (13.0, 4), (15.0, 5), (47.0, 6), (49.0, 7)];
        let events: Vec<Event> = steps.iter().map(|(at, number)| step(*at, *number)).collect();
        let (measured, last) = Measured::of(events.clone(), 1);
        assert_eq!((measured.step_seconds, last), (Some(2.0), 7));
        let (few, _) = Measured::of(events[..4].to_vec(), 1);
        assert_eq!(few.step_seconds, None, "too few");
    }

    #[test]
    fn the_fullest_rank_of_its_attempt_counts() {
        let events = [started(1), resident(70), resident(50), started(2), resident(90)];
        for (attempt, bytes) in [(1, Some(70)), (2, Some(90)), (3, None)] {
            let (measured, _) = Measured::of(events.clone(), attempt);
            assert_eq!(measured, Measured { resident: bytes, ..Measured::default() });
        }
    }
}
