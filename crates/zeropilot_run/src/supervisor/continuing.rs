//! Going on with a run that an earlier start left unfinished, as schedulers start a preempted job again: what that needs is
//! kept in its record, in `continue.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeropilot_record::{Attempt, SHAPE, Setup};

use super::Run;
use super::following::Next;
use crate::checkpoint::{Before, Mark};
use crate::command::{with_path, with_value};
use crate::config::read_config;
use crate::paths::resolved;

const FILE: &str = "continue.json";

/// What a later start needs. The words of the command are not among it, as they may hold secrets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Continuation {
    shape: u32,
    /// What was in the directory of checkpoints before the first start.
    pub before: Before,
    /// How often the command was started.
    pub started: u32,
    /// Attempts that ended in order.
    pub(super) attempts: Vec<Attempt>,
    /// Seconds that they took.
    pub(super) seconds: f64,
    /// Fallbacks that were taken, those of a plan among them.
    pub(super) fallbacks: u32,
    planned: usize,
    strategy: Setup,
    config: Option<PathBuf>,
    arguments: Vec<(String, String)>,
    checkpoints: Option<PathBuf>,
    unusable: Vec<Mark>,
}

impl Continuation {
    /// That of an earlier run, if its record has one.
    pub fn read(record: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(record.join(FILE)).ok()?).ok()
    }
}

/// How far a run has come.
pub(super) struct Course<'a> {
    pub(super) attempts: &'a [Attempt],
    pub(super) started: u32,
    pub(super) seconds: f64,
    pub(super) fallbacks: u32,
}

impl Run<'_> {
    /// Keeps what a later start needs. A record that cannot be written is noticed elsewhere.
    pub(super) fn keep(&self, next: &Next, course: &Course<'_>) {
        let continuation = Continuation {
            shape: SHAPE,
            before: self.before.clone(),
            started: course.started,
            attempts: course.attempts.to_vec(),
            seconds: course.seconds,
            fallbacks: course.fallbacks,
            planned: next.planned,
            strategy: next.strategy.clone(),
            config: next.config_path.clone(),
            arguments: next.arguments.clone(),
            checkpoints: next.root(),
            unusable: next.unusable.clone(),
        };
        let text = serde_json::to_string_pretty(&continuation).unwrap_or_default();
        let _ = self.recorder.write(FILE, &text);
    }

    /// The attempt with which a run goes on, from its last checkpoint; none if that would write over others.
    pub(super) fn continued(&self, earlier: &Continuation) -> Option<Next> {
        self.again(&self.restored(earlier), earlier.started + 1)
    }

    /// What the last attempt was started with, but for the checkpoint it began from.
    fn restored(&self, earlier: &Continuation) -> Next {
        let mut next = self.first();
        next.unusable.clone_from(&earlier.unusable);
        if let (false, Some(path)) = (earlier.strategy.is_as_given(), &earlier.config)
            && let Some(config) = read_config(path)
            && let Some(words) = self.command.with_config(path, self.recorder.directory())
        {
            let told =
                |words: Vec<_>, (name, value): &(String, String)| with_value(&words, name, value);
            next.words = earlier.arguments.iter().fold(words, told);
            next.arguments.clone_from(&earlier.arguments);
            (next.config, next.config_path) = (Some(config), Some(path.clone()));
            (next.strategy, next.planned) = (earlier.strategy.clone(), earlier.planned);
        }
        let moved =
            earlier.checkpoints.as_ref().filter(|moved| next.root().as_ref() != Some(moved));
        if let (Some(moved), Some(own)) = (moved, next.checkpoints.clone()) {
            let own = resolved(&next.directory, &own);
            let words = with_path(&next.words, &next.directory, &own, moved);
            next.words = words.unwrap_or(next.words);
            next.checkpoints = Some(moved.clone());
        }
        next
    }
}
