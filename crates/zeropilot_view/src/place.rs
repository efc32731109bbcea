//! Byte spans as lines and columns, counted from 1.

use serde::Serialize;
use zeropilot_config::syntax::{LineIndex, Span};

/// A place in a text: bytes, and lines and columns from 1. The end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Span"))]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
}

/// Looks up spans of one file. A file that is not UTF-8 is looked at up to its first bad byte,
/// which is where its only finding stands.
pub(crate) struct Places {
    index: LineIndex,
}

impl Places {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { index: LineIndex::new(decodable(bytes)) }
    }

    pub(crate) fn place(&self, span: Span) -> Place {
        let start = self.index.line_column(span.start);
        let end = self.index.line_column(span.end.max(span.start));
        Place {
            start: span.start,
            end: span.end.max(span.start),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }
}

/// The text up to the first byte that is not UTF-8.
pub(crate) fn decodable(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}
