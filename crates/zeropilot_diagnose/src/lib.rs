//! Why a run went out of memory, from its log alone: the allocator's numbers and the frames of the traceback.
//!
//! [`Reader`] takes a log in pieces of any size and keeps a bounded part of it; [`Reader::finish`] answers. What texts and
//! frames mean is data: `knowledge/fingerprints/logs.json` and `knowledge/messages/frames.json`.

mod cause;
mod clue;
mod diagnosis;
pub mod fingerprint;
mod log;
pub mod message;
mod weigh;

pub use cause::{Cause, Certainty, Phase};
pub use clue::Object;
pub use diagnosis::{Diagnosis, Gap, Line, Memory};
pub use log::Reader;
pub use message::Message;

/// Diagnoses a whole text; `None` if it mentions no memory that ran out.
pub fn diagnose(text: &str) -> Option<Diagnosis> {
    let mut reader = Reader::default();
    reader.feed(text.as_bytes());
    reader.finish()
}
