//! The settings of the project the program runs in: the nearest file that has any.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::project::{Project, ProjectFile, ProjectProblem, read};
use zeropilot_lint::{Report, Selection, Settings};

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
    /// Takes out findings that are not told about a file, and rates the others.
    pub(crate) fn adapt(&self, path: &Path, report: &mut Report) {
        let path = within(&self.directory, path);
        let ignore = self.project.ignored_in(&path);
        let selection = Selection { ignore, select: Vec::new() };
        report.diagnostics.retain(|found| selection.wants(found.rule.code));
        self.project.rate(&path, &mut report.diagnostics);
    }

    /// Whether a file in a directory is passed over.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        !self.project.exclude.is_empty() && self.project.excludes(&within(&self.directory, path))
    }

    /// The settings for a file.
    pub(crate) fn settings<'s>(&self, path: &Path, all: &'s Settings) -> Cow<'s, Settings> {
        if self.project.paths.is_empty() {
            return Cow::Borrowed(all);
        }
        let own = self.project.at(&within(&self.directory, path));
        let mut settings = all.clone();
        if let Some(version) =
            own.deepspeed_version.and_then(|named| EngineVersion::nearest(&named).ok())
        {
            settings.version = version;
        }
        settings.front_end = own.front_end.or(settings.front_end);
        settings.world_size = own.world_size.or(settings.world_size);
        Cow::Owned(settings)
    }
}

/// A path from a directory, with `/` between its parts; whole where it is not below. Steps up are taken back.
pub(crate) fn within(directory: &Path, path: &Path) -> String {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.components().fold(PathBuf::new(), |mut whole, part| {
            match part {
                Component::ParentDir => drop(whole.pop()),
                part => whole.push(part),
            }
            whole
        })
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let (directory, path) = (whole(directory), whole(path));
    path.strip_prefix(&directory).unwrap_or(&path).to_string_lossy().replace('\\', "/")
}
