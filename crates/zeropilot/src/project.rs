//! The settings of the project the program runs in: the nearest file that has any.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_lint::project::{Project, ProjectFile, ProjectProblem, read};

/// Settings and where they come from.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The directory of the file, which patterns for file names start from.
    pub(crate) directory: PathBuf,
    /// What it says; nothing if there is no file.
    pub(crate) project: Project,
}

/// A file that cannot be used.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) problems: Vec<ProjectProblem>,
}

/// Looks for settings from here up to the root, unless told not to.
pub(crate) fn find(arguments: &[OsString]) -> Result<Found, Broken> {
    let is_isolated = arguments.iter().any(|argument| argument == "--no-settings");
    let here = std::env::current_dir().unwrap_or_default();
    if is_isolated { Ok(Found::default()) } else { nearest(&here) }
}

fn nearest(here: &Path) -> Result<Found, Broken> {
    for directory in here.ancestors() {
        for file in ProjectFile::ALL {
            let path = directory.join(file.name());
            let Ok(text) = fs::read_to_string(&path) else { continue };
            match read(&text, file) {
                Ok(None) => {}
                Ok(Some(project)) => {
                    return Ok(Found { directory: directory.to_owned(), project });
                }
                Err(problems) => {
                    let shown = if directory == here { Path::new(file.name()) } else { &path };
                    let name = shown.to_string_lossy().into_owned();
                    return Err(Broken { name, text, problems });
                }
            }
        }
    }
    Ok(Found::default())
}

impl Found {
    /// The rules that are not told about a file.
    pub(crate) fn ignored_in(&self, path: &Path) -> Vec<String> {
        if self.project.per_file_ignores.is_empty() {
            return Vec::new();
        }
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let within = whole.strip_prefix(&self.directory).unwrap_or(&whole);
        self.project.ignored_in(&within.to_string_lossy().replace('\\', "/"))
    }
}
