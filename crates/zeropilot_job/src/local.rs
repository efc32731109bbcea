//! Jobs on this machine's disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::kind::FileKind;
use crate::origin::Origin;
use crate::training_job::{ConfigContent, JobConfig, TrainingJob};
use crate::{Launch, LaunchScript, Outside, read, trl, unread};
use zeropilot_config::syntax::LineIndex;

/// A job that was read, and from which file.
#[derive(Debug)]
pub struct OpenedJob {
    /// What the file is.
    pub kind: FileKind,
    /// The run.
    pub job: TrainingJob,
    /// What starts it; `None` for a config alone.
    pub launch: Option<Launch>,
    /// Where its files are.
    pub places: Places,
}

impl OpenedJob {
    /// The model that a question about it means, by its name, with the job: one that is named beside the job counts
    /// before the job's own.
    pub fn about(mut self, model: Option<String>) -> (Option<String>, TrainingJob) {
        if model.is_some() {
            self.job.model = None;
        }
        let own = self.job.model.as_ref().map(|own| own.value.clone());
        (model.or(own), self.job)
    }
}

/// Why a file gives no job.
#[derive(Debug, thiserror::Error)]
pub enum JobProblem {
    /// It cannot be read.
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
    /// It is nothing that trains.
    #[error("the file is not a training job")]
    NotAJob(FileKind),
    /// It starts no training with DeepSpeed.
    #[error("the file does not start any training with DeepSpeed")]
    NoLaunch(FileKind),
    /// It starts a framework that zeropilot knows by name and does not read.
    #[error("the file starts a framework that is not supported")]
    Unread(&'static str),
    /// It starts several runs and none is chosen, or one that it does not start.
    #[error("the file does not start the requested run")]
    WhichLaunch {
        /// The one that is chosen, counted from 1.
        wanted: Option<usize>,
        /// Those that it starts, by the lines in which they begin.
        launches: Vec<(usize, String)>,
    },
    /// A directory with none or several files that could be meant.
    #[error("the directory contains no training job, or more than one")]
    Directory(Vec<PathBuf>),
}

/// Where files are that a script names, in the order in which they are looked for.
#[derive(Debug, Clone)]
pub struct Places(Vec<PathBuf>);

/// Where the program runs.
impl Default for Places {
    fn default() -> Self {
        Self(vec![PathBuf::new()])
    }
}

impl Places {
    /// Where the program runs, then where the script stands; the other way round if the training program is only there.
    /// Then the directories between the two, since a script in `a/scripts` may be meant to run in `a`.
    pub fn of(text: &str, outside: &Outside, beside: &Path) -> Self {
        let script = read(text, outside, &|_| None);
        let mut programs = script.launches.iter().filter_map(|launch| launch.program.as_deref());
        let is_only_beside =
            |program: &str| !Path::new(program).is_file() && beside.join(program).is_file();
        let (here, stands) = (PathBuf::new(), beside.to_owned());
        let mut places =
            if programs.any(is_only_beside) { vec![stands, here] } else { vec![here, stands] };
        places.extend(between(beside));
        Self(places)
    }

    /// Where a file is.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.0.iter().map(|place| place.join(name)).find(|path| path.is_file())
    }

    /// Its text.
    pub fn read(&self, name: &str) -> Option<String> {
        match self.find(name) {
            Some(path) => fs::read_to_string(path).ok(),
            None => trl::shipped(name),
        }
    }
}

/// The directories above one, up to where the program runs, the nearest first.
fn between(directory: &Path) -> Vec<PathBuf> {
    let above = match std::env::current_dir() {
        Ok(here) => directory.strip_prefix(here).unwrap_or(directory),
        Err(_) => directory,
    };
    if above.is_absolute() {
        return Vec::new();
    }
    let above = above.ancestors().skip(1);
    above.filter(|place| !place.as_os_str().is_empty()).map(Path::to_owned).collect()
}

/// The variable by which a script finds its own name, `0`, for a script in this file.
pub fn own_name(script: &Path) -> Option<(String, Option<String>)> {
    let whole = std::path::absolute(script).ok()?;
    Some(("0".to_owned(), Some(whole.to_str()?.to_owned())))
}

/// Reads the job that a file or a directory describes; `launch` chooses one of several runs, counted from 1.
///
/// # Errors
///
/// If there is no job in it, or several and none is chosen.
pub fn open(path: &Path, launch: Option<usize>) -> Result<OpenedJob, JobProblem> {
    if path.is_dir() {
        return open(&only_job_in(path)?, launch);
    }
    let bytes = fs::read(path).map_err(JobProblem::Unreadable)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let name = path.to_string_lossy().into_owned();
    let kind = FileKind::of(&name, &text);
    match kind {
        FileKind::DeepSpeedConfig => {
            let origin = Origin::File { name: name.clone(), line: 1 };
            let config = JobConfig { name, content: ConfigContent::Text(text), origin };
            let job = TrainingJob { config: Some(config), ..TrainingJob::default() };
            return Ok(OpenedJob { kind, job, launch: None, places: Places::default() });
        }
        FileKind::ModelConfig | FileKind::BesideModel | FileKind::Other => {
            return Err(JobProblem::NotAJob(kind));
        }
        _ => {}
    }
    let outside: Outside = own_name(path).into_iter().collect();
    let text = kind.command(&name).unwrap_or(text);
    let beside = path.parent().unwrap_or(Path::new(""));
    let places = Places::of(&text, &outside, beside);
    let files = |name: &str| places.read(name);
    let mut script = read(&text, &outside, &files);
    let index = chosen(&text, &script, launch, kind)?;
    let mut job = TrainingJob::of_launch(&name, &text, &script, &script.launches[index], &files);
    unread::note(&mut job, &script.launches[index], (&name, &text));
    let launch = Some(script.launches.swap_remove(index));
    Ok(OpenedJob { kind, job, launch, places })
}

/// Which of the runs of a script is meant.
fn chosen(
    text: &str,
    script: &LaunchScript,
    wanted: Option<usize>,
    kind: FileKind,
) -> Result<usize, JobProblem> {
    let count = script.launches.len();
    match wanted {
        _ if count == 0 && !script.unread.is_empty() => {
            return Err(JobProblem::Unread(script.unread[0]));
        }
        _ if count == 0 => return Err(JobProblem::NoLaunch(kind)),
        None if count == 1 => return Ok(0),
        Some(number) if (1..=count).contains(&number) => return Ok(number - 1),
        _ => {}
    }
    let lines = LineIndex::new(text);
    let shown = script.launches.iter().map(|launch| {
        let span = launch.span();
        let first = text[span.start..span.end].lines().next().unwrap_or_default();
        (lines.line_column(span.start).line, first.to_owned())
    });
    Err(JobProblem::WhichLaunch { wanted, launches: shown.collect() })
}

/// The one file of a directory that starts training: a launch script, or else a YAML of a framework.
fn only_job_in(directory: &Path) -> Result<PathBuf, JobProblem> {
    let entries = fs::read_dir(directory).map_err(JobProblem::Unreadable)?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let kind = |path: &PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        Some(FileKind::of(&path.to_string_lossy(), &text))
    };
    let kinds: Vec<(PathBuf, FileKind)> = paths
        .into_iter()
        .filter(|path| path.is_file())
        .filter_map(|path| kind(&path).map(|kind| (path, kind)))
        .collect();
    for wanted in [
        &[FileKind::LaunchScript][..],
        &[FileKind::LlamaFactory, FileKind::Axolotl, FileKind::Swift],
        &[FileKind::DeepSpeedConfig],
    ] {
        let found: Vec<PathBuf> = kinds
            .iter()
            .filter(|(path, kind)| {
                wanted.contains(kind)
                    && !matches!(
                        open(path, None),
                        Err(JobProblem::NoLaunch(_) | JobProblem::Unread(_))
                    )
            })
            .map(|(path, _)| path.clone())
            .collect();
        match <[PathBuf; 1]>::try_from(found) {
            Ok([one]) => return Ok(one),
            Err(found) if found.is_empty() => {}
            Err(found) => return Err(JobProblem::Directory(found)),
        }
    }
    Err(JobProblem::Directory(Vec::new()))
}
