//! Records of runs on disk: one directory a run.
//!
//! | file | what |
//! | --- | --- |
//! | `run.json` | what was asked for ([`RunInfo`]) |
//! | `events.jsonl` | what happened ([`Event`]), one a line |
//! | `steps.jsonl` | every step that the log prints ([`zeropilot_record::TrainedStep`]), one a line |
//! | `config-N.json` | the config of attempt N |
//! | `tail-N.log` | the last lines of attempt N |
//! | `stacks-N/` | where ranks stood when nothing moved |
//! | `accuracy.json` | what was predicted for it and what it needed ([`Accuracy`]); missing if nothing can be compared |
//! | `continue.json` | what a later start needs to continue it ([`crate::Continuation`]) |
//! | `verdict.json` | what became of it ([`Verdict`]); missing while it runs, or if zeropilot itself was killed |

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use zeropilot_record::{Accuracy, Event, RunEvent, RunInfo, Verdict};

use crate::environment::masked;
use crate::process::Process;

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Where records are kept if nobody says otherwise: the user's directory for state.
pub fn home(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    if let Some(own) = variable("ZEROPILOT_RUNS") {
        return own;
    }
    let state = variable("XDG_STATE_HOME")
        .or_else(|| Some(variable("HOME")?.join(".local/state")))
        .unwrap_or_else(|| PathBuf::from("."));
    state.join("zeropilot/runs")
}

/// The record of a run that is being made.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    files: Mutex<Vec<File>>,
    /// Held as long as the run lives, which is how others see that it does.
    _lock: File,
    /// Why something could not be written, until somebody asks.
    failure: Mutex<Option<io::Error>>,
}

/// The file that a run holds locked while it lives.
const LOCK: &str = ".lock";

impl Recorder {
    /// Makes a directory and begins. Events are also added to `copy`, if given.
    ///
    /// # Errors
    /// If the directory or a file cannot be written.
    pub fn create(directory: &Path, copy: Option<File>) -> io::Result<Self> {
        let lock = lock(directory)?;
        set_aside(directory)?;
        let events = File::create(directory.join("events.jsonl"))?;
        Ok(Self::with(directory, lock, events, copy))
    }

    /// Goes on with the record of an earlier run: what happens is added to what happened.
    ///
    /// # Errors
    /// If the run is not over, or a file cannot be written.
    pub fn reopen(directory: &Path, copy: Option<File>) -> io::Result<Self> {
        let lock = lock(directory)?;
        let path = directory.join("events.jsonl");
        let mut events = File::options().read(true).append(true).create(true).open(path)?;
        let mut last = [b'\n'];
        if events.seek(SeekFrom::End(-1)).is_ok() {
            events.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            events.write_all(b"\n")?;
        }
        // It is over no more.
        match fs::remove_file(directory.join("verdict.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self::with(directory, lock, events, copy)),
        }
    }

    fn with(directory: &Path, lock: File, events: File, copy: Option<File>) -> Self {
        let files = Mutex::new(std::iter::once(events).chain(copy).collect());
        Self { directory: directory.to_owned(), files, _lock: lock, failure: Mutex::default() }
    }

    /// Why something could not be written, once.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.failure.lock().ok()?.take()
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds an event, at once: whoever follows sees it, and a killed zeropilot leaves it.
    pub fn add(&self, happening: RunEvent) {
        let line = Event::new(now(), happening).line();
        let line = format!("{}\n", masked(&line));
        if let Ok(mut files) = self.files.lock() {
            for file in files.iter_mut() {
                // A full disk must not end a run that trains.
                if let Err(error) = file.write_all(line.as_bytes())
                    && let Ok(mut failure) = self.failure.lock()
                {
                    failure.get_or_insert(error);
                }
            }
        }
    }

    /// Writes a file of the record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        // Never half a file under its name.
        let pending = self.directory.join(format!(".{name}.new"));
        fs::write(&pending, masked(text).as_bytes())?;
        fs::rename(&pending, &path)?;
        Ok(path)
    }
}

/// Takes a directory for one run, and makes it if it is not there.
fn lock(directory: &Path) -> io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join(LOCK))?;
    if let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive)
        && error == Errno::WOULDBLOCK
    {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another run writes to this directory",
        ));
    }
    Ok(lock)
}

/// Moves what an earlier run left in a directory into one of its own below it.
fn set_aside(directory: &Path) -> io::Result<()> {
    if !directory.join("run.json").exists() {
        return Ok(());
    }
    let earlier = (1..).map(|count: u32| directory.join(format!("earlier-{count}")));
    let aside = earlier.into_iter().find(|path| !path.exists()).unwrap_or_default();
    fs::create_dir(&aside)?;
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let is_earlier = name.to_string_lossy().starts_with("earlier-");
        if !is_earlier && name != LOCK {
            fs::rename(entry.path(), aside.join(name))?;
        }
    }
    Ok(())
}

/// What a record says.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it is.
    pub directory: PathBuf,
    /// What was asked for.
    pub info: RunInfo,
    /// What became of it.
    pub verdict: Option<Verdict>,
}

/// Records that are looked through for comparisons.
const COMPARED: usize = 500;

/// Predictions beside their measurements in a directory of records, newest first.
pub fn accuracies(home: &Path) -> Vec<Accuracy> {
    let Ok(entries) = fs::read_dir(home) else { return Vec::new() };
    // Records are named by when they began.
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let read = |name| fs::read_to_string(home.join(name).join("accuracy.json")).ok();
    let texts = names.into_iter().take(COMPARED).filter_map(read);
    texts.filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has a verdict.
    Ended,
    /// Its supervisor lives.
    Running,
    /// It has no verdict and no supervisor: zeropilot was killed, or the machine went down.
    Lost,
}

impl Record {
    /// Reads the record in a directory.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let info = serde_json::from_str(&fs::read_to_string(directory.join("run.json"))?)?;
        let verdict = match fs::read_to_string(directory.join("verdict.json")) {
            Ok(text) => Some(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { directory: directory.to_owned(), info, verdict })
    }

    /// All records in a directory, newest first; what is no record is passed over.
    pub fn list(home: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(home) else { return Vec::new() };
        let open = |entry: fs::DirEntry| {
            let record = Self::open(&entry.path()).ok()?;
            // A directory that a link leads to may hold a later run by now.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let is_own = !is_link || entry.file_name().to_str() == Some(&record.info.id);
            is_own.then_some(record)
        };
        let mut records: Vec<Self> = entries.flatten().filter_map(open).collect();
        records.sort_by(|a, b| b.info.started_at.total_cmp(&a.info.started_at));
        records
    }

    /// Lets the list of all records find one that is kept elsewhere.
    ///
    /// # Errors
    /// If no link can be made.
    pub fn link(home: &Path, id: &str, directory: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        std::os::unix::fs::symlink(fs::canonicalize(directory)?, home.join(id))
    }

    /// A run that is going on at this machine and writes its checkpoints to this directory.
    pub fn writing_to(home: &Path, checkpoints: &str, host: Option<&str>) -> Option<Self> {
        let is_same = |record: &Self| {
            record.info.checkpoints.as_deref() == Some(checkpoints)
                && record.info.host.as_deref() == host
                && record.standing() == Standing::Running
        };
        Self::list(home).into_iter().find(is_same)
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        if self.verdict.is_some() {
            return Standing::Ended;
        }
        if let Ok(lock) = File::open(self.directory.join(LOCK)) {
            // A lock holds for containers and machines that share the directory, where a number means nothing.
            return match flock(&lock, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => Standing::Running,
                _ => Standing::Lost,
            };
        }
        let supervisor = i32::try_from(self.info.supervisor).ok().and_then(Process::read);
        if supervisor.is_some_and(|process| process.is_alive()) {
            Standing::Running
        } else {
            Standing::Lost
        }
    }

    /// Its events. Lines that cannot be read are passed over: the last one of a killed run may be half.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn events(&self) -> io::Result<impl Iterator<Item = Event>> {
        let file = File::open(self.directory.join("events.jsonl"))?;
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        Ok(lines.filter_map(|line| Event::read(&line).ok()))
    }

    /// The last lines of an attempt.
    pub fn tail(&self, attempt: u32) -> String {
        let path = self.directory.join(format!("tail-{attempt}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_at_the_end_does_not_spoil_the_rest() {
        let directory = tempfile::tempdir().expect("a directory");
        let recorder = Recorder::create(directory.path(), None).expect("a record");
        recorder.add(RunEvent::Step { step: 1, loss: Some(2.0) });
        let path = directory.path().join("events.jsonl");
        let mut text = fs::read_to_string(&path).expect("events");
        text.push_str("{\"shape\":1,\"at\":3");
        fs::write(&path, text).expect("events");
        let info = RunInfo { shape: 1, id: "a".to_owned(), ..RunInfo::default() };
        recorder.write("run.json", &serde_json::to_string(&info).expect("JSON")).expect("written");
        let record = Record::open(directory.path()).expect("a record");
        assert_eq!(record.events().expect("events").count(), 1);
        assert_eq!(record.standing(), Standing::Running);
        drop(recorder);
        assert_eq!(record.standing(), Standing::Lost);
    }

    #[test]
    fn a_record_that_is_continued_keeps_its_events_and_loses_its_verdict() {
        let directory = tempfile::tempdir().expect("a directory");
        let events = directory.path().join("events.jsonl");
        let first = Recorder::create(directory.path(), None).expect("a record");
        first.add(RunEvent::Step { step: 1, loss: None });
        first.write("verdict.json", "{}").expect("written");
        drop(first);
        // It was killed in the middle of a line.
        let mut text = fs::read_to_string(&events).expect("events");
        text.push_str("{\"shape\":1,");
        fs::write(&events, text).expect("events");
        let again = Recorder::reopen(directory.path(), None).expect("a record");
        again.add(RunEvent::Continued { attempts: 1 });
        let read = fs::read_to_string(&events).expect("events");
        let read: Vec<Event> = read.lines().filter_map(|line| Event::read(line).ok()).collect();
        assert_eq!(read.len(), 2, "{read:?}");
        assert!(!directory.path().join("verdict.json").exists());
    }

    #[test]
    fn a_record_has_one_owner_and_keeps_what_was_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("record");
        let first = Recorder::create(&path, None).expect("a record");
        first.write("run.json", "{}").expect("written");
        first.write("verdict.json", "{}").expect("written");
        let busy = Recorder::create(&path, None).expect_err("it is in use");
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        let second = Recorder::create(&path, None).expect("a record");
        assert!(
            !path.join("verdict.json").exists() && path.join("earlier-1/verdict.json").is_file()
        );
        second.write("tail-1.log", "hf_abcdefghijklmnopqrstu\n").expect("written");
        second.add(RunEvent::RunStarted {
            id: "a".to_owned(),
            command: vec!["https://u:p@h/".to_owned()],
        });
        let read = |name: &str| fs::read_to_string(path.join(name)).expect("a file");
        assert!(read("tail-1.log").starts_with("[removed]"));
        assert!(read("events.jsonl").contains("https://[removed]@h/"));
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).expect("a directory"));
        assert_eq!(mode & 0o077, 0, "nobody else reads it");
    }

    #[test]
    fn a_record_elsewhere_is_listed_until_another_run_takes_its_place() {
        let home = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let list = || -> Vec<String> {
            Record::list(home.path()).into_iter().map(|record| record.info.id).collect()
        };
        let begin = |id: &str| {
            let recorder = Recorder::create(elsewhere.path(), None).expect("a record");
            let (host, checkpoints) = (Some("a".to_owned()), Some("/ckpt".to_owned()));
            let info = RunInfo { id: id.to_owned(), host, checkpoints, ..RunInfo::default() };
            let text = serde_json::to_string(&info).expect("JSON");
            recorder.write("run.json", &text).expect("written");
            Record::link(home.path(), id, elsewhere.path()).expect("a link");
            recorder
        };
        let first = begin("first");
        assert_eq!(list(), ["first"]);
        let writing = |host| Record::writing_to(home.path(), "/ckpt", Some(host));
        assert_eq!(writing("a").map(|record| record.info.id).as_deref(), Some("first"));
        assert!(writing("b").is_none(), "another node of the same job");
        drop(first);
        assert!(writing("a").is_none(), "it does not run any more");
        let _second = begin("second");
        assert_eq!(list(), ["second"]);
    }

    #[test]
    fn the_home_follows_the_variables() {
        let only =
            |known: &'static str| home(move |name| (name == known).then(|| PathBuf::from("/x")));
        assert_eq!(only("ZEROPILOT_RUNS"), Path::new("/x"));
        assert_eq!(only("HOME"), Path::new("/x/.local/state/zeropilot/runs"));
    }
}
