//! The longest sequence that fits, and the changes of the script that reach it.

use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe as Training;
use zeropilot_step::shape::LongContext;

use super::asking::Asker;
use super::space::Space;
use super::{PlanError, Task, Way, least, longer};

/// What keeps sequences from being longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Memory of a GPU or of a host.
    Memory,
    /// Fused kernels, whose offsets have 32 bits.
    Kernels,
    /// No longer one was asked for.
    Asked,
}

/// How long sequences get with some changes of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Tokens of the longest sequence that fits with its upper bound.
    pub sequence: u64,
    /// Whether projection and cross entropy are one kernel.
    pub fused_loss: bool,
    /// What makes room.
    pub long_context: LongContext,
    /// What keeps them from being longer.
    pub bound: Bound,
}

/// The longest sequences, by what the script has to do for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Longest {
    /// Each with more changes than the one before, and longer; empty if nothing fits.
    pub reaches: Vec<Reach>,
    /// With the changes of the last: tokens of the longest sequence whose expected need fits.
    pub expected: u64,
}

/// Lengths are multiples of this, and of the GPUs that share one.
const STEP: u64 = 1024;

/// Looks for the longest sequences of up to this many tokens.
///
/// # Errors
///
/// If there is nothing to search.
pub fn longest(task: &Task<'_>, most: u64) -> Result<Longest, PlanError> {
    let mut longest = Longest { reaches: Vec::new(), expected: 0 };
    let changed = if task.may_stretch { longer::changes(task) } else { Vec::new() };
    let mut last = None;
    for training in [task.training.clone()].into_iter().chain(changed) {
        let best = longest.reaches.last().map_or(0, |reach: &Reach| reach.sequence);
        let ladder = match Ladder::of(task, training, most) {
            Ok(ladder) => ladder,
            Err(error) if error.is_of_this_size() => continue,
            Err(error) => return Err(error),
        };
        let sequence = ladder.longest(best, |asker, way| asker.has_room(way))?;
        if sequence > best {
            longest.reaches.push(ladder.reach(sequence));
            last = Some(ladder);
        }
    }
    if let (Some(ladder), Some(reach)) = (last, longest.reaches.last()) {
        longest.expected =
            ladder.longest(reach.sequence, |asker, way| asker.is_expected_to_fit(way))?;
    }
    Ok(longest)
}

/// Whether a way fits.
type Fits = fn(&mut Asker<'_>, Way) -> Result<bool, PlanError>;

/// Lengths with the same changes of the script.
struct Ladder<'a> {
    task: &'a Task<'a>,
    training: Training,
    space: Space,
    /// What lengths are multiples of.
    step: u64,
    /// The longest that is tried, and why.
    most: u64,
    bound: Bound,
}

impl<'a> Ladder<'a> {
    fn of(task: &'a Task<'a>, training: Training, most: u64) -> Result<Self, PlanError> {
        let space = Space::of(&Task { training: &training, ..*task })?;
        let ranks = training.long_context.sequence_ranks.max(1);
        let runs_liger = training.runs_liger() || space.fused_loss.contains(&true);
        let hidden = task.model.dimensions().map(|dimensions| dimensions.hidden_size);
        let (micro_batch, _) = space.batches[0];
        let of_kernels = hidden.filter(|_| runs_liger).map(|hidden| {
            (Training::LIGER_REACH / (hidden * micro_batch).max(1)).saturating_mul(ranks)
        });
        let (most, bound) = match of_kernels {
            Some(kernels) if kernels < most => (kernels, Bound::Kernels),
            _ => (most, Bound::Asked),
        };
        let step = if STEP.is_multiple_of(ranks) { STEP } else { STEP * ranks };
        Ok(Self { task, training, space, step, most, bound })
    }

    /// The longest for which something fits, given that shorter ones than `known` are of no interest.
    fn longest(&self, known: u64, fits: Fits) -> Result<u64, PlanError> {
        let beyond = self.most / self.step + 1;
        let (mut low, mut high) = (known / self.step, beyond);
        // Lengths are doubled until one does not fit: far longer ones take long to ask about.
        let mut next = low + 1;
        while next < beyond {
            if !self.fits_at(next * self.step, fits)? {
                high = next;
                break;
            }
            low = next;
            next = next.saturating_mul(2);
        }
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if self.fits_at(middle * self.step, fits)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low * self.step)
    }

    fn fits_at(&self, sequence: u64, fits: Fits) -> Result<bool, PlanError> {
        let training = Training { sequence, ..self.training.clone() };
        let task = Task { training: &training, ..*self.task };
        let mut asker = Asker::new(&task)?;
        for &shape in &self.space.shapes {
            match fits(&mut asker, least(shape, &self.space)) {
                Ok(true) => return Ok(true),
                // A model that is not trained this way, or not at this length.
                Ok(false) | Err(PlanError::Lower(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn reach(&self, sequence: u64) -> Reach {
        let is_most = sequence + self.step > self.most;
        Reach {
            sequence,
            fused_loss: self.training.loss == LossHead::Fused,
            long_context: self.training.long_context,
            bound: if is_most { self.bound } else { Bound::Memory },
        }
    }
}
