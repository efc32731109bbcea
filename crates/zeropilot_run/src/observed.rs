//! Everything that was seen of an attempt, as witnesses gave it: the guard, the log, `/proc`, the kernel.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use zeropilot_diagnose::Message;
use zeropilot_diagnose::fingerprint::Meaning;
use zeropilot_record::{Ending, Memory, Phase};

use crate::forecast::Measured;
use crate::hang::Explained;
use crate::log::OF_WORKER;
use crate::spikes::ThrownBack;
use crate::step_parts::Mean;

/// A fingerprint that was seen.
#[derive(Debug, Clone)]
pub(crate) struct Sign {
    pub(crate) means: Meaning,
    pub(crate) line: String,
    pub(crate) rank: Option<u32>,
    pub(crate) phase: Option<Phase>,
    pub(crate) times: u64,
    /// Whether an exception said so.
    pub(crate) is_raised: bool,
    /// Steps that were seen before it.
    pub(crate) after_steps: u64,
    /// When it was read.
    pub(crate) at: Instant,
}

/// An exception that was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) rank: Option<u32>,
    pub(crate) line: String,
    /// The file and line it came from.
    pub(crate) place: Option<String>,
    /// The data worker of the rank that raised it.
    pub(crate) worker: Option<u32>,
    /// Steps that were seen before it.
    pub(crate) after_steps: u64,
    /// When it was read.
    pub(crate) at: Instant,
}

/// Steps that other ranks may still print after one failed. What more steps followed was survived.
const LATE_STEPS: u64 = 1;
/// What is printed on one stream may be read this much later than what followed it on the other.
const OUT_OF_ORDER: Duration = Duration::from_secs(1);
/// Exceptions that are kept.
const KEPT: usize = 64;
/// What launchers raise because a rank failed.
const OF_LAUNCHERS: [&str; 3] = ["ChildFailedError", "CalledProcessError", "SignalException"];

/// Everything that was seen of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) ending: Ending,
    /// Why the command could not be started.
    pub(crate) not_started: Option<String>,
    /// The signal that asked zeropilot to stop.
    pub(crate) interrupted: Option<i32>,
    /// The signal by which a scheduler warned.
    pub(crate) warned: Option<i32>,
    /// Whether processes of the run handle it.
    pub(crate) handles_warning: bool,
    /// Steps that were asked for, if the command or the log tells.
    pub(crate) total_steps: Option<u64>,
    /// Where ranks stood, if nothing moved for too long.
    pub(crate) hang: Option<Explained>,
    pub(crate) signs: Vec<Sign>,
    /// Exceptions, in the order in which they were printed.
    pub(crate) exceptions: Vec<Raised>,
    /// How many steps were seen.
    pub(crate) steps_seen: u64,
    /// The first rank that went away, if it did so alone while others went on.
    pub(crate) first_gone: Option<(u32, Ending)>,
    /// What the launcher reports as the first failure.
    pub(crate) first_failure: Option<(Option<u32>, Ending)>,
    /// Ranks whose end was seen.
    pub(crate) rank_endings: Vec<(u32, Ending)>,
    pub(crate) ranks_seen: usize,
    /// Ranks that still ran when the command had ended.
    pub(crate) ranks_left: Vec<u32>,
    /// Whether the `deepspeed` command had a process of its own between itself and the ranks.
    pub(crate) has_node_launcher: bool,
    /// Kills that the kernel counted in the groups of the ranks, or reported of them.
    pub(crate) kernel_kills: u64,
    pub(crate) last_step: Option<u64>,
    /// The most steps between two that were printed one after the other.
    pub(crate) step_gap: u64,
    /// Whether the program names its steps, so that they can be held against the total.
    pub(crate) names_steps: bool,
    /// The last loss; NaN if it is none.
    pub(crate) last_loss: Option<f64>,
    /// Since when norms of gradients are no finite numbers though losses are, and how many in a row.
    pub(crate) norm_not_finite: Option<(u64, u64)>,
    /// How many of the last losses in a row were not finite.
    pub(crate) not_finite: u64,
    /// The step of the first of them.
    pub(crate) not_finite_since: Option<u64>,
    /// Whether the run was stopped for that.
    pub(crate) is_stopped_for_numbers: bool,
    /// Since when the loss is high, if the run was stopped for that.
    pub(crate) thrown_back: Option<ThrownBack>,
    /// Ranks of the whole run, if the command says so.
    pub(crate) world: Option<usize>,
    /// Ranks here that lost another one.
    pub(crate) lost_a_peer: Vec<Option<u32>>,
    /// Where the ranks run.
    pub(crate) directory: Option<PathBuf>,
    /// The most resident bytes of each rank.
    pub(crate) peaks: Vec<(u32, u64)>,
    /// What the parts of a step took, where the log tells.
    pub(crate) step_parts: Mean,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            ending: Ending::Unknown,
            not_started: None,
            interrupted: None,
            warned: None,
            handles_warning: false,
            total_steps: None,
            hang: None,
            signs: Vec::new(),
            exceptions: Vec::new(),
            steps_seen: 0,
            first_gone: None,
            first_failure: None,
            rank_endings: Vec::new(),
            ranks_seen: 0,
            ranks_left: Vec::new(),
            has_node_launcher: false,
            kernel_kills: 0,
            last_step: None,
            step_gap: 0,
            names_steps: false,
            last_loss: None,
            norm_not_finite: None,
            not_finite: 0,
            not_finite_since: None,
            is_stopped_for_numbers: false,
            thrown_back: None,
            world: None,
            lost_a_peer: Vec::new(),
            directory: None,
            peaks: Vec::new(),
            step_parts: Mean::default(),
        }
    }
}

impl Observed {
    pub(crate) fn sign(&self, means: Meaning) -> Option<&Sign> {
        self.signs.iter().find(|sign| sign.means == means)
    }

    pub(crate) fn times(&self, means: Meaning) -> u64 {
        self.signs.iter().filter(|sign| sign.means == means).map(|sign| sign.times).sum()
    }

    /// A step was read at a time. It may have been printed before what was read just now on the other stream.
    pub(crate) fn step(&mut self, now: Instant) {
        self.steps_seen += 1;
        let is_recent = |at: Instant| now.saturating_duration_since(at) < OUT_OF_ORDER;
        for sign in self.signs.iter_mut().filter(|sign| is_recent(sign.at)) {
            sign.after_steps = self.steps_seen;
        }
        for raised in self.exceptions.iter_mut().filter(|raised| is_recent(raised.at)) {
            raised.after_steps = self.steps_seen;
        }
    }

    /// Whether what was said then was survived: training went on.
    fn is_stale(&self, after_steps: u64) -> bool {
        self.steps_seen.saturating_sub(after_steps) > LATE_STEPS
    }

    /// A fingerprint that may be why the attempt ended: no steps followed it, and if the rank that failed first raised an
    /// exception, it is an exception that says so.
    pub(crate) fn reason(&self, means: Meaning) -> Option<&Sign> {
        let is_told = self.fatal().is_none();
        self.sign(means)
            .filter(|sign| !self.is_stale(sign.after_steps) && (sign.is_raised || is_told))
    }

    /// The exception of the rank that failed first.
    pub(crate) fn fatal(&self) -> Option<&Raised> {
        let is_candidate = |raised: &&Raised| {
            let class = raised.line.split(':').next().unwrap_or_default();
            !self.is_stale(raised.after_steps)
                && !OF_LAUNCHERS.iter().any(|launcher| class.ends_with(launcher))
        };
        let mut all = self.exceptions.iter().filter(is_candidate);
        match self.first_failed() {
            // The last one of a rank is what ended it; without ranks in the lines it is the first.
            Some(rank) => {
                let own = all.clone().rev().find(|raised| raised.rank == Some(rank));
                own.or_else(|| all.find(|raised| raised.rank.is_none()))
            }
            None => all.next(),
        }
    }

    /// The first rank that failed, if a launcher says so or its end was seen.
    pub(crate) fn first_failed(&self) -> Option<u32> {
        let seen = self.rank_endings.iter().find(|(_, ending)| !ending.is_success());
        let reported = self.first_failure.and_then(|(rank, _)| rank);
        reported.or_else(|| seen.map(|(rank, _)| *rank))
    }

    /// Adds a fingerprint. Of each meaning the first is kept, until it was survived or an exception says the same; all are
    /// counted.
    pub(crate) fn add(&mut self, sign: Sign) {
        let position = self.signs.iter().position(|known| known.means == sign.means);
        let Some(position) = position else { return self.signs.push(sign) };
        let known = &self.signs[position];
        let times = known.times + 1;
        let is_better = self.is_stale(known.after_steps) || (sign.is_raised && !known.is_raised);
        let known = &mut self.signs[position];
        if is_better {
            *known = sign;
        }
        known.times = times;
    }

    /// Adds an exception.
    pub(crate) fn raise(&mut self, raised: Raised) {
        // A rank first prints what it raises for its data worker, and then what that raised itself.
        let is_same = |known: &Raised| known.rank == raised.rank && known.line.contains(OF_WORKER);
        if raised.worker.is_some()
            && let Some(again) = self.exceptions.iter().rposition(is_same)
        {
            self.exceptions.remove(again);
        }
        if self.exceptions.len() == KEPT {
            self.exceptions.remove(0);
        }
        self.exceptions.push(raised);
    }

    /// A rank had so many bytes.
    pub(crate) fn reached(&mut self, rank: u32, bytes: u64) {
        match self.peaks.iter_mut().find(|(known, _)| *known == rank) {
            Some((_, peak)) => *peak = bytes.max(*peak),
            None => self.peaks.push((rank, bytes)),
        }
    }

    /// What was seen of the rank that ran out of memory: what its message says, else what the kernel counted.
    pub(crate) fn measured(&self, memory: Memory, phase: Option<Phase>) -> Measured {
        let means = match memory {
            Memory::Device => Meaning::DeviceMemory,
            Memory::Host => Meaning::HostMemory,
        };
        let sign = self.sign(means);
        let said = sign.map(|sign| Message::read(&sign.line)).unwrap_or_default();
        let killed = self.rank_endings.iter().find(|(_, ending)| *ending == Ending::Signaled(9));
        let rank = sign.and_then(|sign| sign.rank).or(killed.map(|(rank, _)| *rank));
        let of_rank = |rank| self.peaks.iter().find(|(known, _)| *known == rank).copied();
        let fullest = || self.peaks.iter().max_by_key(|(_, bytes)| *bytes).copied();
        let resident = rank.and_then(of_rank).or_else(fullest).filter(|_| memory == Memory::Host);
        Measured {
            rank: rank.or(resident.map(|(rank, _)| rank)),
            reached: said.process().or(resident.map(|(_, bytes)| bytes)).unwrap_or(0),
            wanted: said.tried.unwrap_or(0),
            phase,
            is_training: self.last_step.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_read_late_do_not_make_an_exception_survived() {
        let read = Instant::now();
        let mut observed = Observed::default();
        let line = "torch.OutOfMemoryError: CUDA out of memory".to_owned();
        let (place, worker) = (None, None);
        observed.raise(Raised { rank: None, line, place, worker, after_steps: 0, at: read });
        // Four steps stood in the other pipe.
        (0..4).for_each(|_| observed.step(read + OUT_OF_ORDER / 2));
        assert!(observed.fatal().is_some());
        (0..4).for_each(|_| observed.step(read + OUT_OF_ORDER * 2));
        assert!(observed.fatal().is_none(), "training went on");
    }

    #[test]
    fn what_a_rank_raises_for_its_data_worker_gives_way_to_what_that_raised() {
        let mut observed = Observed::default();
        let raised = |line: &str, worker| Raised {
            rank: None,
            line: line.to_owned(),
            place: None,
            worker,
            after_steps: 0,
            at: Instant::now(),
        };
        observed
            .raise(raised("ValueError: Caught ValueError in DataLoader worker process 3.", None));
        observed.raise(raised("ValueError: bad sample 17", Some(3)));
        let fatal = observed.fatal().map(|raised| (raised.line.as_str(), raised.worker));
        assert_eq!(fatal, Some(("ValueError: bad sample 17", Some(3))));
    }

    #[test]
    fn what_a_rank_had_is_its_own_and_what_it_wanted_stands_in_its_message() {
        let mut observed = Observed::default();
        for (rank, bytes) in [(0, 70), (1, 40), (1, 50), (1, 45)] {
            observed.reached(rank, bytes);
        }
        let line = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes. x";
        observed.add(Sign {
            means: Meaning::HostMemory,
            line: line.to_owned(),
            rank: Some(1),
            phase: Some(Phase::Backward),
            times: 1,
            is_raised: true,
            after_steps: 0,
            at: Instant::now(),
        });
        let measured = observed.measured(Memory::Host, Some(Phase::Backward));
        assert_eq!((measured.rank, measured.reached, measured.wanted), (Some(1), 50, 8));
        // Resident memory says nothing about a GPU.
        assert_eq!(observed.measured(Memory::Device, None).reached, 0);
    }
}
