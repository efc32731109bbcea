//! Exceptions as Python prints them, rank by rank, with other lines between them.

/// How PyTorch names the data worker whose exception a rank raises again.
pub(crate) const OF_WORKER: &str = " in DataLoader worker process ";
/// Lines of an exception after which it is given up.
const LONGEST: usize = 2000;
/// Lines behind an exception that may still be its message.
const MESSAGE: usize = 5;

/// An exception that is being printed.
#[derive(Debug)]
struct Traceback {
    rank: Option<u32>,
    /// The last frame that is not of a library, else the last.
    place: Option<String>,
    is_own: bool,
    /// The data worker that raised it, if one did.
    worker: Option<u32>,
    /// Lines that may still come.
    left: usize,
    is_raised: bool,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing of an exception.
    None,
    /// A frame.
    Frame,
    /// The line that names it.
    Raised { line: String, place: Option<String>, worker: Option<u32> },
    /// More of its message.
    Message,
}

impl Part {
    /// Whether an exception says what the line says.
    pub(super) fn is_raised(&self) -> bool {
        matches!(self, Self::Raised { .. } | Self::Message)
    }
}

/// All that are being printed.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    open: Vec<Traceback>,
    /// Ranks that raised what their data worker had raised, whose own exception comes next.
    caught: Vec<(Option<u32>, u32)>,
}

impl Tracebacks {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// One begins.
    pub(super) fn begin(&mut self, rank: Option<u32>) {
        self.open.retain(|known| known.rank != rank);
        let caught = self.caught.iter().position(|(known, _)| *known == rank);
        let worker = caught.map(|index| self.caught.remove(index).1);
        let (left, place) = (LONGEST, None);
        self.open.push(Traceback { rank, place, is_own: false, worker, left, is_raised: false });
    }

    /// Reads a line of a rank, without what stands before it.
    pub(super) fn read(&mut self, rank: Option<u32>, text: &str) -> Part {
        // Lines of others count too, or an exception that never ends would be waited for.
        self.open.iter_mut().for_each(|known| known.left = known.left.saturating_sub(1));
        self.open.retain(|known| known.left > 0);
        let Some(known) = self.open.iter_mut().find(|known| known.rank == rank) else {
            return Part::None;
        };
        if known.is_raised {
            return Part::Message;
        }
        if let Some((place, is_own)) = frame(text) {
            if is_own || !known.is_own {
                known.place = Some(place);
                known.is_own = is_own;
            }
            return Part::Frame;
        }
        if !names_exception(text) {
            return Part::None;
        }
        known.is_raised = true;
        known.left = MESSAGE;
        let (place, worker) = (known.place.clone(), known.worker);
        if let Some((_, number)) = text.split_once(OF_WORKER) {
            let number = number.trim_end_matches('.').trim().parse();
            self.caught.extend(number.ok().map(|number| (rank, number)));
        }
        Part::Raised { line: text.to_owned(), place, worker }
    }
}

/// The place in `  File "train.py", line 9, in main`, and whether it is the user's.
fn frame(text: &str) -> Option<(String, bool)> {
    let (file, rest) = text.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let line = rest.split(|end: char| !end.is_ascii_digit()).next()?;
    let is_library = ["site-packages", "dist-packages", "/lib/python", "<frozen"];
    let is_own = !is_library.iter().any(|part| file.contains(part));
    Some((format!("{file}:{line}"), is_own))
}

/// Whether a line is the last of a traceback: a name of a class, alone or before a colon.
fn names_exception(text: &str) -> bool {
    let name = text.split_once(':').map_or(text, |(name, _)| name).trim_end();
    let class = name.rsplit('.').next().unwrap_or(name);
    class.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}
