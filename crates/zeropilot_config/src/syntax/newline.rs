//! Python's universal newlines, and the way back to the original offsets.
//!
//! The readers see only `\n`, as they do behind Python's `open(path, "r")`; places are reported in
//! the text as it was written.

use std::borrow::Cow;

use super::Span;

/// A text with every `\r\n` and lone `\r` turned into `\n`.
pub(super) struct Lines<'a> {
    text: Cow<'a, str>,
    /// Offsets, in the translated text, of the `\n` that stand for two bytes.
    shortened: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn translate(original: &'a str) -> Self {
        if !original.as_bytes().contains(&b'\r') {
            return Self { text: Cow::Borrowed(original), shortened: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut shortened = Vec::new();
        let mut pieces = original.split('\r');
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            if piece.starts_with('\n') {
                shortened.push(text.len());
            } else {
                text.push('\n');
            }
            text.push_str(piece);
        }
        Self { text: Cow::Owned(text), shortened }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The place in the original text. An end just before a `\r\n` stays before its `\r`.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        if self.shortened.is_empty() {
            return Span::new(start, end);
        }
        Span::new(self.original(start), self.original(end))
    }

    fn original(&self, offset: usize) -> usize {
        offset + self.shortened.partition_point(|&at| at < offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_becomes_a_line_feed() {
        for (original, expected) in [
            ("a\r\nb", "a\nb"),
            ("a\rb", "a\nb"),
            ("\r\r\n\n\r", "\n\n\n\n"),
            ("\r", "\n"),
            ("", ""),
        ] {
            assert_eq!(Lines::translate(original).text(), expected, "{original:?}");
        }
    }

    #[test]
    fn offsets_lead_back_to_the_original() {
        let original = "é\r\nb\rc\r\n\r\nd";
        let lines = Lines::translate(original);
        for (offset, character) in lines.text().char_indices() {
            let there = lines.span(offset, offset + character.len_utf8());
            let written = &original[there.start..there.end];
            if character == '\n' {
                assert!(["\n", "\r", "\r\n"].contains(&written), "{written:?}");
            } else {
                assert_eq!(written, character.to_string());
            }
        }
    }
}
