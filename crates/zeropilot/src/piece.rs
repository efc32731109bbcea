//! What a check says of one file, ready to be written.

use zeropilot_lint::Outcome;
use zeropilot_view::Summary;

use crate::adoption::Seen;

/// What is said of a file, in its final form, and what it counts.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The file with its findings in short, where several scripts may name it.
    pub(crate) shared: Option<Shared>,
    /// The words.
    pub(crate) text: String,
    /// The counts.
    pub(crate) summary: Summary,
    /// What was found, told or not, where a baseline is read or written.
    pub(crate) seen: Seen,
}

/// A file that several scripts may name.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Its name.
    pub(crate) file: String,
    /// What becomes of it, and its findings in short.
    pub(crate) findings: (Outcome, String),
    /// The words where these were told before.
    pub(crate) repeated: String,
}
