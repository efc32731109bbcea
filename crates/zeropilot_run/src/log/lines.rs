//! What the lines of a stream tell.
//!
//! Most lines tell nothing. Whole reads are searched for any of the known texts, and only a line that has one is cut out
//! and looked at.

use memchr::{memchr2, memrchr2};
use zeropilot_diagnose::fingerprint::{self, Fingerprint, Meaning};
use zeropilot_record::{Ending, Phase, StepParts};

use super::traceback::{Part, Tracebacks};
use crate::allocator::{self, Allocator};
use crate::progress::{self, Progress};
use crate::step_parts;

/// The longest part of a line that is looked at.
const LONGEST: usize = 8192;

/// What a line told.
#[derive(Debug)]
pub(crate) enum Told {
    /// Something known.
    Fingerprint {
        fingerprint: &'static Fingerprint,
        line: String,
        rank: Option<u32>,
        phase: Option<Phase>,
        /// Whether an exception says so, and not a line that anything may have printed.
        is_raised: bool,
    },
    /// An exception that ended what a rank did, or that it printed.
    Exception {
        rank: Option<u32>,
        line: String,
        place: Option<String>,
        /// The data worker of the rank that raised it.
        worker: Option<u32>,
    },
    /// How far training is.
    Progress(Progress),
    /// What PyTorch holds.
    Allocator(Allocator),
    /// What the parts of a step took.
    StepParts(StepParts),
    /// What a launcher says of the first rank that failed.
    FirstFailure { rank: Option<u32>, ending: Option<Ending> },
}

#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
    /// What each rank was doing when its exception came, by the outermost frame that tells.
    phases: Vec<(Option<u32>, Phase)>,
    /// Exceptions that are being printed.
    tracebacks: Tracebacks,
    /// Lines of a launcher's report that may still come, and what it said so far.
    report: usize,
    reported_rank: Option<u32>,
}

/// Lines of a launcher's report on the first failure.
const REPORT_LINES: usize = 8;

impl Lines {
    pub(super) fn feed(&mut self, mut bytes: &[u8], tell: &mut impl FnMut(Told)) {
        if !self.pending.is_empty() {
            let Some(end) = memchr2(b'\n', b'\r', bytes) else { return self.keep(bytes) };
            self.keep(&bytes[..end]);
            self.end(tell);
            bytes = &bytes[end + 1..];
        }
        let whole = memrchr2(b'\n', b'\r', bytes).map_or(0, |last| last + 1);
        self.whole(&bytes[..whole], tell);
        self.keep(&bytes[whole..]);
    }

    /// Ends the line that is pending.
    pub(super) fn end(&mut self, tell: &mut impl FnMut(Told)) {
        let mut line = std::mem::take(&mut self.pending);
        self.line(&line, tell);
        line.clear();
        self.pending = line;
    }

    /// Lines that are all there.
    fn whole(&mut self, mut bytes: &[u8], tell: &mut impl FnMut(Told)) {
        while let Some(hit) = self.next(bytes) {
            let start = memrchr2(b'\n', b'\r', &bytes[..hit]).map_or(0, |before| before + 1);
            let end = memchr2(b'\n', b'\r', &bytes[hit..]).map_or(bytes.len(), |end| hit + end);
            self.line(&bytes[start..end], tell);
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
    }

    /// Where the next line is that must be looked at: while an exception is printed, that is every line.
    fn next(&self, bytes: &[u8]) -> Option<usize> {
        if self.tracebacks.is_empty() {
            return fingerprint::first(bytes);
        }
        bytes.iter().position(|byte| !matches!(byte, b'\n' | b'\r'))
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
        let found = fingerprint::search(line);
        if found.fingerprints.is_empty() && !found.may_tell && self.tracebacks.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let rank = rank_of(progress::behind_bar(&text));
        let part = self.tracebacks.read(rank, without_rank(progress::behind_bar(&text)));
        if let Part::Raised { line, place, worker } = &part {
            let (line, place, worker) = (cut(line), place.clone(), *worker);
            tell(Told::Exception { rank, line, place, worker });
        }
        let is_raised = part.is_raised();
        let mut meanings: Vec<Meaning> = Vec::new();
        for fingerprint in found.fingerprints {
            match fingerprint.means {
                Meaning::Traceback => {
                    self.phases.retain(|(known, _)| *known != rank);
                    self.tracebacks.begin(rank);
                }
                Meaning::RankFailed => {
                    let code = field(&text, "exits with return code =");
                    let ending = code.map(ending_of);
                    tell(Told::FirstFailure { rank: None, ending });
                }
                Meaning::RootCause => (self.report, self.reported_rank) = (REPORT_LINES, None),
                _ => {}
            }
            let phase = self.phases.iter().find(|(known, _)| *known == rank);
            let phase = phase.map(|(_, phase)| *phase);
            // A line may hold several texts that mean the same.
            if !meanings.contains(&fingerprint.means) {
                meanings.push(fingerprint.means);
                let line = cut(progress::behind_bar(&text));
                tell(Told::Fingerprint { fingerprint, line, rank, phase, is_raised });
            }
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
        if let Some(allocator) = allocator::read(&text) {
            tell(Told::Allocator(allocator));
        }
        if let Some(parts) = step_parts::read(&text) {
            tell(Told::StepParts(parts));
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
            let ending = Some(ending_of(code));
            tell(Told::FirstFailure { rank: self.reported_rank, ending });
            self.report = 0;
        }
    }
}

/// How a process ended that a launcher reports with this number.
fn ending_of(code: i64) -> Ending {
    let code = i32::try_from(code).unwrap_or(1);
    if code < 0 { Ending::Signaled(-code) } else { Ending::Exited(code) }
}

/// The text behind the rank that PyTorch or its launcher writes before a line.
fn without_rank(text: &str) -> &str {
    let behind = || {
        rank_of(text)?;
        let rest = text.split_once(']')?.1;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        Some(rest.strip_prefix(' ').unwrap_or(rest))
    };
    behind().unwrap_or(text)
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

    fn told(text: &str, chunk: usize) -> Vec<Told> {
        let mut found = Vec::new();
        let mut reader = Lines::default();
        for bytes in text.as_bytes().chunks(chunk) {
            reader.feed(bytes, &mut |told| found.push(told));
        }
        reader.end(&mut |told| found.push(told));
        found
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
            let found = told(TRACEBACK, chunk);
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
    fn an_error_behind_a_bar_is_told_once_and_without_the_bar() {
        let bar = " 25%|##5       | 50/200 [00:01<00:03, 49.9it/s]";
        let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
        let found = told(&format!("{bar}{error}\n"), 64);
        let lines: Vec<&str> = found
            .iter()
            .filter_map(|told| match told {
                Told::Fingerprint { line, .. } => Some(line.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(lines, [error]);
    }

    #[test]
    fn the_report_of_torchrun_names_the_first_rank() {
        let report = "Root Cause (first observed failure):\n[0]:\n  time      : x\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 3)\n";
        let found = told(report, 10);
        let first = found.iter().any(|told| {
            matches!(told, Told::FirstFailure { rank: Some(1), ending: Some(Ending::Signaled(9)) })
        });
        assert!(first, "{found:?}");
    }

    #[test]
    fn what_tells_is_found_wherever_reads_are_cut_and_whatever_stands_around_it() {
        let quiet = "nothing to see here\r\n".repeat(50);
        let long = "x".repeat(3 * LONGEST);
        let text = format!("{quiet}step 1 loss 2.5\n{quiet}{long} loss 9\n{quiet}step 2 loss 1.5");
        for chunk in [1, 5, 1000, 1 << 16] {
            let found = told(&text, chunk);
            let steps = found.iter().map(|told| match told {
                Told::Progress(progress) => (progress.step, progress.loss),
                other => panic!("{other:?}"),
            });
            let steps: Vec<_> = steps.collect();
            assert_eq!(steps, [(Some(1), Some(2.5)), (Some(2), Some(1.5))], "{chunk}");
        }
    }

    #[test]
    fn the_last_line_of_an_exception_is_told_with_its_place() {
        let text = "\
[rank1]: Traceback (most recent call last):
[rank0]: a warning of another rank: No space left on device
[rank1]:   File \"/home/me/train.py\", line 9, in main
[rank1]:     batch[\"labels_typo\"]
[rank1]:     ~~~~~^^^^^^^^^^^^^^^
[rank1]:   File \"/venv/lib/python3.11/site-packages/torch/x.py\", line 2, in forward
[rank1]: KeyError: 'labels_typo'
step 3 loss 1.0
Traceback (most recent call last):
  File \"/home/me/other.py\", line 4, in <module>
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported
";
        for chunk in [1, 7, 4096] {
            let found = told(text, chunk);
            let raised: Vec<(Option<u32>, &str, Option<&str>)> = found
                .iter()
                .filter_map(|told| match told {
                    Told::Exception { rank, line, place, .. } => {
                        Some((*rank, line.as_str(), place.as_deref()))
                    }
                    _ => None,
                })
                .collect();
            let illegal = "RuntimeError: CUDA error: an illegal memory access was encountered";
            assert_eq!(
                raised,
                [
                    (Some(1), "KeyError: 'labels_typo'", Some("/home/me/train.py:9")),
                    (None, illegal, Some("/home/me/other.py:4"))
                ],
                "{chunk}"
            );
            let full = found.iter().find_map(|told| match told {
                Told::Fingerprint { fingerprint, is_raised, .. }
                    if fingerprint.means == Meaning::DiskFull =>
                {
                    Some(*is_raised)
                }
                _ => None,
            });
            assert_eq!(full, Some(false), "{chunk}: a warning is no exception");
        }
    }

    /// As PyTorch 2.13 prints it: the rank raises again what its worker raised.
    #[test]
    fn an_exception_of_a_data_worker_is_told_with_the_worker() {
        let text = "\
[rank1]: Traceback (most recent call last):
[rank1]:   File \"/home/me/train.py\", line 20, in main
[rank1]:   File \"/venv/lib/python3.11/site-packages/torch/_utils.py\", line 782, in reraise
[rank1]:     raise exception
[rank1]: ValueError: Caught ValueError in DataLoader worker process 3.
[rank1]: Original Traceback (most recent call last):
[rank1]:   File \"/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py\", line 9, in _worker_loop
[rank1]:   File \"/home/me/data.py\", line 7, in __getitem__
[rank1]: ValueError: bad sample 17
";
        for chunk in [1, 7, 4096] {
            let found = told(text, chunk);
            let raised = found.iter().rev().find_map(|told| match told {
                Told::Exception { rank, line, place, worker } => {
                    Some((*rank, line.as_str(), place.as_deref(), *worker))
                }
                _ => None,
            });
            let expected =
                (Some(1), "ValueError: bad sample 17", Some("/home/me/data.py:7"), Some(3));
            assert_eq!(raised, Some(expected), "{chunk}");
        }
    }

    #[test]
    fn the_deepspeed_launcher_says_how_the_first_rank_ended() {
        let line = "[2026-01-01] [ERROR] [launch.py:325:sigkill_handler] ['python', 't.py'] exits with return code = -15\n";
        let found = told(line, 4096);
        let first = found.iter().any(|told| {
            matches!(told, Told::FirstFailure { rank: None, ending: Some(Ending::Signaled(15)) })
        });
        assert!(first, "{found:?}");
    }
}
