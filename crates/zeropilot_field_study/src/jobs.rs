//! Public launch scripts, training scripts and YAML, each checked as `zeropilot check` checks it in a checkout of its
//! repository. Which files those are is written in `knowledge/findings/jobs.jsonl`; the files themselves are not here.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use zeropilot_job::local::{Places, own_name};
use zeropilot_job::{FileKind, Launch, Outside};
use zeropilot_lint::job::{JobReport, judge};
use zeropilot_lint::{Settings, Severity};
use zeropilot_text::Language;

use crate::study::digest;

/// What a file is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Script,
    Training,
    Yaml,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Script, Self::Training, Self::Yaml];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Script => "launch scripts",
            Self::Training => "training scripts",
            Self::Yaml => "YAML of frameworks",
        }
    }
}

/// A file of the study.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) repository: String,
    pub(crate) commit: String,
    pub(crate) path: String,
    pub(crate) sha256: String,
    pub(crate) kind: Kind,
}

/// What is known of the config that a job trains with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Understanding {
    /// The launch is found and its config is read.
    Read,
    /// The launch is found, and its config is no file: the program or the framework makes it.
    Made,
    /// The launch is found, and the config it names is not in the repository.
    Absent,
    /// The launch is found, and only the run knows which config it names.
    Open,
    /// No launch of DeepSpeed is found.
    None,
}

impl Understanding {
    pub(crate) const ALL: [Self; 5] =
        [Self::Read, Self::Made, Self::Absent, Self::Open, Self::None];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Read => "zeropilot finds the launch and reads its config",
            Self::Made => "zeropilot finds the launch; a program or framework builds the config",
            Self::Absent => "zeropilot finds the launch; its config is not in the repository",
            Self::Open => "zeropilot finds the launch; the config is known only at run time",
            Self::None => "zeropilot finds no launch of DeepSpeed",
        }
    }

    pub(crate) fn is_understood(self) -> bool {
        self <= Self::Absent
    }

    fn of(launch: &Launch, has_file: &dyn Fn(&str) -> bool) -> Self {
        let given = &launch.given;
        let named = given.config.as_ref().map(|config| config.text.as_deref());
        match named {
            _ if given.dictionary.is_some() || launch.config_text.is_some() => Self::Read,
            Some(Some(name)) if name.starts_with('{') || has_file(name) => Self::Read,
            Some(Some(_)) => Self::Absent,
            Some(None) => Self::Open,
            // The config may be among words that only the run knows.
            None if launch.open_words() > usize::from(launch.program.is_none()) => Self::Open,
            None => Self::Made,
        }
    }
}

/// A finding in a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    /// The first 16 hex digits of the SHA-256 of the job's file.
    pub(crate) job: String,
    pub(crate) rule: &'static str,
    pub(crate) key: String,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    /// The file it is in, from the root of the repository.
    pub(crate) file: String,
    /// Where the job is, to read it.
    pub(crate) place: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct JobStudy {
    /// By kind and understanding: how many files.
    pub(crate) understood: BTreeMap<(Kind, Understanding), usize>,
    /// The same for each file, by its SHA-256.
    pub(crate) files: BTreeMap<String, Understanding>,
    pub(crate) crashed: Vec<String>,
    pub(crate) clean: usize,
    pub(crate) found: Vec<Found>,
}

/// The files of the study.
pub(crate) fn jobs() -> Vec<Job> {
    let text = include_str!("../../../knowledge/findings/jobs.jsonl");
    // The file is part of the program and a test reads it.
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

impl JobStudy {
    /// Checks every one of these files below a directory of checkouts; ends at one that is not what the study is about.
    pub(crate) fn of(checkouts: &Path, jobs: &[Job]) -> io::Result<Self> {
        let checkouts = std::path::absolute(checkouts)?;
        let mut study = Self::default();
        for job in jobs {
            let root = checkouts.join(&job.repository);
            let bytes = std::fs::read(root.join(&job.path)).map_err(|error| {
                io::Error::new(error.kind(), format!("{}/{}: {error}", job.repository, job.path))
            })?;
            if digest(&bytes) != job.sha256 {
                let words = format!("{}/{} is not at {}", job.repository, job.path, job.commit);
                return Err(io::Error::other(words));
            }
            // Paths in a job start where it is checked.
            std::env::set_current_dir(&root)?;
            study.count(job, &String::from_utf8_lossy(&bytes));
        }
        Ok(study)
    }

    fn count(&mut self, job: &Job, text: &str) {
        let path = PathBuf::from(&job.path);
        let command = FileKind::of(&job.path, text).command(&job.path);
        let text = match (job.kind, &command) {
            (Kind::Script, _) => Some(text),
            (_, Some(command)) => Some(command.as_str()),
            (_, None) => None,
        };
        let Some(text) = text else {
            self.note(job, Understanding::None);
            self.clean += 1;
            return;
        };
        let outside: Outside = own_name(&path).into_iter().collect();
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let places = Places::of(text, &outside, path.parent().unwrap_or(Path::new("")));
            let report = judge(text, &outside, &Settings::default(), &|name| places.read(name));
            (report, places)
        }));
        let Ok((report, places)) = judged else {
            self.crashed.push(format!("{}/{}", job.repository, job.path));
            return;
        };
        let launches = report.job.launches.iter();
        let has_file = |name: &str| places.find(name).is_some();
        let best = launches.map(|launch| Understanding::of(launch, &has_file)).min();
        self.note(job, best.unwrap_or(Understanding::None));
        let before = self.found.len();
        self.add(job, &report, &places);
        self.clean += usize::from(self.found.len() == before);
    }

    fn note(&mut self, job: &Job, how: Understanding) {
        *self.understood.entry((job.kind, how)).or_default() += 1;
        self.files.insert(job.sha256.clone(), how);
    }

    fn add(&mut self, job: &Job, report: &JobReport, places: &Places) {
        for file in &report.files {
            let name = file.name.as_deref().unwrap_or(&job.path);
            let at = file.name.as_deref().and_then(|name| places.find(name));
            let at = at.map_or_else(|| name.to_owned(), |path| from_root(&path));
            self.found.extend(file.report.diagnostics.iter().map(|found| Found {
                job: job.sha256.chars().take(16).collect(),
                rule: found.rule.code,
                key: found.path.to_string(),
                severity: found.severity,
                message: found.message(Language::English),
                file: at.clone(),
                place: format!("{}/{} ({name})", job.repository, job.path),
            }));
        }
    }

    /// How many files of a kind, and how many of them are understood.
    pub(crate) fn share(&self, kind: Kind) -> (usize, usize) {
        let of_kind = || self.understood.iter().filter(move |((it, _), _)| *it == kind);
        let understood = of_kind().filter(|((_, how), _)| how.is_understood());
        (of_kind().map(|(_, count)| count).sum(), understood.map(|(_, count)| count).sum())
    }
}

/// A path from the directory that is being looked at, without `.` and `..`.
fn from_root(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let mut parts = Vec::new();
    for part in path.strip_prefix(here).unwrap_or(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.pop().is_some() => {}
            part => parts.push(part),
        }
    }
    parts.iter().collect::<PathBuf>().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn at_least_300_files_are_named_by_what_fixes_them() {
        let jobs = jobs();
        assert!(jobs.len() >= 300, "{}", jobs.len());
        let distinct: BTreeSet<_> = jobs.iter().map(|job| &job.sha256).collect();
        assert_eq!(distinct.len(), jobs.len());
        let is_hex = |text: &str, length| {
            text.len() == length && text.chars().all(|letter| letter.is_ascii_hexdigit())
        };
        for job in &jobs {
            assert!(is_hex(&job.sha256, 64) && is_hex(&job.commit, 40), "{job:?}");
            assert_eq!(job.repository.split('/').count(), 2, "{job:?}");
            assert!(!job.path.starts_with('/') && !job.path.contains(".."), "{job:?}");
        }
        let of_one: BTreeSet<_> = jobs.iter().map(|job| (&job.repository, &job.commit)).collect();
        let repositories: BTreeSet<_> = jobs.iter().map(|job| &job.repository).collect();
        assert_eq!(of_one.len(), repositories.len(), "one commit of each repository");
    }

    #[test]
    fn what_is_known_of_a_launch_is_told_apart() {
        let of = |text: &str| {
            let script = zeropilot_job::read(text, &Outside::default(), &|_| None);
            let has_file = |name: &str| name == "ds.json";
            script.launches.first().map(|launch| Understanding::of(launch, &has_file))
        };
        assert_eq!(of("deepspeed a.py --deepspeed ds.json"), Some(Understanding::Read));
        assert_eq!(of("deepspeed a.py --deepspeed b.json"), Some(Understanding::Absent));
        assert_eq!(of("deepspeed a.py --deepspeed $CONFIG"), Some(Understanding::Open));
        assert_eq!(of("deepspeed a.py --zero_stage 2"), Some(Understanding::Made));
        assert_eq!(of("deepspeed a.py --zero_stage $Z"), Some(Understanding::Made));
        assert_eq!(of("deepspeed a.py $OPTIONS"), Some(Understanding::Open));
        assert_eq!(of("make all"), None);
    }
}
