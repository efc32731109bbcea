//! What the attempt after this one is started with: the same again, or a lower fallback, from a checkpoint if there is one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use zeropilot_record::{NoResume, RunEvent, Setup};

use super::Run;
use super::fallbacks::Shortage;
use crate::checkpoint::{self, Checkpoint};
use crate::command::{RunCommand, replaced, value, with_value};
use crate::fallbacks;

/// What the next attempt is started with.
pub(super) struct Next {
    /// The launch.
    pub(super) words: Vec<OsString>,
    /// The command that launches it.
    pub(super) start: Vec<OsString>,
    pub(super) config: Option<Map<String, Value>>,
    pub(super) config_path: Option<PathBuf>,
    pub(super) strategy: Setup,
    /// Fallbacks of a plan that are used up.
    pub(super) planned: usize,
    pub(super) resumed_from: Option<PathBuf>,
    pub(super) checkpoints: Option<PathBuf>,
}

impl Run<'_> {
    pub(super) fn checkpoint(&self, next: &Next) -> Option<Checkpoint> {
        checkpoint::last_complete(next.checkpoints.as_deref()?)
    }

    /// The option of the program that goes on from a checkpoint, before and behind its directory.
    pub(super) fn resume_option(&self) -> Option<String> {
        let is_trainer = value(&self.command.words, "--output_dir").is_some();
        let known = is_trainer.then(|| "--resume_from_checkpoint {}".to_owned());
        self.policy.resume_with.clone().or(known)
    }

    /// The same again.
    pub(super) fn again(&self, next: &Next, number: u32) -> Next {
        let stage = next.config.as_ref().map_or(0, fallbacks::stage);
        let (words, resumed_from, checkpoints) = self.go_on(next, &next.words, stage, number);
        Next {
            start: self.command.start(&words),
            words,
            resumed_from,
            checkpoints,
            config: next.config.clone(),
            config_path: next.config_path.clone(),
            strategy: next.strategy.clone(),
            planned: next.planned,
        }
    }

    /// One fallback down, if there is one that the engine would take and the command can be told of.
    pub(super) fn lower(&self, next: &Next, shortage: &Shortage, number: u32) -> Option<Next> {
        let (fallback, planned) = self.fallback(next, shortage)?;
        let text = format!("{:#}\n", Value::Object(fallback.config.clone()));
        let path = self.recorder.write(&format!("config-{number}.json"), &text).ok()?;
        let path = fs::canonicalize(&path).unwrap_or(path);
        self.say(RunEvent::FallbackTaken {
            strategy: Setup::Strategy(fallback.strategy),
            config: path.display().to_string(),
        });
        let current = RunCommand {
            words: next.words.clone(),
            config: next.config_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            ..self.command.clone()
        };
        let mut words = current.with_config(&path, self.recorder.directory())?;
        for (name, value) in &fallback.arguments {
            words = with_value(&words, name, value);
        }
        let stage = fallbacks::stage(&fallback.config);
        let (words, resumed_from, checkpoints) = self.go_on(next, &words, stage, number);
        Some(Next {
            start: self.command.start(&words),
            words,
            config: Some(fallback.config),
            config_path: Some(path),
            strategy: Setup::Strategy(fallback.strategy),
            planned,
            resumed_from,
            checkpoints,
        })
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
            self.say(RunEvent::BeginningAnew { reason, checkpoints: None });
            (words.to_vec(), None, next.checkpoints.clone())
        };
        let Some(found) = self.checkpoint(next) else { return anew(NoResume::NoCheckpoint) };
        let Some(option) = self.resume_option() else { return anew(NoResume::OptionUnknown) };
        if !found.shape.suits(stage, self.command.world) {
            let old = next.checkpoints.clone().unwrap_or_default();
            let fresh = fresh_beside(&old, number);
            self.say(RunEvent::BeginningAnew {
                reason: NoResume::OtherShape,
                checkpoints: Some(fresh.display().to_string()),
            });
            let words = replaced(words, &old.to_string_lossy(), fresh.as_os_str());
            return (words, None, Some(fresh));
        }
        let aside = self.recorder.directory().join(format!("resume-{number}"));
        let Ok(path) = found.path_for_program(&aside) else { return anew(NoResume::NotLinkable) };
        let checkpoint = found.parts.display().to_string();
        self.say(RunEvent::Resuming { checkpoint, step: found.step });
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
