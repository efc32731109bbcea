//! Whose a checkpoint is: a run goes on only from what it wrote itself, or from what its user told it to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::parts::{Stamp, archives};
use super::{Checkpoint, directories};
use crate::paths::resolved;

/// What was in a directory of checkpoints before a run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Before {
    /// The directory that was looked through; a program may write into another that nobody knew then.
    root: Option<PathBuf>,
    parts: BTreeMap<PathBuf, Stamp>,
    at: SystemTime,
}

impl Before {
    /// Looks now, at a directory as it is named here.
    pub fn look(root: Option<&Path>) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let root = root.map(|root| resolved(&here, root));
        let mut wanted: Vec<PathBuf> = root.as_deref().map(directories).unwrap_or_default();
        wanted.extend(wanted.clone().iter().flat_map(|directory| directories(directory)));
        let parts = wanted.iter().flat_map(|directory| archives(directory)).collect();
        Self { root, parts, at: SystemTime::now() }
    }

    /// Whether a checkpoint was written since, all of it: one that was written over in part is of two runs.
    pub fn is_newer(&self, checkpoint: &Checkpoint) -> bool {
        let is_known = self.root.as_deref().is_some_and(|root| checkpoint.parts.starts_with(root));
        archives(&checkpoint.parts).iter().all(|(path, stamp)| match self.parts.get(path) {
            Some(before) => before != stamp,
            None => is_known || stamp.written.is_some_and(|written| written >= self.at),
        })
    }
}
