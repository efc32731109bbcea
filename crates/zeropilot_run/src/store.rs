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

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use zeropilot_record::{Accuracy, Event, RunEvent, RunInfo, TrainedStep, Verdict};

use crate::environment::masked;
use crate::events_copy::EventsCopy;
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
    files: Mutex<(File, Option<EventsCopy>)>,
    /// Held as long as the run lives, which is how others see that it does.
    _lock: File,
    failures: Mutex<Failures>,
}

/// What could not be written, until somebody asks.
#[derive(Debug, Default)]
struct Failures {
    first: Option<Unwritten>,
    /// A record that cannot grow fails at every event.
    is_record_told: bool,
}

/// What could not be written.
#[derive(Debug)]
pub enum Unwritten {
    /// The record.
    Record(io::Error),
    /// The copy of its events, which is given up.
    Copy(io::Error),
}

/// The file that a run holds locked while it lives.
const LOCK: &str = ".lock";

impl Recorder {
    /// Makes a directory and begins. Events are also added to `copy`, if given.
    ///
    /// # Errors
    /// If the directory or a file cannot be written.
    pub fn create(directory: &Path, copy: Option<EventsCopy>) -> io::Result<Self> {
        let lock = lock(directory)?;
        set_aside(directory)?;
        let events = File::create(directory.join("events.jsonl"))?;
        Ok(Self::with(directory, lock, events, copy))
    }

    /// Goes on with the record of an earlier run: what happens is added to what happened.
    ///
    /// # Errors
    /// If the run is not over, or a file cannot be written.
    pub fn reopen(directory: &Path, copy: Option<EventsCopy>) -> io::Result<Self> {
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

    fn with(directory: &Path, lock: File, events: File, copy: Option<EventsCopy>) -> Self {
        let files = Mutex::new((events, copy));
        Self { directory: directory.to_owned(), files, _lock: lock, failures: Mutex::default() }
    }

    /// Why something could not be written, once.
    pub fn take_failure(&self) -> Option<Unwritten> {
        let mut failures = self.failures.lock().ok()?;
        let first = failures.first.take()?;
        failures.is_record_told |= matches!(first, Unwritten::Record(_));
        Some(first)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds an event, at once: whoever follows sees it, and a killed zeropilot leaves it.
    pub fn add(&self, happening: RunEvent) {
        let line = Event::new(now(), happening).line();
        let line = format!("{}\n", masked(&line));
        let Ok(mut files) = self.files.lock() else { return };
        let (events, copy) = &mut *files;
        // A full disk or a reader that is gone must not end a run that trains.
        if let Err(error) = events.write_all(line.as_bytes()) {
            self.fail(Unwritten::Record(error));
        }
        if let Some(Err(error)) = copy.as_mut().map(|copy| copy.add(&line)) {
            *copy = None;
            self.fail(Unwritten::Copy(error));
        }
    }

    fn fail(&self, why: Unwritten) {
        let Ok(mut failures) = self.failures.lock() else { return };
        if !(failures.is_record_told && matches!(why, Unwritten::Record(_))) {
            failures.first.get_or_insert(why);
        }
    }

    /// Writes a file of the record.
    ///
    /// # Errors
    /// If it cannot be written, which [`Self::take_failure`] tells too.
    pub fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        self.replace(name, text).inspect_err(|error| self.fail(Unwritten::Record(the_same(error))))
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        // Never half a file under its name.
        let pending = self.directory.join(format!(".{name}.new"));
        let written = fs::write(&pending, masked(text).as_bytes());
        if let Err(error) = written.and_then(|()| fs::rename(&pending, &path)) {
            let _ = fs::remove_file(&pending);
            return Err(error);
        }
        Ok(path)
    }
}

fn the_same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
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
            "another run is writing to this directory",
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

/// Where the run with this name was set aside.
fn aside(directory: &Path, name: &OsStr) -> Option<PathBuf> {
    let earlier = (1..).map(|count: u32| directory.join(format!("earlier-{count}")));
    earlier
        .into_iter()
        .take_while(|path| path.exists())
        .find(|path| Record::open(path).is_ok_and(|record| name.to_str() == Some(&record.info.id)))
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

/// Bytes at the end of the steps of a record that the last loss is looked for in.
const LAST_STEPS: u64 = 64 << 10;

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

    /// The record of a run by its name in a directory of records. A directory that a link leads to may hold a later run
    /// by now, which has another name.
    pub fn named(home: &Path, name: &OsStr) -> Option<Self> {
        let path = home.join(name);
        let record = Self::open(&path).ok()?;
        (!path.is_symlink() || name.to_str() == Some(&record.info.id)).then_some(record)
    }

    /// All records in a directory, newest first; what is no record is passed over.
    pub fn list(home: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(home) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut records: Vec<Self> = names.filter_map(|name| Self::named(home, &name)).collect();
        records.sort_by(|a, b| b.info.started_at.total_cmp(&a.info.started_at));
        records
    }

    /// Lets the list of all records find one that is kept elsewhere. The links of runs that were there before it follow
    /// them to where they were set aside.
    ///
    /// # Errors
    /// If no link can be made.
    pub fn link(home: &Path, id: &str, directory: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        let directory = fs::canonicalize(directory)?;
        for entry in fs::read_dir(home)?.flatten() {
            let (link, name) = (entry.path(), entry.file_name());
            if name != id && fs::read_link(&link).is_ok_and(|target| target == directory) {
                fs::remove_file(&link)?;
                if let Some(aside) = aside(&directory, &name) {
                    symlink(aside, link)?;
                }
            }
        }
        symlink(directory, home.join(id))
    }

    /// The last step in the record, with the last loss of those near it.
    pub fn last_step(&self) -> Option<TrainedStep> {
        let mut file = File::open(self.directory.join("steps.jsonl")).ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        file.seek(SeekFrom::Start(end.saturating_sub(LAST_STEPS))).ok()?;
        let mut bytes = Vec::new();
        file.take(LAST_STEPS).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // The first line may be cut off, and the last one may be being written.
        let mut steps =
            text.lines().rev().filter_map(|line| serde_json::from_str::<TrainedStep>(line).ok());
        let last = steps.next()?;
        let loss = last.loss.or_else(|| steps.find_map(|step| step.loss));
        Some(TrainedStep { loss, ..last })
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
    fn the_last_step_of_a_record_has_the_last_loss() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = |text: &str| {
            fs::write(directory.path().join("steps.jsonl"), text).expect("a file");
            let (directory, info) = (directory.path().to_owned(), RunInfo::default());
            let step = Record { directory, info, verdict: None }.last_step();
            step.map(|step| (step.step, step.loss.map(|loss| loss.to_string())))
        };
        let line =
            |step: u64, loss: &str| format!("{{\"at\":1.0,\"attempt\":1,\"step\":{step}{loss}}}\n");
        let many: String = (1..=5000).map(|step| line(step, ",\"loss\":2.5")).collect();
        let two_and_a_half = Some("2.5".to_owned());
        assert_eq!(record(&many), Some((5000, two_and_a_half.clone())));
        assert_eq!(record(&(many.clone() + &line(5001, ""))), Some((5001, two_and_a_half.clone())));
        let cut = many.clone() + "{\"at\":1.0,\"att";
        assert_eq!(record(&cut), Some((5000, two_and_a_half)));
        let none = many + &line(5001, ",\"loss\":null");
        assert_eq!(record(&none), Some((5001, Some("NaN".to_owned()))));
        assert_eq!(record(""), None);
    }

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
    fn a_failure_is_told_once_whatever_could_not_be_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let lock = lock(directory.path()).expect("a lock");
        let recorder = Recorder::with(directory.path(), lock, full, None);
        recorder.add(RunEvent::Step { step: 1, loss: None });
        let Some(Unwritten::Record(failure)) = recorder.take_failure() else {
            panic!("the record cannot be written");
        };
        assert_eq!(failure.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        recorder.add(RunEvent::Step { step: 2, loss: None });
        assert!(recorder.take_failure().is_none(), "not for every event");
        drop(recorder);
        let recorder = Recorder::create(directory.path(), None).expect("a record");
        // A directory is in the way of the file.
        fs::create_dir(directory.path().join("tail-1.log")).expect("a directory");
        recorder.write("tail-1.log", "").expect_err("in the way");
        assert!(recorder.take_failure().is_some());
        assert!(!directory.path().join(".tail-1.log.new").exists());
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
    fn a_record_elsewhere_is_listed_and_stays_so_when_another_run_takes_its_place() {
        let home = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let list = || -> Vec<String> {
            Record::list(home.path()).into_iter().map(|record| record.info.id).collect()
        };
        let begin = |id: &str| {
            let recorder = Recorder::create(elsewhere.path(), None).expect("a record");
            let (host, checkpoints) = (Some("a".to_owned()), Some("/ckpt".to_owned()));
            let started_at = now();
            let id = id.to_owned();
            let info = RunInfo { id, host, checkpoints, started_at, ..RunInfo::default() };
            let text = serde_json::to_string(&info).expect("JSON");
            recorder.write("run.json", &text).expect("written");
            Record::link(home.path(), &info.id, elsewhere.path()).expect("a link");
            recorder
        };
        let first = begin("first");
        assert_eq!(list(), ["first"]);
        let writing = |host| Record::writing_to(home.path(), "/ckpt", Some(host));
        assert_eq!(writing("a").map(|record| record.info.id).as_deref(), Some("first"));
        assert!(writing("b").is_none(), "another node of the same job");
        drop(first);
        assert!(writing("a").is_none(), "it does not run any more");
        drop(begin("second"));
        assert_eq!(list(), ["second", "first"]);
        let _third = begin("third");
        assert_eq!(list(), ["third", "second", "first"]);
        let named = |name: &str| Record::named(home.path(), OsStr::new(name));
        for name in ["first", "second", "third"] {
            assert_eq!(named(name).expect("a record").info.id, name);
        }
        // What was set aside is gone: its name must not lead to the run that took its place.
        fs::remove_dir_all(elsewhere.path().join("earlier-2")).expect("removed");
        assert!(named("second").is_none());
        assert_eq!(list(), ["third", "first"]);
    }

    #[test]
    fn the_home_follows_the_variables() {
        let only =
            |known: &'static str| home(move |name| (name == known).then(|| PathBuf::from("/x")));
        assert_eq!(only("ZEROPILOT_RUNS"), Path::new("/x"));
        assert_eq!(only("HOME"), Path::new("/x/.local/state/zeropilot/runs"));
    }
}
