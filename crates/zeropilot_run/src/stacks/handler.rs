//! The handler by which a rank writes its own stack: `faulthandler`, Python's own, brought in by a `sitecustomize`. A thread
//! beside it writes what PyTorch's flight recorder holds.
//!
//! It asks for SIGURG, which the kernel ignores wherever nobody handles it: even a process that took the number of a rank
//! meanwhile is not harmed by it.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::Signal;

use super::flight_recorder::Calls;
use super::frame::Stack;
use crate::process::Process;

const PROGRAM: &str = include_str!("sitecustomize.py");
/// Files of answers begin anew once they are larger than this.
const LARGE: u64 = 1 << 20;

/// What is in place for one attempt.
#[derive(Debug)]
pub(crate) struct Handler {
    /// Where Python finds the program.
    python: PathBuf,
    /// Where ranks write, each into a file named by its process.
    answers: PathBuf,
}

impl Handler {
    /// Puts it into the directory of a record; nothing if that cannot be written.
    pub(crate) fn install(record: &Path) -> Option<Self> {
        let record = fs::canonicalize(record).ok()?;
        let handler = Self { python: record.join(".python"), answers: record.join(".stacks") };
        handler.remove();
        fs::create_dir(&handler.python).ok()?;
        fs::create_dir(&handler.answers).ok()?;
        fs::write(handler.python.join("sitecustomize.py"), PROGRAM).ok()?;
        Some(handler)
    }

    /// Variables of the command that bring it in.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let path = std::env::var_os("PYTHONPATH").filter(|path| !path.is_empty());
        let mut own = self.python.clone().into_os_string();
        if let Some(path) = path {
            own.push(":");
            own.push(path);
        }
        vec![("PYTHONPATH", own), ("ZEROPILOT_STACKS", self.answers.clone().into())]
    }

    /// Asks processes for their stacks, each with the process whose file it writes to: a child that a rank forked has the
    /// rank's. Gives those that answered in time.
    pub(crate) fn ask(&self, asked: &[(Process, i32)], patience: Duration) -> Vec<Option<Stack>> {
        let mut asked: Vec<Asked> =
            asked.iter().map(|(process, owner)| self.begin(*process, *owner)).collect();
        let end = Instant::now() + patience;
        while asked.iter().any(Asked::is_open) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
            asked.iter_mut().for_each(Asked::read);
        }
        let whole = |stack: Stack| stack.main().is_some().then_some(stack);
        asked.into_iter().map(|asked| asked.stack.and_then(whole)).collect()
    }

    fn begin(&self, process: Process, owner: i32) -> Asked {
        let path = self.answers.join(owner.to_string());
        let mut before = fs::metadata(&path).ok().map(|file| file.len());
        if before.is_some_and(|bytes| bytes > LARGE)
            && let Ok(file) = fs::File::options().write(true).open(&path)
        {
            // Ranks write behind the end, wherever that is.
            before = file.set_len(0).map_or(before, |()| Some(0));
        }
        let is_asked = before.is_some() && process.handles(Signal::URG.as_raw());
        if is_asked {
            process.signal(Signal::URG);
        }
        let before = usize::try_from(before.unwrap_or(0)).unwrap_or(0);
        Asked { path: is_asked.then_some(path), before, stack: None }
    }

    /// Asks processes for the collectives that they called. Gives those that answered in time.
    pub(crate) fn ask_calls(&self, asked: &[Process], patience: Duration) -> Vec<Option<Calls>> {
        let answer = |process: &Process| self.answers.join(format!("{}.json", process.pid));
        let ask = |process: &Process| {
            // An answer to an earlier question says nothing about now.
            let _ = fs::remove_file(answer(process));
            let request = self.answers.join(format!("{}.asked", process.pid));
            // Without blocking, it opens only where a thread reads.
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            let file = fs::File::options().write(true).custom_flags(flags).open(request);
            file.and_then(|mut file| file.write_all(b"?")).is_ok()
        };
        let open: Vec<bool> = asked.iter().map(ask).collect();
        let is_there = |(process, is_open): (&Process, &bool)| !is_open || answer(process).exists();
        let end = Instant::now() + patience;
        while !asked.iter().zip(&open).all(is_there) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let read = |process| Calls::read(&fs::read_to_string(answer(process)).ok()?);
        asked.iter().map(read).collect()
    }

    fn remove(&self) {
        // What cannot be removed is left behind, hidden in the record.
        let _ = fs::remove_dir_all(&self.python);
        let _ = fs::remove_dir_all(&self.answers);
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A process that was asked.
struct Asked {
    /// Its file, if it has a handler.
    path: Option<PathBuf>,
    /// What was in the file before.
    before: usize,
    stack: Option<Stack>,
}

impl Asked {
    fn is_open(&self) -> bool {
        self.path.is_some() && !self.stack.as_ref().is_some_and(Stack::is_complete)
    }

    fn read(&mut self) {
        if !self.is_open() {
            return;
        }
        let Some(bytes) = self.path.as_ref().and_then(|path| fs::read(path).ok()) else { return };
        let text = String::from_utf8_lossy(bytes.get(self.before..).unwrap_or_default());
        self.stack = Some(Stack::read_faulthandler(&text));
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A Python process as a launcher starts a rank, once it says that it runs.
    fn rank(handler: Option<&Handler>, path: &Path) -> Option<(std::process::Child, Process)> {
        let program = "import os, time, sys\nassert 'ZEROPILOT_STACKS' not in os.environ\nprint(os.environ.get('PYTHONPATH'), getattr(sys, 'theirs', None), flush=True)\nexec('def wait():\\n    time.sleep(60)\\nwait()')\n";
        let mut command = Command::new("python3");
        command.args(["-c", program]).env("RANK", "0").env("LOCAL_RANK", "0");
        command.env("PYTHONPATH", path).stdout(Stdio::piped());
        if let Some(handler) = handler {
            let (name, mut own) = handler.variables().swap_remove(0);
            own.push(":");
            own.push(path);
            command.env(name, own).env("ZEROPILOT_STACKS", &handler.answers);
        }
        let mut child = command.spawn().ok()?;
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take()?);
        std::io::BufRead::read_line(&mut output, &mut line).ok()?;
        assert_eq!(line.trim(), format!("{} 7", path.display()), "the program's own is as it was");
        let process = Process::read(i32::try_from(child.id()).ok()?)?;
        Some((child, process))
    }

    #[test]
    fn a_rank_writes_its_stack_and_sees_nothing_of_it() {
        let record = tempfile::tempdir().expect("a directory");
        let theirs = tempfile::tempdir().expect("a directory");
        let text = "import sys\nsys.theirs = 7\n";
        fs::write(theirs.path().join("sitecustomize.py"), text).expect("a file");
        let handler = Handler::install(record.path()).expect("a handler");
        let Some((mut child, process)) = rank(Some(&handler), theirs.path()) else {
            println!("SKIPPED: python3 does not run here");
            return;
        };
        let Some((mut bare, without)) = rank(None, theirs.path()) else { return };
        for _ in 0..2 {
            let stacks = handler
                .ask(&[(process, process.pid), (without, without.pid)], Duration::from_secs(5));
            let main = stacks[0].as_ref().and_then(Stack::main).expect("a stack");
            assert_eq!(main.frames[0].function, "wait", "{main:?}");
            assert_eq!(stacks[1], None);
        }
        assert!(bare.try_wait().expect("a status").is_none(), "nobody was harmed");
        for child in [&mut child, &mut bare] {
            child.kill().expect("it ends");
            child.wait().expect("it ends");
        }
        drop(handler);
        assert_eq!(fs::read_dir(record.path()).expect("a directory").count(), 0);
    }
}
