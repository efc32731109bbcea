//! A whole run: attempts, one after the other, until it is completed or nothing more can be done.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Map, Value};
use zeropilot_record::{Attempt, Cause, Happening, Memory, NoResume, Verdict};

use crate::attempt::{self, Finished, Limits, Observer, Start};
use crate::checkpoint::{self, Checkpoint};
use crate::classify::classify;
use crate::command::{RunCommand, replaced, value, with_value};
use crate::config::read_config;
use crate::ladder::{self, BatchArguments, Rung};
use crate::store::{Recorder, now};

/// Whether a config is one that the engine would take.
pub type Judge<'a> = &'a dyn Fn(&Map<String, Value>) -> bool;

/// How far a run may go on its own.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Rungs to take when memory runs out; 0 for none.
    pub max_rungs: u32,
    /// Configs to take them from, in order; empty to derive each from the one before.
    pub rungs: Vec<Map<String, Value>>,
    /// Restarts after what may not happen again; `None` for [`RESTARTS`] where a checkpoint can be gone on from.
    pub max_restarts: Option<u32>,
    /// Where the program writes checkpoints.
    pub checkpoints: Option<PathBuf>,
    /// What to add to the command to go on from a checkpoint, `{}` being its directory.
    pub resume_with: Option<String>,
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
    /// Which rungs are worth a try.
    pub judge: Judge<'a>,
    /// Where it is recorded.
    pub recorder: Arc<Recorder>,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
    /// Signals to zeropilot, by number.
    pub signals: Receiver<i32>,
}

/// What the next attempt is started with.
struct Next {
    words: Vec<OsString>,
    config: Option<Map<String, Value>>,
    config_path: Option<PathBuf>,
    rung: String,
    resumed_from: Option<PathBuf>,
    checkpoints: Option<PathBuf>,
}

impl Run<'_> {
    /// Runs to the end.
    pub fn run(&self) -> Verdict {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let mut attempts: Vec<Attempt> = Vec::new();
        let (mut rungs, mut restarts) = (0, 0);
        let mut next = self.first();
        let cause = loop {
            let number = u32::try_from(attempts.len() + 1).unwrap_or(u32::MAX);
            let attempt = self.attempt(number, &next);
            let cause = attempt.cause.clone();
            attempts.push(attempt);
            let following = match &cause {
                Cause::OutOfMemory { memory, .. } if rungs < self.policy.max_rungs => {
                    let following = self.lower(&next, *memory, rungs, number + 1);
                    rungs += 1;
                    following
                }
                cause if cause.restart_may_help() && restarts < self.max_restarts(&next) => {
                    restarts += 1;
                    match self.wait(restarts) {
                        Some(signal) => break Cause::Interrupted { signal },
                        None => Some(self.again(&next, number + 1)),
                    }
                }
                _ => None,
            };
            match following {
                Some(following) => next = following,
                None => break cause,
            }
        };
        let verdict = Verdict::new(self.id, cause, attempts, now());
        let ended =
            Happening::RunEnded { cause: verdict.cause.clone(), exit_code: verdict.exit_code };
        self.say(ended);
        let text = serde_json::to_string_pretty(&verdict).unwrap_or_default();
        let _ = self.recorder.write("verdict.json", &text);
        verdict
    }

    fn say(&self, happening: Happening) {
        self.observer.happened(happening);
    }

    fn first(&self) -> Next {
        let config_path = self.command.config.as_ref().map(PathBuf::from);
        let config = config_path.as_deref().and_then(read_config);
        if let Some(text) = config_path.as_deref().and_then(|path| fs::read_to_string(path).ok()) {
            let _ = self.recorder.write("config-1.json", &text);
        }
        Next {
            words: self.command.words.clone(),
            config,
            config_path,
            rung: String::new(),
            resumed_from: None,
            checkpoints: self.policy.checkpoints.clone().or(self.command.checkpoints.clone()),
        }
    }

    fn attempt(&self, number: u32, next: &Next) -> Attempt {
        let stacks = self.recorder.directory().join(format!("stacks-{number}"));
        let Finished { observed, tail, seconds } = attempt::run(&Start {
            guard: &self.guard,
            command: &next.words,
            number,
            rung: &next.rung,
            limits: &self.limits,
            signals: &self.signals,
            observer: &self.observer,
            stacks: &stacks,
        });
        let _ = self.recorder.write(&format!("tail-{number}.log"), &(tail.join("\n") + "\n"));
        let (cause, mut evidence) = classify(&observed);
        evidence.extend(observed.not_started.clone());
        let ended = Happening::AttemptEnded {
            attempt: number,
            ending: observed.ending,
            cause: cause.clone(),
        };
        self.say(ended);
        Attempt {
            number,
            rung: next.rung.clone(),
            config: next.config_path.as_ref().map(|path| path.display().to_string()),
            resumed_from: next.resumed_from.as_ref().map(|path| path.display().to_string()),
            ending: observed.ending,
            cause,
            last_step: observed.last_step,
            seconds,
            evidence,
        }
    }

    fn max_restarts(&self, next: &Next) -> u32 {
        let can_resume = || self.checkpoint(next).is_some() && self.resume_option().is_some();
        self.policy.max_restarts.unwrap_or_else(|| if can_resume() { RESTARTS } else { 0 })
    }

    /// Waits longer each time. A signal ends the run.
    fn wait(&self, restarts: u32) -> Option<i32> {
        let delay = BACK_OFF.saturating_mul(1 << (restarts - 1).min(8)).min(LONGEST_BACK_OFF);
        self.say(Happening::Restarting { delay: delay.as_secs_f64() });
        self.signals.recv_timeout(delay).ok()
    }

    fn checkpoint(&self, next: &Next) -> Option<Checkpoint> {
        checkpoint::last_complete(next.checkpoints.as_deref()?)
    }

    /// The option of the program that goes on from a checkpoint, before and behind its directory.
    fn resume_option(&self) -> Option<String> {
        let is_trainer = value(&self.command.words, "--output_dir").is_some();
        let known = is_trainer.then(|| "--resume_from_checkpoint {}".to_owned());
        self.policy.resume_with.clone().or(known)
    }

    /// The same again.
    fn again(&self, next: &Next, number: u32) -> Next {
        let stage = next.config.as_ref().map_or(0, ladder::stage);
        let (words, resumed_from, checkpoints) = self.go_on(next, &next.words, stage, number);
        Next {
            words,
            resumed_from,
            checkpoints,
            config: next.config.clone(),
            config_path: next.config_path.clone(),
            rung: next.rung.clone(),
        }
    }

    /// One rung down, if there is one that the engine would take and the command can be told of.
    fn lower(&self, next: &Next, short: Memory, taken: u32, number: u32) -> Option<Next> {
        let config = next.config.as_ref()?;
        let rung = self.rung(config, &next.words, short, taken)?;
        let text = format!("{:#}\n", Value::Object(rung.config.clone()));
        let path = self.recorder.write(&format!("config-{number}.json"), &text).ok()?;
        let path = fs::canonicalize(&path).unwrap_or(path);
        self.say(Happening::RungTaken {
            rung: rung.name.clone(),
            config: path.display().to_string(),
        });
        let current = RunCommand {
            words: next.words.clone(),
            config: next.config_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            ..self.command.clone()
        };
        let mut words = current.with_config(&path, self.recorder.directory())?;
        for (name, value) in &rung.arguments {
            words = with_value(&words, name, value);
        }
        let stage = ladder::stage(&rung.config);
        let (words, resumed_from, checkpoints) = self.go_on(next, &words, stage, number);
        Some(Next {
            words,
            config: Some(rung.config),
            config_path: Some(path),
            rung: rung.name,
            resumed_from,
            checkpoints,
        })
    }

    fn rung(
        &self,
        config: &Map<String, Value>,
        words: &[OsString],
        short: Memory,
        taken: u32,
    ) -> Option<Rung> {
        if !self.policy.rungs.is_empty() {
            let plan = self.policy.rungs.get(usize::try_from(taken).ok()?)?;
            return Some(ladder::overlaid(config, plan)).filter(|rung| (self.judge)(&rung.config));
        }
        let number = |name: &str| value(words, name)?.parse().ok();
        let batch = BatchArguments {
            micro: number("--per_device_train_batch_size"),
            accumulation: number("--gradient_accumulation_steps"),
        };
        let mut config = config.clone();
        loop {
            let rung = ladder::next(&config, batch, self.command.world, short)?;
            if (self.judge)(&rung.config) {
                return Some(rung);
            }
            config = rung.config;
        }
    }

    /// The words that go on from the last complete checkpoint, if its shape allows. Otherwise the run begins anew, and
    /// writes its checkpoints beside the old ones: parts of two shapes in one directory would spoil both.
    fn go_on(
        &self,
        next: &Next,
        words: &[OsString],
        stage: u64,
        number: u32,
    ) -> (Vec<OsString>, Option<PathBuf>, Option<PathBuf>) {
        let anew = |reason: NoResume| {
            self.say(Happening::BeginningAnew { reason, checkpoints: None });
            (words.to_vec(), None, next.checkpoints.clone())
        };
        let Some(found) = self.checkpoint(next) else { return anew(NoResume::NoCheckpoint) };
        let Some(option) = self.resume_option() else { return anew(NoResume::OptionUnknown) };
        if !found.shape.suits(stage, self.command.world) {
            let old = next.checkpoints.clone().unwrap_or_default();
            let fresh = fresh_beside(&old, number);
            self.say(Happening::BeginningAnew {
                reason: NoResume::OtherShape,
                checkpoints: Some(fresh.display().to_string()),
            });
            let words = replaced(words, &old.to_string_lossy(), fresh.as_os_str());
            return (words, None, Some(fresh));
        }
        let aside = self.recorder.directory().join(format!("resume-{number}"));
        let Ok(path) = found.path_for_program(&aside) else { return anew(NoResume::NotLinkable) };
        let checkpoint = found.parts.display().to_string();
        self.say(Happening::Resuming { checkpoint, step: found.step });
        let words = with_resume(words, &option, &path);
        (words, Some(found.parts), next.checkpoints.clone())
    }
}

fn fresh_beside(old: &Path, number: u32) -> PathBuf {
    let mut name = old.as_os_str().to_owned();
    name.push(format!(".attempt-{number}"));
    PathBuf::from(name)
}

/// The words with the option that goes on from a checkpoint.
fn with_resume(words: &[OsString], option: &str, path: &Path) -> Vec<OsString> {
    let path = path.to_string_lossy();
    let parts = shlex::split(option).unwrap_or_default();
    match parts.as_slice() {
        [name, place] if place == "{}" => with_value(words, name, &path),
        parts => {
            let added = parts.iter().map(|part| part.replace("{}", &path).into());
            words.iter().cloned().chain(added).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_on_is_said_once() {
        let words: Vec<OsString> = ["t.py", "--resume", "a"].iter().map(OsString::from).collect();
        let again = with_resume(&words, "--resume {}", Path::new("b"));
        assert_eq!(again, ["t.py", "--resume", "b"]);
        let first = with_resume(&words[..1], "--resume {} --strict", Path::new("b"));
        assert_eq!(first, ["t.py", "--resume", "b", "--strict"]);
    }
}
