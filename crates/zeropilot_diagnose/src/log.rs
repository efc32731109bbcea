//! A log in pieces of any size. Of each rank the lines of its last traceback that show something are kept, and every
//! message that memory ran out; nothing else, so that memory does not grow with the log.

use std::collections::VecDeque;

use memchr::memchr2_iter;

use crate::clue::{self, Clue};
use crate::diagnosis::{Diagnosis, Line};
use crate::fingerprint::{self, Meaning};
use crate::message::Message;
use crate::weigh;

/// The longest part of a line that is looked at.
const LONGEST: usize = 1 << 16;
/// Lines of a traceback that are kept of a rank.
const CLUES: usize = 48;
/// Ranks whose tracebacks are told apart.
const RANKS: usize = 256;
/// Messages that are kept.
const SHORTAGES: usize = 128;
/// Rows of `nvidia-smi` that are kept.
const GPUS: usize = 64;
/// Lines over which a terminal may have broken a message.
const BROKEN: usize = 4;
/// Lines behind a message in which its traceback may stand.
const BEHIND: u64 = 100;
/// The longest part of a line that is shown.
const SHOWN: usize = 400;

/// Who said that memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An allocator of a device.
    Device,
    /// A library that asks the device itself.
    Library,
    /// The machine.
    Host,
    /// A launcher that saw a process killed.
    Killed,
}

/// A line that shows something.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: Line,
    pub(crate) clue: &'static Clue,
}

/// A message that memory ran out, with what its traceback shows.
#[derive(Debug, Clone)]
pub(crate) struct Shortage {
    pub(crate) kind: Kind,
    pub(crate) line: Line,
    pub(crate) rank: Option<u32>,
    pub(crate) message: Message,
    pub(crate) clues: Vec<Seen>,
    /// The text, joined where it was broken, with and without a space.
    text: [String; 2],
}

/// Who writes a line: the rank, or the process of a Ray actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Writer {
    rank: Option<u32>,
    process: Option<u32>,
}

#[derive(Debug, Default)]
struct Traceback {
    writer: Writer,
    clues: VecDeque<Seen>,
    /// The line in which a notebook names the exception before the frames.
    heading: Option<Line>,
}

/// Reads a log.
#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
    lines: u64,
    tracebacks: Vec<Traceback>,
    shortages: Vec<Shortage>,
    /// Messages in all.
    count: u64,
    /// Lines that may still belong to the last message.
    broken: usize,
    /// Memory in use and in all, as `nvidia-smi` lists it.
    gpus: Vec<(u64, u64)>,
}

impl Reader {
    /// Takes the next piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut start = 0;
        for end in memchr2_iter(b'\n', b'\r', bytes) {
            self.keep(&bytes[start..end]);
            self.end_line();
            start = end + 1;
        }
        self.keep(&bytes[start..]);
    }

    /// What it all says; `None` if no memory ran out.
    pub fn finish(mut self) -> Option<Diagnosis> {
        self.end_line();
        let unsaid: Vec<(Line, Writer, Vec<Seen>)> = self
            .tracebacks
            .iter_mut()
            .filter_map(|one| {
                Some((one.heading.take()?, one.writer, one.clues.drain(..).collect()))
            })
            .collect();
        for (line, writer, clues) in unsaid {
            self.add(Kind::Device, line, writer, clues);
        }
        self.look_behind();
        weigh::diagnosis(self.shortages, self.count, &self.gpus)
    }

    /// Loggers write the message first and the traceback behind it.
    fn look_behind(&mut self) {
        for shortage in self.shortages.iter_mut().filter(|one| one.clues.is_empty()) {
            let of_rank = self.tracebacks.iter().filter(|one| one.writer.rank == shortage.rank);
            let near = shortage.line.number..shortage.line.number + BEHIND;
            let behind = of_rank.flat_map(|one| &one.clues);
            let behind = behind.filter(|seen| near.contains(&seen.line.number));
            shortage.clues = behind.cloned().collect();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.pending.len());
        self.pending.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.pending);
        self.lines += 1;
        let text = without_escapes(&String::from_utf8_lossy(&line));
        self.line(text.trim_end());
        self.pending = line;
        self.pending.clear();
    }

    fn line(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let line = Line { number: self.lines, text: shown(text) };
        let writer = Writer::of(text);
        if text.contains(TRACEBACK) {
            let traceback = self.traceback(writer);
            traceback.clues.clear();
            traceback.heading = text.contains(EXCEPTION).then_some(line);
            self.broken = 0;
            return;
        }
        if let Some(kind) = kind(text) {
            let traceback = self.traceback(writer);
            traceback.heading = None;
            let clues = traceback.clues.iter().cloned().collect();
            let mut clues: Vec<Seen> = clues;
            clues.extend(seen(text, &line));
            self.add(kind, line, writer, clues);
            self.continue_with(text);
            return;
        }
        self.go_on(text, writer);
        let found = seen(text, &line);
        if !found.is_empty() {
            let clues = &mut self.traceback(writer).clues;
            clues.extend(found);
            let excess = clues.len().saturating_sub(CLUES);
            clues.drain(..excess);
        }
        self.gpus.extend(gpu_row(text).filter(|_| self.gpus.len() < GPUS));
    }

    fn traceback(&mut self, writer: Writer) -> &mut Traceback {
        let known = self.tracebacks.iter().position(|one| one.writer == writer);
        let index = known.unwrap_or_else(|| {
            if self.tracebacks.len() == RANKS {
                self.tracebacks.remove(0);
            }
            self.tracebacks.push(Traceback { writer, ..Traceback::default() });
            self.tracebacks.len() - 1
        });
        &mut self.tracebacks[index]
    }

    fn add(&mut self, kind: Kind, line: Line, writer: Writer, clues: Vec<Seen>) {
        self.count += 1;
        let text = [String::new(), String::new()];
        let message = Message::default();
        if self.shortages.len() < SHORTAGES {
            self.shortages.push(Shortage { kind, line, rank: writer.rank, message, clues, text });
            self.broken = BROKEN;
        } else {
            self.broken = 0;
        }
    }

    /// A terminal broke a message over lines; only the first has the prefix of its rank.
    fn go_on(&mut self, text: &str, writer: Writer) {
        let last = self.shortages.last();
        let is_other = |rank: u32| last.is_none_or(|last| last.rank != Some(rank));
        if self.broken > 0 && !writer.rank.is_some_and(is_other) {
            self.broken -= 1;
            self.continue_with(text);
        }
    }

    fn continue_with(&mut self, text: &str) {
        let Some(last) = self.shortages.last_mut().filter(|_| self.broken > 0) else { return };
        let [spaced, tight] = &mut last.text;
        if !spaced.is_empty() {
            spaced.push(' ');
        }
        spaced.push_str(text.trim_start());
        tight.push_str(text);
        last.message = Message::read(spaced).or(Message::read(tight));
        if last.message.is_whole() {
            self.broken = 0;
        }
    }
}

const TRACEBACK: &str = "Traceback (most recent call last)";
const ADVICE: &str = " If reserved ";
const EXCEPTION: &str = "OutOfMemoryError";

fn kind(text: &str) -> Option<Kind> {
    let found = fingerprint::search(text.as_bytes());
    let of = |means| found.fingerprints.iter().find(|known| known.means == means);
    if let Some(device) = of(Meaning::DeviceMemory) {
        let is_library = matches!(device.id.as_str(), "nccl_oom" | "cublas_alloc");
        return Some(if is_library { Kind::Library } else { Kind::Device });
    }
    let host = of(Meaning::HostMemory).map(|_| Kind::Host);
    let is_killed =
        [Meaning::Killed, Meaning::WorkerKilled].into_iter().any(|means| of(means).is_some());
    let killed = is_killed || is_word_of_a_shell(text);
    host.or_else(|| killed.then_some(Kind::Killed))
}

/// `Killed`, or `run.sh: line 3: 4711 Killed   python train.py`.
fn is_word_of_a_shell(text: &str) -> bool {
    text.trim() == "Killed" || text.contains(": line ") && text.contains(" Killed ")
}

fn seen(text: &str, line: &Line) -> Vec<Seen> {
    let found = clue::search(text).into_iter();
    found.map(|clue| Seen { line: line.clone(), clue }).collect()
}

/// A line without what PyTorch advises in every message.
fn shown(text: &str) -> String {
    let text = text.trim_start();
    let text = text.split_once(ADVICE).map_or(text, |(said, _)| said);
    text.chars().take(SHOWN).collect()
}

impl Writer {
    /// `[rank1]:` of PyTorch, `[default1]:` of its launcher, `(Actor pid=77)` of Ray, anywhere near the beginning.
    fn of(text: &str) -> Self {
        const NEAR: usize = 80;
        let near: String = text.chars().take(NEAR).collect();
        let number = |before: &str, behind: &[char]| {
            let (_, rest) = near.split_once(before)?;
            rest.split(behind).next()?.parse().ok()
        };
        let rank = number("[rank", &[']']).or_else(|| number("[default", &[']']));
        Self { rank, process: number("pid=", &[',', ')', ' ']) }
    }
}

/// `15514MiB / 16130MiB`.
fn gpu_row(text: &str) -> Option<(u64, u64)> {
    let (used, rest) = text.split_once("MiB / ")?;
    let (total, _) = rest.split_once("MiB")?;
    let used = used.rsplit(|letter: char| !letter.is_ascii_digit()).next()?;
    let (used, total): (u64, u64) = (used.parse().ok()?, total.trim().parse().ok()?);
    Some((used.checked_mul(1 << 20)?, total.checked_mul(1 << 20)?))
}

/// The text without the codes that move a cursor and colour letters.
fn without_escapes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                let ends = |letter: &char| ('\u{40}'..='\u{7e}').contains(letter) && *letter != '[';
                letters.by_ref().find(ends);
            }
            letter if letter.is_control() && letter != '\t' => {}
            letter => clean.push(letter),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_and_other_signs_do_not_matter() {
        assert_eq!(without_escapes("\u{1b}[1;31mCUDA\u{1b}[0m out\u{7}"), "CUDA out");
        assert_eq!(without_escapes("half \u{1b}[3"), "half ");
    }

    #[test]
    fn who_writes_a_line_is_read_from_its_prefix() {
        assert_eq!(Writer::of("worker-5: [rank22]:   File").rank, Some(22));
        assert_eq!(Writer::of("(LLMRayActor pid=347860) CUDA Error").process, Some(347_860));
        assert_eq!(Writer::of("plain"), Writer::default());
    }

    #[test]
    fn a_shell_says_that_a_program_was_killed() {
        assert!(is_word_of_a_shell("Killed") && !is_word_of_a_shell("Killed by a test"));
        assert!(is_word_of_a_shell("run.sh: line 3:  4711 Killed       python train.py"));
    }

    #[test]
    fn memory_does_not_grow_with_the_log() {
        let line = "[rank7]:   File \"x.py\", line 3, in forward CUDA out of memory. Tried\n";
        let mut reader = Reader::default();
        for _ in 0..5000 {
            reader.feed(line.as_bytes());
            reader.feed(b"  File \"x.py\", line 3, in backward\n");
        }
        reader.feed(&b"x".repeat(3 * LONGEST));
        assert!(reader.pending.len() <= LONGEST && reader.shortages.len() <= SHORTAGES);
        assert!(reader.tracebacks.iter().all(|one| one.clues.len() <= CLUES));
        assert_eq!(reader.count, 5000);
    }
}
