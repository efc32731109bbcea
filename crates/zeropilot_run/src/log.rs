//! The output of a run: handed on as it is, and read line by line on the way.
//!
//! Nothing here grows with the output: of each line a limited part is looked at, and only the last lines are kept.

use std::collections::VecDeque;
use std::io::Read;

use zeropilot_record::{Ending, Phase};

use crate::fingerprint::{self, Fingerprint, Meaning};
use crate::progress::{self, Progress};

/// The longest part of a line that is looked at.
const LONGEST: usize = 8192;
/// The lines that are kept.
const KEPT: usize = 400;
/// The longest part of a line that is kept.
const KEPT_LENGTH: usize = 2000;
const BUFFER: usize = 1 << 16;

/// A stream of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What a line told.
#[derive(Debug)]
pub(crate) enum Told {
    /// Something known.
    Fingerprint {
        fingerprint: &'static Fingerprint,
        line: String,
        rank: Option<u32>,
        phase: Option<Phase>,
    },
    /// How far training is.
    Progress(Progress),
    /// What a launcher says of the first rank that failed.
    FirstFailure { rank: Option<u32>, ending: Option<Ending> },
}

/// Reads a stream to its end. `pass` gets every byte, `tell` what lines tell; the last lines come back.
pub(crate) fn follow(
    mut source: impl Read,
    mut pass: impl FnMut(&[u8]),
    mut tell: impl FnMut(Told),
) -> Vec<String> {
    let mut buffer = vec![0; BUFFER];
    let mut reader = Reader::default();
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                pass(&buffer[..count]);
                reader.feed(&buffer[..count], &mut tell);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    reader.end(&mut tell);
    reader.last.into()
}

#[derive(Default)]
struct Reader {
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
    last: VecDeque<String>,
    /// What each rank was doing when its exception came, by the outermost frame that tells.
    phases: Vec<(Option<u32>, Phase)>,
    /// Lines of a launcher's report that may still come, and what it said so far.
    report: usize,
    reported_rank: Option<u32>,
}

/// Lines of a launcher's report on the first failure.
const REPORT_LINES: usize = 8;

impl Reader {
    fn feed(&mut self, mut bytes: &[u8], tell: &mut impl FnMut(Told)) {
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.pending.is_empty() {
                self.line(&bytes[..end], tell);
            } else {
                self.keep(&bytes[..end]);
                let line = std::mem::take(&mut self.pending);
                self.line(&line, tell);
                self.pending = line;
                self.pending.clear();
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn end(&mut self, tell: &mut impl FnMut(Told)) {
        let line = std::mem::take(&mut self.pending);
        self.line(&line, tell);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.pending.len());
        self.pending.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line(&mut self, line: &[u8], tell: &mut impl FnMut(Told)) {
        let line = &line[..line.len().min(LONGEST)];
        if line.is_empty() {
            return;
        }
        self.remember(line);
        let found = fingerprint::search(line);
        if found.fingerprints.is_empty() && !found.may_tell {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let rank = rank_of(&text);
        for fingerprint in found.fingerprints {
            match fingerprint.means {
                Meaning::Traceback => self.phases.retain(|(known, _)| *known != rank),
                Meaning::RootCause => (self.report, self.reported_rank) = (REPORT_LINES, None),
                _ => {}
            }
            let phase = self.phases.iter().find(|(known, _)| *known == rank);
            let phase = phase.map(|(_, phase)| *phase);
            tell(Told::Fingerprint { fingerprint, line: cut(&text), rank, phase });
        }
        if !found.may_tell {
            return;
        }
        if let Some(phase) = phase_of(&text)
            && !self.phases.iter().any(|(known, _)| *known == rank)
        {
            self.phases.push((rank, phase));
        }
        self.read_report(&text, tell);
        if let Some(progress) = progress::read(&text) {
            tell(Told::Progress(progress));
        }
    }

    fn read_report(&mut self, text: &str, tell: &mut impl FnMut(Told)) {
        if self.report == 0 {
            return;
        }
        self.report -= 1;
        if let Some(rank) = field(text, "rank      :") {
            self.reported_rank = u32::try_from(rank).ok();
        }
        if let Some(code) = field(text, "exitcode  :") {
            let code = i32::try_from(code).unwrap_or(1);
            let ending = if code < 0 { Ending::Signaled(-code) } else { Ending::Exited(code) };
            tell(Told::FirstFailure { rank: self.reported_rank, ending: Some(ending) });
            self.report = 0;
        }
    }

    fn remember(&mut self, line: &[u8]) {
        let mut kept = if self.last.len() == KEPT {
            self.last.pop_front().unwrap_or_default()
        } else {
            String::new()
        };
        kept.clear();
        kept.push_str(&String::from_utf8_lossy(&line[..line.len().min(KEPT_LENGTH)]));
        self.last.push_back(kept);
    }
}

fn cut(text: &str) -> String {
    text.chars().take(400).collect()
}

/// The number behind a name in a launcher's report.
fn field(text: &str, name: &str) -> Option<i64> {
    let (_, value) = text.split_once(name)?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// The rank that PyTorch or its launcher writes before a line.
fn rank_of(text: &str) -> Option<u32> {
    let rest = text.strip_prefix("[rank").or_else(|| text.strip_prefix("[default"))?;
    rest.split_once(']')?.0.parse().ok()
}

/// What is being done in a frame of an exception.
fn phase_of(text: &str) -> Option<Phase> {
    let (_, function) = text.rsplit_once(", in ")?;
    match function.trim_end() {
        "save_checkpoint" | "_save_checkpoint" | "save_16bit_model" | "save_model" => {
            Some(Phase::Saving)
        }
        "initialize" | "from_pretrained" | "prepare" | "_prepare_deepspeed" => Some(Phase::Loading),
        "backward" => Some(Phase::Backward),
        "step" => Some(Phase::Step),
        "forward" | "_call_impl" => Some(Phase::Forward),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, chunk: usize) -> (Vec<Told>, Vec<String>) {
        let mut found = Vec::new();
        let mut reader = Reader::default();
        for bytes in text.as_bytes().chunks(chunk) {
            reader.feed(bytes, &mut |told| found.push(told));
        }
        reader.end(&mut |told| found.push(told));
        (found, reader.last.into())
    }

    const TRACEBACK: &str = "\
[rank1]: Traceback (most recent call last):
[rank1]:   File \"train.py\", line 9, in main
[rank1]:   File \"engine.py\", line 2, in backward
[rank1]:   File \"model.py\", line 7, in forward
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB
";

    #[test]
    fn the_phase_is_that_of_the_outermost_frame_wherever_reads_are_cut() {
        for chunk in [1, 3, 7, 64, 4096] {
            let (found, _) = told(TRACEBACK, chunk);
            let oom = found.iter().find_map(|told| match told {
                Told::Fingerprint { fingerprint, rank, phase, .. }
                    if fingerprint.means == Meaning::DeviceMemory =>
                {
                    Some((*rank, *phase))
                }
                _ => None,
            });
            assert_eq!(oom, Some((Some(1), Some(Phase::Backward))), "{chunk}");
        }
    }

    #[test]
    fn the_report_of_torchrun_names_the_first_rank() {
        let report = "Root Cause (first observed failure):\n[0]:\n  time      : x\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 3)\n";
        let (found, _) = told(report, 10);
        let first = found.iter().any(|told| {
            matches!(told, Told::FirstFailure { rank: Some(1), ending: Some(Ending::Signaled(9)) })
        });
        assert!(first, "{found:?}");
    }

    #[test]
    fn memory_does_not_grow_with_lines_or_their_length() {
        let text = format!("{}\n", "x".repeat(100_000)).repeat(50) + &"y\n".repeat(1000);
        let (_, last) = told(&text, 4096);
        assert_eq!(last.len(), KEPT);
        assert!(last.iter().all(|line| line.len() <= KEPT_LENGTH));
    }
}
