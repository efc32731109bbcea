//! Following an attempt: what the guard and the log tell, how ranks stand, and stopping.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use zeropilot_diagnose::fingerprint::Meaning;
use zeropilot_record::{Ending, RunEvent};

use super::stragglers::Stragglers;
use super::{Message, Start, Status};
use crate::allocator::Allocator;
use crate::classify::DIVERGED;
use crate::guard::{self, Order, Report};
use crate::log::{LastLines, Told};
use crate::observed::{Observed, Raised, Sign};
use crate::oom::{OomCounters, killed_by_kernel};
use crate::pace::{Pace, Slower};
use crate::process::Rank;
use crate::progress::{Course, Progress};
use crate::signals::Kind;
use crate::spikes::{Jump, Spikes};
use crate::step_writer::StepWriter;

const TICK: Duration = Duration::from_millis(200);
const SAMPLE: Duration = Duration::from_secs(1);
/// All processes of the machine are looked through no oftener than this once the ranks are known.
const LOOK: Duration = Duration::from_secs(5);
/// Steps in the record are no closer than this, and in a long run no closer than the second.
const RECORD: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];
/// The last lines are written down no oftener than this.
const KEEP_TAIL: Duration = Duration::from_secs(10);
/// The step at which the pace is compared with the prediction.
const COMPARED: u64 = 40;
/// A second SIGTERM within this time is the first one again.
const ECHO: Duration = Duration::from_secs(5);
/// Infinite norms of gradients in a row that are worth a word: fp16 skips fewer steps until it has found its scale.
const LASTING_NORM: u64 = 10;
/// Occurrences of one fingerprint in the record.
const RECORDED: u64 = 5;

pub(super) struct Watch<'a> {
    pub(super) start: &'a Start<'a>,
    pub(super) child: Child,
    orders: UnixStream,
    pub(super) spoken: Arc<AtomicU64>,
    pub(super) began: Instant,
    pub(super) observed: Observed,
    pub(super) kills: OomCounters,
    /// Kills in the kernel's log before this attempt.
    pub(super) killed_before: usize,
    /// Every process that was seen below the guard.
    pub(super) all_seen: BTreeSet<i32>,
    pub(super) ranks: Vec<Rank>,
    /// Every process that was a rank.
    pub(super) pids: Vec<i32>,
    /// Their numbers.
    pub(super) numbers: Vec<u32>,
    pub(super) status: Status,
    pub(super) steps: Vec<(Instant, u64)>,
    course: Course,
    spikes: Spikes,
    pub(super) pace: Pace,
    pub(super) stragglers: Stragglers,
    allocator: Allocator,
    pub(super) step_writer: StepWriter,
    ticked: Option<Instant>,
    looked: Option<Instant>,
    sampled: Option<Instant>,
    recorded_step: Option<Instant>,
    /// The last step, until it is in the record.
    unrecorded: Option<(u64, Option<f64>)>,
    pub(super) recorded_memory: Option<Instant>,
    /// Since when processes are being stopped, and whether they were killed since.
    pub(super) stopping: Option<(Instant, bool)>,
    pub(super) has_ended: bool,
    /// When ranks were asked to save and end, before everything is stopped.
    asked: Option<Instant>,
    /// Ticks of each rank when the silence was last broken.
    pub(super) quiet_ticks: Vec<(u32, u64)>,
    /// When stillness was last looked for.
    pub(super) listened: Option<Instant>,
    /// Since when zeropilot itself was neither suspended nor kept from writing.
    pub(super) awake_since: Instant,
    /// When processes of the run last computed noticeably.
    pub(super) computed_at: Instant,
    /// What they had computed at the last look, and when that was.
    pub(super) computed: Option<(Instant, Vec<(i32, u64)>)>,
    /// The last lines of both streams.
    pub(super) tails: Vec<LastLines>,
    kept_tail: Option<Instant>,
    /// Whether it was said that no rank has come.
    pub(super) has_missed_ranks: bool,
    /// The process of the command itself.
    pub(super) command: Option<i32>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        start: &'a Start<'a>,
        child: Child,
        orders: UnixStream,
        spoken: Arc<AtomicU64>,
        began: Instant,
    ) -> Self {
        Self {
            start,
            child,
            orders,
            spoken,
            began,
            observed: Observed {
                world: start.world,
                total_steps: start.total_steps,
                ..Observed::default()
            },
            kills: OomCounters::read(),
            killed_before: killed_by_kernel().len(),
            all_seen: BTreeSet::new(),
            ranks: Vec::new(),
            pids: Vec::new(),
            numbers: Vec::new(),
            status: Status { attempt: start.number, ..Status::default() },
            steps: Vec::new(),
            course: Course::default(),
            spikes: Spikes::default(),
            pace: Pace::default(),
            stragglers: Stragglers::default(),
            allocator: Allocator::default(),
            step_writer: StepWriter::open(start.record, start.number),
            ticked: None,
            looked: None,
            sampled: None,
            recorded_step: None,
            unrecorded: None,
            recorded_memory: None,
            stopping: None,
            has_ended: false,
            asked: None,
            quiet_ticks: Vec::new(),
            listened: None,
            awake_since: began,
            computed_at: began,
            computed: None,
            command: None,
            tails: Vec::new(),
            kept_tail: Some(Instant::now()),
            has_missed_ranks: false,
        }
    }

    pub(super) fn follow(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Told(told)) => self.told(told),
                Ok(Message::Guard(report)) => self.reported(report),
                Ok(Message::GuardGone) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Ok(signal) = self.start.signals.try_recv() {
                self.signaled(signal);
            }
            // A chatty log must not make this a busy loop over /proc.
            if due(&mut self.ticked, TICK) {
                self.tick();
            }
        }
        // The guard ends when nothing is left, unless it was killed: then everything below it is ours.
        if !self.child.wait().is_ok_and(|status| status.success()) {
            let own = i32::try_from(std::process::id()).unwrap_or(0);
            guard::kill_all(own);
        }
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Started(pid) => {
                self.command = i32::try_from(pid).ok();
                self.say(RunEvent::AttemptStarted {
                    attempt: self.start.number,
                    strategy: self.start.strategy.clone(),
                    pid,
                });
            }
            Report::Passed { signal, processes } => {
                if !self.has_ended {
                    self.observed.warned = Some(signal);
                    self.observed.handles_warning |= processes > 0;
                }
                self.say(RunEvent::SignalPassed { signal, processes });
            }
            Report::Failed(error) => self.observed.not_started = Some(error),
            Report::Ended(ending) => {
                self.observed.ending = ending;
                self.has_ended = true;
                self.look();
                let left = self.ranks.iter().filter(|rank| rank.process.is_alive());
                if self.stopping.is_none() {
                    self.observed.ranks_left = left.map(|rank| rank.rank).collect();
                }
                // Whatever the command left behind has no business without it.
                self.stop(15);
            }
        }
    }

    pub(super) fn told(&mut self, told: Told) {
        if let Told::Progress(progress) = told {
            self.progressed(progress);
            return;
        }
        if let Told::StepParts(parts) = told {
            self.observed.step_parts.add(parts);
            return;
        }
        if let Told::Allocator(held) = told {
            if self.allocator.grow(held) {
                let Allocator { allocated, reserved } = self.allocator;
                self.say(RunEvent::Allocator { allocated, reserved });
            }
            return;
        }
        if let Told::Fingerprint { fingerprint, line, rank, .. } = &told {
            let sign = self.observed.sign(fingerprint.means);
            let known = sign.map_or(0, |sign| sign.times);
            let is_repeated = sign.is_some_and(|sign| sign.line == *line && sign.rank == *rank);
            if fingerprint.means.is_notable() && known < RECORDED && !is_repeated {
                let (id, line) = (fingerprint.id.clone(), line.clone());
                self.say(RunEvent::Fingerprint { id, line, rank: *rank });
            }
        }
        note(&mut self.observed, told);
    }

    fn progressed(&mut self, progress: Progress) {
        let now = Instant::now();
        self.status.loss = progress.loss.or(self.status.loss);
        self.status.tokens_per_second =
            progress.tokens_per_second.or(self.status.tokens_per_second);
        let step = self.course.step(&progress);
        self.status.total_steps = self.course.total();
        self.observed.total_steps = self.status.total_steps.or(self.start.total_steps);
        // What is said before the first step, such as `0/100` of a bar, is no progress.
        let new = step.filter(|step| *step > self.observed.last_step.unwrap_or(0));
        self.observed.names_steps = self.course.names_steps();
        if let Some(step) = new {
            let gap = self.observed.last_step.map_or(0, |last| step - last);
            self.observed.step_gap = self.observed.step_gap.max(gap);
            self.observed.last_step = Some(step);
            self.observed.step(now);
            self.status.step = Some(step);
            self.steps.push((now, step));
            if self.steps.len() > 20 {
                self.steps.remove(0);
            }
            self.judge_pace(now, step);
        }
        let loss = progress.real_loss();
        self.observed.last_loss = loss.or(self.observed.last_loss);
        self.keep_step(new, loss.filter(|loss| loss.is_finite()));
        self.step_writer.read(new, self.observed.last_step, &progress);
        self.judge_numbers(&progress);
        self.judge_norm(&progress);
        self.judge_spikes(&progress);
    }

    /// Says that steps became slower, and once how they compare with the prediction.
    fn judge_pace(&mut self, now: Instant, step: u64) {
        if let Some(Slower { now: seconds_per_step, usual }) = self.pace.step(now, step) {
            self.say(RunEvent::Slower { seconds_per_step, usual });
        }
        if self.observed.steps_seen == COMPARED
            && let (Some(predicted), Some(usual)) = (self.start.predicted_step, self.usual_step())
        {
            let seconds_per_step = usual.as_secs_f64();
            self.say(RunEvent::PaceCompared { seconds_per_step, predicted });
        }
    }

    /// Says that a loss or norm jumped, and stops if the loss stays high and that was asked for.
    fn judge_spikes(&mut self, progress: &Progress) {
        let Some(step) = self.observed.last_step else { return };
        for Jump { what, step, value, usual } in self.spikes.read(step, progress) {
            self.say(RunEvent::Spike { what, step, value, usual });
        }
        let is_stopped = self.has_ended || self.stopping.is_some();
        let thrown_back = self.spikes.lasting();
        if thrown_back.is_some() && self.start.limits.rollback_on_spike && !is_stopped {
            self.observed.thrown_back = thrown_back;
            self.stop(15);
        }
    }

    /// Counts steps whose numbers are none, and says at once since when.
    fn judge_numbers(&mut self, progress: &Progress) {
        let Some(is_finite) = progress.is_finite() else { return };
        if is_finite {
            (self.observed.not_finite, self.observed.not_finite_since) = (0, None);
            return;
        }
        self.observed.not_finite += 1;
        let since = self.observed.not_finite_since.or(self.observed.last_step);
        self.observed.not_finite_since = since;
        if self.observed.not_finite == DIVERGED {
            self.say(RunEvent::NotFinite { since });
            if self.start.limits.stop_on_nan && !self.has_ended {
                self.observed.is_stopped_for_numbers = true;
                self.stop(15);
            }
        }
    }

    /// Counts norms of gradients that are none while the losses are numbers, and says so where fp16 would long have found
    /// its scale.
    fn judge_norm(&mut self, progress: &Progress) {
        let (Some(norm), Some(step)) = (progress.grad_norm, self.observed.last_step) else {
            return;
        };
        if norm.is_finite() || progress.is_finite() == Some(false) {
            self.observed.norm_not_finite = None;
            return;
        }
        let (since, count) = self.observed.norm_not_finite.unwrap_or((step, 0));
        self.observed.norm_not_finite = Some((since, count + 1));
        if count + 1 == LASTING_NORM {
            self.say(RunEvent::NormNotFinite { since });
        }
    }

    /// Steps are recorded now and then. A loss that comes without a step is that of the last one, and is not lost behind
    /// steps without any.
    fn keep_step(&mut self, new: Option<u64>, loss: Option<f64>) {
        let Some(step) = self.observed.last_step.filter(|_| new.is_some() || loss.is_some()) else {
            return;
        };
        if loss.is_none() && self.unrecorded.is_some_and(|(_, loss)| loss.is_some()) {
            self.record_step();
        }
        self.unrecorded = Some((step, loss));
        if due(&mut self.recorded_step, spacing(RECORD, self.began.elapsed())) {
            self.record_step();
        }
    }

    pub(super) fn record_step(&mut self) {
        if let Some((step, loss)) = self.unrecorded.take() {
            self.say(RunEvent::Step { step, loss });
        }
    }

    /// A signal came to zeropilot.
    fn signaled(&mut self, signal: i32) {
        match Kind::of(signal) {
            Kind::Stop => self.interrupt(signal),
            Kind::Pass => self.order(Order::Pass(signal)),
            Kind::Suspend => {
                // Processes without a terminal are deaf to the signal of the terminal, so that they get the other one.
                self.order(Order::Signal(Signal::STOP.as_raw()));
                let _ = kill_process(getpid(), Signal::STOP);
                self.order(Order::Signal(Signal::CONT.as_raw()));
                self.awake_since = Instant::now();
            }
        }
    }

    fn interrupt(&mut self, signal: i32) {
        if self.observed.interrupted.is_some() {
            // Slurm's srun gets the signal that its tasks get, and hands it on to them once more.
            let is_echo = self.asked.is_some_and(|asked| asked.elapsed() < ECHO);
            if signal != Signal::TERM.as_raw() || !is_echo {
                // Asked twice: no more patience.
                self.order(Order::Kill);
            }
            return;
        }
        if !self.has_ended {
            self.observed.interrupted = Some(signal);
        }
        if self.ask_ranks(signal) {
            self.asked = Some(Instant::now());
        } else {
            self.stop(signal);
        }
    }

    /// Asks the ranks that handle a signal to end, and nobody else: launchers that get it kill their ranks after 30
    /// seconds, which may be too soon for a checkpoint. Whether any does.
    fn ask_ranks(&mut self, signal: i32) -> bool {
        if signal != Signal::TERM.as_raw() || self.has_ended {
            return false;
        }
        let handling = self.ranks.iter().filter(|rank| rank.process.is_alive());
        let handling = handling.filter(|rank| rank.process.handles(signal));
        let processes = handling.map(|rank| rank.process.signal(Signal::TERM)).count();
        if processes > 0 {
            self.say(RunEvent::SignalPassed { signal, processes });
        }
        processes > 0
    }

    /// Asks everything to end; after the grace it is made to.
    pub(super) fn stop(&mut self, signal: i32) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some((Instant::now(), false));
        if !self.has_ended {
            self.say(RunEvent::Stopping { signal });
        }
        self.order(Order::Signal(signal));
    }

    fn order(&mut self, order: Order) {
        let line = serde_json::to_string(&order).unwrap_or_default();
        // Without a guard there is nobody to order, and its end is noticed elsewhere.
        let _ = writeln!(self.orders, "{line}");
    }

    fn tick(&mut self) {
        if let (Some(asked), None) = (self.asked, self.stopping)
            && asked.elapsed() > self.start.limits.grace
        {
            self.stop(Signal::TERM.as_raw());
            // They had their time.
            self.stopping = Some((asked, false));
        } else if let Some((since, false)) = self.stopping
            && since.elapsed() > self.start.limits.grace
        {
            self.stopping = Some((since, true));
            self.order(Order::Kill);
        }
        let pace = if self.ranks.is_empty() { SAMPLE } else { LOOK };
        if due(&mut self.looked, pace) {
            self.look();
        }
        self.buried();
        if due(&mut self.sampled, SAMPLE) {
            self.sample();
        }
        self.expect_ranks();
        if due(&mut self.kept_tail, KEEP_TAIL) {
            let lines: Vec<String> = self.tails.iter().flat_map(LastLines::lines).collect();
            (self.start.keep_tail)(&lines);
        }
        self.find_straggler();
        self.listen();
    }

    pub(super) fn say(&self, happening: RunEvent) {
        self.start.observer.happened(happening);
    }
}

fn note(observed: &mut Observed, told: Told) {
    match told {
        Told::Fingerprint { fingerprint, line, rank, phase, is_raised } => {
            let means = fingerprint.means;
            if means == Meaning::PeerLost && !observed.lost_a_peer.contains(&rank) {
                observed.lost_a_peer.push(rank);
            }
            // Memory explains an exception; which rank failed first is told by the first one.
            let after_steps = observed.steps_seen;
            let at = Instant::now();
            observed.add(Sign { means, line, rank, phase, times: 1, is_raised, after_steps, at });
        }
        Told::Exception { rank, line, place, worker } => {
            let after_steps = observed.steps_seen;
            let at = Instant::now();
            observed.raise(Raised { rank, line, place, worker, after_steps, at });
        }
        Told::FirstFailure { rank, ending } => {
            let ending = ending.unwrap_or(Ending::Unknown);
            observed.first_failure.get_or_insert((rank, ending));
        }
        Told::Progress(_) | Told::Allocator(_) | Told::StepParts(_) => {}
    }
}

/// The time between two of a kind in the record. It grows with the run, an hour being the unit: a month would otherwise fill
/// hundreds of megabytes.
pub(crate) fn spacing([least, most]: [Duration; 2], elapsed: Duration) -> Duration {
    let hours = elapsed.as_secs_f64() / 3600.0;
    least.mul_f64(hours.max(1.0)).min(most)
}

/// Whether it is time again; the first time is now.
pub(super) fn due(last: &mut Option<Instant>, pace: Duration) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= pace);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_month_stays_small() {
        let day = 24 * 3600;
        let at = |seconds| spacing(RECORD, Duration::from_secs(seconds));
        assert_eq!((at(60), at(3600)), (RECORD[0], RECORD[0]));
        assert_eq!((at(5 * 3600), at(30 * day)), (Duration::from_secs(5), RECORD[1]));
        // Of a step a second, 2,592,000 in 30 days, so many are written down.
        let mut written = 0;
        let mut now = 0.0;
        while now < 30.0 * day as f64 {
            now += spacing(RECORD, Duration::from_secs_f64(now)).as_secs_f64();
            written += 1;
        }
        assert!(written < 150_000, "{written}");
    }
}
