//! Following a record that is being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zeropilot_record::Event;

/// Where one has read to in the events of a run.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line whose end has not been written.
    pending: Vec<u8>,
}

impl Follower {
    /// From the beginning of the record in a directory.
    pub fn new(directory: &Path) -> Self {
        Self { path: directory.join("events.jsonl"), offset: 0, pending: Vec::new() }
    }

    /// The events that came since the last time. Lines that are no events are passed over.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn fresh(&mut self) -> io::Result<Vec<Event>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = std::mem::take(&mut self.pending);
        self.offset += file.read_to_end(&mut bytes)? as u64;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.pending = bytes.split_off(end);
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().filter_map(|line| Event::read(line).ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn half_a_line_is_read_when_its_other_half_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("events.jsonl");
        let line = r#"{"shape":1,"at":2.0,"event":"stopping","signal":15}"#;
        fs::write(&path, format!("{line}\n{}", &line[..9])).expect("written");
        let mut follower = Follower::new(directory.path());
        assert_eq!(follower.fresh().expect("events").len(), 1);
        assert_eq!(follower.fresh().expect("events").len(), 0);
        let mut file = File::options().append(true).open(&path).expect("the file");
        writeln!(file, "{}\nnot an event\n{line}", &line[9..]).expect("written");
        assert_eq!(follower.fresh().expect("events").len(), 2);
    }
}
