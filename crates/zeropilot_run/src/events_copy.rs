//! A second copy of the events, in a file or a pipe that the user names. A run never waits for whoever reads it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Bytes that wait for a slow reader; more are lost, and that is said.
const MOST: usize = 1 << 20;

/// Why there can be no copy.
#[derive(Debug)]
pub enum NoCopy {
    /// It is a pipe that nobody reads.
    NoReader,
    /// The file cannot be written.
    Unwritable(io::Error),
}

/// The copy.
#[derive(Debug)]
pub struct EventsCopy {
    file: File,
    /// What a pipe that is full did not take yet.
    pending: Vec<u8>,
}

impl EventsCopy {
    /// Opens a file to add to, or a pipe that somebody reads.
    ///
    /// # Errors
    /// If nobody reads the pipe, or the file cannot be written.
    pub fn open(path: &Path) -> Result<Self, NoCopy> {
        // Opening a pipe without a reader would wait for one without end.
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = File::options();
        let opened = options.append(true).create(true).custom_flags(nonblock).open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::NXIO.raw_os_error() => NoCopy::NoReader,
            _ => NoCopy::Unwritable(error),
        })?;
        Ok(Self { file, pending: Vec::new() })
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: &str) -> io::Result<()> {
        self.pending.extend_from_slice(line.as_bytes());
        while !self.pending.is_empty() {
            match self.file.write(&self.pending) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && self.pending.len() < MOST =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_pipe_is_never_waited_for_and_loses_no_line_of_a_slow_reader() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        assert!(matches!(EventsCopy::open(&pipe), Err(NoCopy::NoReader)));
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let reader = File::options().read(true).custom_flags(nonblock).open(&pipe);
        let mut reader = reader.expect("a reader");
        let mut copy = EventsCopy::open(&pipe).expect("it is read");
        // Twice what a pipe holds.
        let line = format!("{}\n", "x".repeat(1023));
        (0..128).for_each(|_| copy.add(&line).expect("kept"));
        let mut read = 0;
        let mut bytes = [0; 1 << 16];
        while let Ok(count) = reader.read(&mut bytes) {
            read += count;
        }
        copy.add(&line).expect("written");
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            read += count;
            copy.add("").expect("written");
        }
        assert_eq!(read, 129 * 1024);
        drop(reader);
        assert!(copy.add(&line).is_err(), "nobody reads any more");
    }

    #[test]
    fn a_file_is_added_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("events");
        for line in ["a\n", "b\n"] {
            EventsCopy::open(&path).expect("a file").add(line).expect("written");
        }
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "a\nb\n");
    }
}
