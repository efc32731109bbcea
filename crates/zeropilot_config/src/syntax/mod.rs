//! Config text to a tree with places, as the engine's own readers would read it.
//!
//! DeepSpeed reads a config file as Hjson ([`parse_hjson`]); HF Trainer and accelerate read the
//! same file as JSON the way Python does ([`parse_json`]). Both give a [`Document`] that keeps the
//! text, so that a finding can point at it and a fix can edit it without touching the rest.
//! What keys mean is not known here.

mod builder;
mod cursor;
mod duplicate;
mod error;
mod hjson;
mod json;
mod line_index;
mod newline;
mod number;
pub(crate) mod python_text;
mod string;
mod tree;

#[cfg(test)]
mod laws;

pub use cursor::{Cursor, Slot, cursor, top_level_keys};
pub use duplicate::DuplicateKey;
pub use error::{SyntaxError, SyntaxErrorKind, decode};
pub use hjson::{MAX_HJSON_DEPTH, parse_hjson};
pub use json::{MAX_JSON_DEPTH, parse_json};
pub use line_index::{LineColumn, LineIndex};
pub use number::MAX_INT_DIGITS;
pub use tree::{Comment, Document, Member, Node, Span, Value};
