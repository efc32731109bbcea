//! What the attempt after this one is started with: the same again, or a lower fallback, from a checkpoint if there is one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use zeropilot_record::{NoResume, RunEvent, Setup};

use super::Run;
use super::fallbacks::Shortage;
use crate::checkpoint::{self, Checkpoint, Mark};
use crate::command::{RunCommand, with_path, with_value};
use crate::fallbacks;
use crate::paths::resolved;

/// What the next attempt is started with.
pub(super) struct Next {
    /// The launch.
    pub(super) words: Vec<OsString>,
    /// The command that launches it.
    pub(super) start: Vec<OsString>,
    pub(super) config: Option<Map<String, Value>>,
    pub(super) config_path: Option<PathBuf>,
    pub(super) strategy: Setup,
    /// Arguments of the program that fallbacks changed.
    pub(super) arguments: Vec<(String, String)>,
    /// Fallbacks of a plan that are used up.
    pub(super) planned: usize,
    pub(super) resumed_from: Option<Checkpoint>,
    /// Where it writes checkpoints, as the command or the user names it.
    pub(super) checkpoints: Option<PathBuf>,
    /// Where the program runs: a script may change its directory first.
    pub(super) directory: PathBuf,
    /// Checkpoints that look complete and are not to be used: they proved to be unreadable, or hold what a spike left.
    pub(super) unusable: Vec<Mark>,
}

impl Next {
    /// Where it writes checkpoints.
    pub(super) fn root(&self) -> Option<PathBuf> {
        Some(resolved(&self.directory, self.checkpoints.as_deref()?))
    }
}

/// How the next attempt begins.
struct Beginning {
    words: Vec<OsString>,
    resumed_from: Option<Checkpoint>,
    checkpoints: Option<PathBuf>,
    said: RunEvent,
}

/// Why there is no next attempt.
enum Stop {
    /// It would write over checkpoints that it cannot read.
    Overwrites { reason: NoResume, checkpoints: PathBuf },
    /// It would throw away what was trained, and nobody said that it may.
    LosesProgress { reason: NoResume, checkpoint: Checkpoint },
}

/// Whether a word is an option by which programs resume or load a checkpoint.
fn resumes(word: &OsString) -> bool {
    let word = word.to_string_lossy();
    let name = word.split('=').next().unwrap_or_default().replace('-', "_");
    let is_load = matches!(&*name, "__load" | "__load_dir" | "__load_checkpoint" | "__load_from");
    is_load || name.starts_with("__resume") || name.starts_with("__auto_resume")
}

impl Run<'_> {
    /// The last complete checkpoint that this run wrote, or that its user told it to go on from.
    pub(super) fn checkpoint(&self, next: &Next) -> Option<Checkpoint> {
        let told = self.told_to_resume(next);
        let is_told = |found: &Checkpoint| {
            let is = |path: &Path| told.as_deref() == Some(&resolved(&next.directory, path));
            found.is_latest && (is(&found.path) || is(&found.parts))
        };
        checkpoint::last(&next.root()?, |found| {
            !next.unusable.contains(&found.mark())
                && (self.before.is_newer(found) || is_told(found))
        })
    }

    /// Says that a run which starts from scratch finds checkpoints of another one where it writes its own.
    pub(super) fn tell_of_others(&self, next: &Next) {
        let is_told = self.told_to_resume(next).is_some() || next.words.iter().any(resumes);
        let Some(root) = next.root().filter(|_| !is_told) else { return };
        let found = checkpoint::complete(&root).into_iter().map(|found| found.step).max();
        if let Some(step) = found {
            let checkpoints = root.display().to_string();
            self.say(RunEvent::CheckpointsFound { checkpoints, step });
        }
    }

    /// The directory that the command itself goes on from, as the user gave it.
    fn told_to_resume(&self, next: &Next) -> Option<PathBuf> {
        let option = self.resume_option()?;
        let name = shlex::split(&option)?.into_iter().next()?;
        let path = self.command.option(&name)?;
        Some(resolved(&next.directory, Path::new(&path)))
    }

    /// The option of the program that goes on from a checkpoint, before and behind its directory.
    pub(super) fn resume_option(&self) -> Option<String> {
        let known = self.command.is_trainer.then(|| "--resume_from_checkpoint {}".to_owned());
        self.policy.resume_with.clone().or(known)
    }

    /// The same again; nothing if checkpoints would be written over.
    pub(super) fn again(&self, next: &Next, number: u32) -> Option<Next> {
        let stage = next.config.as_ref().map_or(0, fallbacks::stage);
        let beginning = self.begin(next, &next.words, stage, number);
        let Beginning { words, resumed_from, checkpoints, said } = self.or_stop(beginning)?;
        self.say(said);
        Some(Next {
            start: self.command.start(&words),
            words,
            resumed_from,
            checkpoints,
            config: next.config.clone(),
            config_path: next.config_path.clone(),
            strategy: next.strategy.clone(),
            arguments: next.arguments.clone(),
            planned: next.planned,
            directory: next.directory.clone(),
            unusable: next.unusable.clone(),
        })
    }

    /// One fallback down, if there is one that the engine would take and the command can be told of.
    pub(super) fn lower(&self, next: &Next, shortage: &Shortage, number: u32) -> Option<Next> {
        let (fallback, planned) = self.fallback(next, shortage)?;
        let text = format!("{:#}\n", Value::Object(fallback.config.clone()));
        let path = self.recorder.write(&format!("config-{number}.json"), &text).ok()?;
        let path = fs::canonicalize(&path).unwrap_or(path);
        let config = next.config_path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let is_first = config == self.command.config;
        let config_word = if is_first { self.command.config_word.clone() } else { config.clone() };
        let current =
            RunCommand { words: next.words.clone(), config, config_word, ..self.command.clone() };
        let mut words = current.with_config(&path, self.recorder.directory())?;
        let mut arguments = next.arguments.clone();
        for (name, value) in &fallback.arguments {
            words = with_value(&words, name, value);
            arguments.push(((*name).to_owned(), value.clone()));
        }
        let stage = fallbacks::stage(&fallback.config);
        let beginning = self.begin(next, &words, stage, number);
        let Beginning { words, resumed_from, checkpoints, said } = self.or_stop(beginning)?;
        self.say(RunEvent::FallbackTaken {
            strategy: Setup::Strategy(fallback.strategy),
            config: path.display().to_string(),
        });
        self.say(said);
        Some(Next {
            start: self.command.start(&words),
            words,
            config: Some(fallback.config),
            config_path: Some(path),
            strategy: Setup::Strategy(fallback.strategy),
            arguments,
            planned,
            resumed_from,
            checkpoints,
            directory: next.directory.clone(),
            unusable: next.unusable.clone(),
        })
    }

    fn or_stop(&self, beginning: Result<Beginning, Stop>) -> Option<Beginning> {
        let stopped = |stop| match stop {
            Stop::Overwrites { reason, checkpoints } => {
                let checkpoints = checkpoints.display().to_string();
                self.say(RunEvent::NotStartedAgain { reason, checkpoints });
            }
            Stop::LosesProgress { reason, checkpoint } => self.refuse_scratch(reason, &checkpoint),
        };
        beginning.map_err(stopped).ok()
    }

    /// Says that nothing but a restart from scratch is left, and that nobody allowed it.
    pub(super) fn refuse_scratch(&self, reason: NoResume, found: &Checkpoint) {
        let checkpoint = found.parts.display().to_string();
        self.say(RunEvent::ScratchNotAllowed { reason, step: found.step, checkpoint });
    }

    /// From the last complete checkpoint of this run, if its shape allows. Otherwise the run begins anew if it has none, or
    /// if that is allowed. Where old checkpoints are of another shape it then writes its own beside them: parts of two
    /// shapes in one directory would spoil both. If the command does not name the directory, it cannot be told of another.
    fn begin(
        &self,
        next: &Next,
        words: &[OsString],
        stage: u64,
        number: u32,
    ) -> Result<Beginning, Stop> {
        let anew = |reason: NoResume| {
            let root = next.root();
            let spoiled =
                root.filter(|root| checkpoint::holds_others(root, stage, self.command.world));
            let Some(old) = spoiled else {
                let said = RunEvent::BeginningAnew { reason, checkpoints: None };
                let (words, checkpoints) = (words.to_vec(), next.checkpoints.clone());
                return Ok(Beginning { words, resumed_from: None, checkpoints, said });
            };
            let fresh = fresh_beside(&old, number);
            let Some(words) = with_path(words, &next.directory, &old, &fresh) else {
                return Err(Stop::Overwrites { reason, checkpoints: old });
            };
            let checkpoints = Some(fresh.display().to_string());
            let said = RunEvent::BeginningAnew { reason, checkpoints };
            Ok(Beginning { words, resumed_from: None, checkpoints: Some(fresh), said })
        };
        let Some(found) = self.checkpoint(next) else {
            let has_others =
                next.root().is_some_and(|root| !checkpoint::complete(&root).is_empty());
            return anew(if has_others { NoResume::OfAnotherRun } else { NoResume::NoCheckpoint });
        };
        let without = |checkpoint: Checkpoint, reason: NoResume| match self.policy.allows_scratch {
            true => anew(reason),
            false => Err(Stop::LosesProgress { reason, checkpoint }),
        };
        let Some(option) = self.resume_option() else {
            return without(found, NoResume::OptionUnknown);
        };
        // Of a config that is not known, the stage is not known either.
        if next.config.is_some() && !found.shape.suits(stage, self.command.world) {
            return without(found, NoResume::OtherShape);
        }
        let record = std::path::absolute(self.recorder.directory());
        let record = record.unwrap_or_else(|_| self.recorder.directory().to_owned());
        let aside = record.join(format!("resume-{number}"));
        let Ok(path) = found.path_for_program(&aside) else {
            return without(found, NoResume::NotLinkable);
        };
        let checkpoint = found.parts.display().to_string();
        Ok(Beginning {
            words: with_resume(words, &option, &path),
            said: RunEvent::Resuming { checkpoint, step: found.step },
            resumed_from: Some(found),
            checkpoints: next.checkpoints.clone(),
        })
    }
}

/// A directory beside another that is not there yet.
fn fresh_beside(old: &Path, number: u32) -> PathBuf {
    let named = |end: String| {
        let mut name = old.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let first = named(format!(".attempt-{number}"));
    // An earlier run may have come as far in the same place.
    let others = (2..).map(|count: u32| named(format!(".attempt-{number}-{count}")));
    std::iter::once(first).chain(others).find(|path| !path.exists()).unwrap_or_default()
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

    #[test]
    fn options_that_resume_are_known() {
        let is = |word: &str| resumes(&OsString::from(word));
        assert!(
            is("--resume")
                && is("--resume_from_checkpoint=a")
                && is("--load")
                && is("--auto-resume")
        );
        assert!(!is("--load_in_4bit") && !is("--load_best_model_at_end=True") && !is("resume"));
    }

    #[test]
    fn a_fresh_directory_is_nobodys() {
        let directory = tempfile::tempdir().expect("a directory");
        let old = directory.path().join("ckpt");
        assert!(fresh_beside(&old, 2).ends_with("ckpt.attempt-2"));
        fs::create_dir(directory.path().join("ckpt.attempt-2")).expect("a directory");
        assert!(fresh_beside(&old, 2).ends_with("ckpt.attempt-2-2"));
    }
}
