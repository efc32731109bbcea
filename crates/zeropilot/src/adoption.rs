//! What lets a project with findings begin to check: a baseline of those that it has, which later checks leave out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_lint::baseline::Baseline;
use zeropilot_lint::{Report, Selection};
use zeropilot_text::Language;
use zeropilot_view::talk;

use crate::project::within;

/// What is done about findings that are known.
#[derive(Debug)]
pub(crate) enum Adoption {
    /// Every finding is told.
    Everything,
    /// Those of a baseline are left out.
    New {
        /// The file.
        path: PathBuf,
        /// What is in it.
        baseline: Baseline,
    },
    /// None is told: they become the baseline.
    Write {
        /// The file.
        path: PathBuf,
    },
}

/// Everything that was found, told or not, and where it was looked for.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    files: BTreeSet<String>,
    all: Baseline,
}

impl Adoption {
    /// Reads the baseline, if there is one.
    pub(crate) fn open(
        read: Option<PathBuf>,
        write: Option<PathBuf>,
        language: Language,
    ) -> Result<Self, String> {
        if let Some(path) = write {
            // What is there may be replaced if it is a baseline, and is somebody's file otherwise.
            if let Ok(bytes) = fs::read(&path)
                && let Err(reason) = Baseline::read(&String::from_utf8_lossy(&bytes))
            {
                return Err(talk::taken_by_another_file(&path, &reason, language));
            }
            return Ok(Self::Write { path });
        }
        let Some(path) = read else { return Ok(Self::Everything) };
        let text = fs::read_to_string(&path)
            .map_err(|error| talk::no_baseline(&path, &error, language))?;
        match Baseline::read(&text) {
            Ok(baseline) => Ok(Self::New { path, baseline }),
            Err(reason) => Err(talk::broken_baseline(&path, &reason, language)),
        }
    }

    /// Whether results are told.
    pub(crate) fn is_telling(&self) -> bool {
        !matches!(self, Self::Write { .. })
    }

    /// Puts findings aside that are known, and says what was found in all.
    pub(crate) fn apply(&self, file: &Path, text: &[u8], report: &mut Report) -> Seen {
        let (Self::New { path, .. } | Self::Write { path }) = self else { return Seen::default() };
        let file = within(directory(path), file);
        let text = String::from_utf8_lossy(text);
        let all = Baseline::of(&report.diagnostics, &file, &text);
        if let Self::New { baseline, .. } = self {
            report.known = baseline.take_known(&mut report.diagnostics, &file, &text);
        }
        Seen { files: BTreeSet::from([file]), all }
    }

    /// Writes the baseline, or says which of its findings are gone.
    pub(crate) fn finish(
        &self,
        seen: &Seen,
        selection: &Selection,
        language: Language,
    ) -> Result<Option<String>, String> {
        match self {
            Self::Everything => Ok(None),
            Self::Write { path } => match fs::write(path, seen.all.written()) {
                Ok(()) => {
                    let (findings, files) = (seen.all.len(), seen.with_findings());
                    Ok(Some(talk::baseline_written(path, findings, files, language)))
                }
                Err(error) => Err(talk::cannot_write_baseline(path, &error, language)),
            },
            Self::New { path, baseline } => {
                let is_gone = |file: &str| {
                    let there = directory(path).join(file).try_exists();
                    matches!(there, Ok(false)) || seen.files.contains(file)
                };
                let gone = baseline.causes().filter(|cause| {
                    selection.wants(&cause.rule)
                        && !seen.all.contains(cause)
                        && is_gone(&cause.file)
                });
                match gone.count() {
                    0 => Ok(None),
                    count => Ok(Some(talk::baseline_outdated(path, count, language))),
                }
            }
        }
    }
}

impl Seen {
    /// Takes in what was seen elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.all.add(other.all);
    }

    fn with_findings(&self) -> usize {
        self.all.causes().map(|cause| &cause.file).collect::<BTreeSet<_>>().len()
    }
}

/// The directory of a baseline, from which it names files.
fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
