//! A whole run: attempts, one after the other, until it is completed or nothing more can be done.

mod continuing;
mod fallbacks;
mod following;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use zeropilot_record::{Attempt, Cause, Evidence, Measured, RunEvent, Saved, Setup, Verdict};

pub use self::continuing::Continuation;
use self::continuing::Course;
use self::following::Next;
use crate::attempt::{self, Finished, Limits, Observer, Start};
use crate::checkpoint::{self, Before, Checkpoint, Mark};
use crate::classify::classify;
use crate::command::RunCommand;
use crate::disk;
use crate::fallbacks::PlannedFallback;
use crate::forecast::Predict;
use crate::observed::Observed;
use crate::signals::Kind;
use crate::spikes::ThrownBack;
use crate::stacks::Handler;
use crate::store::{Record, Recorder, now};

/// Whether a config is one that the engine would take.
pub type Judge<'a> = &'a dyn Fn(&Map<String, Value>) -> bool;

/// How far a run may go on its own.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Fallbacks to take when memory runs out; 0 for none.
    pub max_fallbacks: u32,
    /// Fallbacks to take, in order; empty to derive each from the one before.
    pub fallbacks: Vec<PlannedFallback>,
    /// Restarts after what may not happen again; `None` for [`RESTARTS`] where a checkpoint can be gone on from.
    pub max_restarts: Option<u32>,
    /// Where the program writes checkpoints.
    pub checkpoints: Option<PathBuf>,
    /// What to add to the command to go on from a checkpoint, `{}` being its directory.
    pub resume_with: Option<String>,
    /// Whether an attempt may restart from scratch though the run has a checkpoint that it cannot resume from.
    pub allows_scratch: bool,
    /// What to exit with if the run was asked to end and a later start can resume it.
    pub requeue_exit_code: Option<u8>,
}

/// Restarts if nobody says otherwise.
pub const RESTARTS: u32 = 2;
const BACK_OFF: Duration = Duration::from_secs(5);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);

/// What is needed to run.
pub struct Run<'a> {
    /// The name of the run.
    pub id: &'a str,
    /// The command that makes this program a guard; the command to guard is added to it.
    pub guard: Vec<OsString>,
    /// What to run.
    pub command: RunCommand,
    /// How each attempt is supervised.
    pub limits: Limits,
    /// How far to go.
    pub policy: Policy,
    /// Which fallbacks are worth a try.
    pub judge: Judge<'a>,
    /// What they would need.
    pub predict: &'a dyn Predict,
    /// Seconds that a step of the command as given is predicted to take.
    pub predicted_step: Option<f64>,
    /// Where it is recorded.
    pub recorder: Arc<Recorder>,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
    /// Signals to zeropilot, by number.
    pub signals: Receiver<i32>,
    /// What was in the directory of checkpoints when it began.
    pub before: Before,
    /// The earlier run that it goes on with.
    pub earlier: Option<Continuation>,
}

impl Run<'_> {
    /// Runs to the end.
    pub fn run(&self) -> Verdict {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let began = Instant::now();
        let earlier = self.earlier.as_ref();
        let mut attempts = earlier.map(|earlier| earlier.attempts.clone()).unwrap_or_default();
        let mut started = earlier.map_or(0, |earlier| earlier.started);
        let mut fallbacks = earlier.map_or(0, |earlier| earlier.fallbacks);
        let before = earlier.map_or(0.0, |earlier| earlier.seconds);
        let seconds = || before + began.elapsed().as_secs_f64();
        let mut restarts = Restarts::default();
        let first = earlier.map_or_else(|| Some(self.first()), |earlier| self.continued(earlier));
        let Some(mut next) = first else {
            return self.finished(Cause::NotStarted, attempts, seconds(), None);
        };
        if earlier.is_none() {
            self.tell_of_others(&next);
        }
        let cause = loop {
            started += 1;
            let number = started;
            let course = Course { attempts: &attempts, started, seconds: seconds(), fallbacks };
            self.keep(&next, &course);
            // On a machine without the first rank no step is printed at all.
            let prints_steps = attempts.iter().any(|attempt| attempt.last_step.is_some());
            let (attempt, observed) = self.attempt(number, &next, prints_steps);
            let cause = attempt.cause.clone();
            attempts.push(attempt);
            if let Some(directory) = &observed.directory {
                next.directory.clone_from(directory);
            }
            let is_unreadable = unreadable(&cause, &next).is_some();
            next.unusable.extend(unreadable(&cause, &next));
            if let Some(ThrownBack { good, .. }) = observed.thrown_back {
                let all = next.root().map(|root| checkpoint::complete(&root)).unwrap_or_default();
                let spoiled = all.iter().filter(|found| found.step >= good);
                next.unusable.extend(spoiled.map(Checkpoint::mark));
            }
            let following = match &cause {
                Cause::OutOfMemory { memory, phase, .. } => {
                    let shortage = self.compare(&next, &observed, *memory, *phase);
                    (fallbacks < self.policy.max_fallbacks)
                        .then(|| {
                            fallbacks += 1;
                            self.lower(&next, &shortage, number + 1)
                        })
                        .flatten()
                }
                cause
                    if (cause.restart_may_help() || is_unreadable)
                        && restarts.after(self.checkpoint(&next).map(|found| found.step))
                            < self.max_restarts(&next) =>
                {
                    match self.wait(restarts.add()) {
                        Some(signal) => break Cause::Interrupted { signal },
                        None => self.again(&next, number + 1),
                    }
                }
                _ => None,
            };
            match following {
                Some(following) => next = following,
                None => break cause,
            }
        };
        if let Some(last) = attempts.last_mut().filter(|_| cause != Cause::Completed) {
            last.evidence.extend(self.resumable(&next));
        }
        let course = Course { attempts: &attempts, started, seconds: seconds(), fallbacks };
        self.keep(&next, &course);
        self.finished(cause, attempts, seconds(), self.checkpoint(&next))
    }

    /// Where a later start can go on.
    fn resumable(&self, next: &Next) -> Option<Evidence> {
        let found = self.checkpoint(next)?;
        let checkpoint = found.parts.display().to_string();
        Some(Evidence::ResumableFrom { step: found.step, checkpoint })
    }

    fn finished(
        &self,
        cause: Cause,
        attempts: Vec<Attempt>,
        seconds: f64,
        checkpoint: Option<Checkpoint>,
    ) -> Verdict {
        let saved = checkpoint.map(|found| Saved {
            step: found.step,
            path: found.parts.display().to_string(),
            at: found.written_at(),
        });
        let verdict = Verdict::new(self.id, cause, attempts, now()).after(seconds);
        let mut verdict = verdict.with_checkpoint(saved);
        if verdict.awaits_another_start() {
            verdict.exit_code = self.policy.requeue_exit_code.unwrap_or(verdict.exit_code);
        }
        let ended =
            RunEvent::RunEnded { cause: verdict.cause.clone(), exit_code: verdict.exit_code };
        self.say(ended);
        let text = serde_json::to_string_pretty(&verdict).unwrap_or_default();
        let _ = self.recorder.write("verdict.json", &text);
        verdict
    }

    fn say(&self, happening: RunEvent) {
        self.observer.happened(happening);
    }

    fn first(&self) -> Next {
        let file = self.command.config_file();
        if let Some(text) = file.and_then(|path| fs::read_to_string(path).ok()) {
            let _ = self.recorder.write("config-1.json", &text);
        }
        Next {
            words: self.command.words.clone(),
            start: self.command.given.clone(),
            config: self.command.read_config(),
            config_path: self.command.config.as_ref().map(PathBuf::from),
            strategy: Setup::AsGiven,
            arguments: Vec::new(),
            planned: 0,
            resumed_from: None,
            checkpoints: self.policy.checkpoints.clone().or(self.command.checkpoints.clone()),
            directory: std::env::current_dir().unwrap_or_default(),
            unusable: Vec::new(),
        }
    }

    fn attempt(&self, number: u32, next: &Next, prints_steps: bool) -> (Attempt, Observed) {
        let stacks = self.recorder.directory().join(format!("stacks-{number}"));
        let wants_handler = self.limits.has_stack_handler;
        let handler = wants_handler.then(|| Handler::install(self.recorder.directory())).flatten();
        let keep_tail = |lines: &[String]| {
            let _ = self.recorder.write(&format!("tail-{number}.log"), &(lines.join("\n") + "\n"));
        };
        let Finished { observed, tail, seconds } = attempt::run(&Start {
            guard: &self.guard,
            command: &next.start,
            number,
            strategy: &next.strategy,
            limits: &self.limits,
            signals: &self.signals,
            observer: &self.observer,
            world: self.command.world,
            total_steps: self.command.length().total_steps,
            predicted_step: self.predicted_step.filter(|_| next.strategy.is_as_given()),
            stacks: &stacks,
            record: self.recorder.directory(),
            handler: handler.as_ref(),
            keep_tail: &keep_tail,
        });
        keep_tail(&tail);
        let (mut cause, mut evidence) = classify(&observed);
        if cause == Cause::Completed && prints_steps && self.did_nothing(next, &observed) {
            cause = Cause::Unproven;
        }
        evidence.extend(observed.not_started.clone().map(Evidence::Text));
        if cause == Cause::DiskFull {
            evidence.extend(self.full_disk(next, &evidence));
        }
        let ended = RunEvent::AttemptEnded {
            attempt: number,
            ending: observed.ending,
            cause: cause.clone(),
        };
        self.say(ended);
        let attempt = Attempt {
            number,
            strategy: next.strategy.clone(),
            config: next.config_path.as_ref().map(|path| path.display().to_string()),
            resumed_from: next
                .resumed_from
                .as_ref()
                .map(|checkpoint| checkpoint.parts.display().to_string()),
            ending: observed.ending,
            cause,
            last_step: observed.last_step,
            total_steps: observed.total_steps,
            last_loss: observed.last_loss,
            seconds,
            measured: self.measured(number, &observed),
            evidence,
        };
        (attempt, observed)
    }

    /// What the record has of an attempt, and what the log told of the parts of a step.
    fn measured(&self, number: u32, observed: &Observed) -> Measured {
        let record = Record::open(self.recorder.directory());
        let events = record.and_then(|record| Ok(record.events()?.collect::<Vec<_>>()));
        let (measured, _) = Measured::of(events.unwrap_or_default(), number);
        Measured { parts: observed.step_parts.get(), ..measured }
    }

    /// Which disk is full: the one that a message names, else the fullest that the run writes to.
    fn full_disk(&self, next: &Next, evidence: &[Evidence]) -> Option<Evidence> {
        let told = evidence.iter().find_map(|one| match one {
            Evidence::LogLine(line) | Evidence::Exception { line, .. } => disk::told(line),
            _ => None,
        });
        let written = || {
            let record = self.recorder.directory().to_owned();
            let places = [next.directory.clone(), record, std::env::temp_dir()];
            next.root().into_iter().chain(places)
        };
        match told {
            Some(path) => disk::fullest([path]),
            None => disk::fullest(written()),
        }
    }

    /// Whether an attempt that went on from a checkpoint and made no step was not done with that already.
    fn did_nothing(&self, next: &Next, observed: &Observed) -> bool {
        let total = self.command.length().total_steps;
        let from = next.resumed_from.as_ref().map(|checkpoint| checkpoint.step);
        observed.last_step.is_none()
            && from.is_some_and(|from| total.is_some_and(|total| from < total))
    }

    fn max_restarts(&self, next: &Next) -> u32 {
        let can_resume = || self.checkpoint(next).is_some() && self.resume_option().is_some();
        self.policy.max_restarts.unwrap_or_else(|| if can_resume() { RESTARTS } else { 0 })
    }

    /// Waits longer each time. A signal that asks to stop ends the run.
    fn wait(&self, restarts: u32) -> Option<i32> {
        let delay = BACK_OFF.saturating_mul(1 << (restarts - 1).min(8)).min(LONGEST_BACK_OFF);
        self.say(RunEvent::Restarting { delay: delay.as_secs_f64() });
        let end = Instant::now() + delay;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let signal = self.signals.recv_timeout(left).ok()?;
            if Kind::of(signal) == Kind::Stop {
                return Some(signal);
            }
        }
    }
}

/// Restarts since training last got further: what happens once a week must not use up those of a month.
#[derive(Debug, Default)]
struct Restarts {
    count: u32,
    /// The step of the last checkpoint at the last of them.
    step: Option<u64>,
}

impl Restarts {
    /// How many there were since there is a checkpoint of this step.
    fn after(&mut self, step: Option<u64>) -> u32 {
        if step > self.step {
            (self.count, self.step) = (0, step);
        }
        self.count
    }

    /// One more.
    fn add(&mut self) -> u32 {
        self.count += 1;
        self.count
    }
}

/// The checkpoint that an attempt could not go on from, if that is why it ended.
fn unreadable(cause: &Cause, next: &Next) -> Option<Mark> {
    let mark = next.resumed_from.as_ref().map(Checkpoint::mark);
    mark.filter(|_| *cause == Cause::CheckpointUnreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_counted_anew_once_training_got_further() {
        let mut restarts = Restarts::default();
        let counts = [None, None, Some(10), Some(10), Some(10), Some(20), None].map(|step| {
            let before = restarts.after(step);
            restarts.add();
            before
        });
        assert_eq!(counts, [0, 1, 0, 1, 2, 0, 1]);
    }
}
