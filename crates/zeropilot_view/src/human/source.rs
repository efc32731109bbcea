//! Pieces of a file, as findings show them: whole lines, or the part of a long one.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Snippet};
use unicode_width::UnicodeWidthStr as _;
use zeropilot_config::syntax::{LineIndex, Span};
use zeropilot_lint::{Diagnostic, Fix};
use zeropilot_text::Language;

use crate::place::decodable;
use crate::{FileResult, escaped};

/// Lines longer than this are named, not shown.
const LONGEST_LINE: usize = 2000;

/// The text of a file, for showing pieces of it.
pub(super) struct Source<'a> {
    name: Cow<'a, str>,
    text: &'a str,
    index: LineIndex,
}

/// Some whole lines of a file.
pub(super) struct Window<'a> {
    pub(super) text: Cow<'a, str>,
    /// Offset of the first byte.
    pub(super) start: usize,
    /// Number of the first line.
    pub(super) line: usize,
}

impl Window<'_> {
    /// Itself if its lines fit, or else the part of its one line that a fix changes; `None` if that does not fit either.
    pub(super) fn around(self, fix: &Fix, columns: usize) -> Option<Self> {
        /// Line number, sign and the space beside them.
        const MARGIN: usize = 10;
        const CUT: &str = "...";
        let room = columns.saturating_sub(MARGIN);
        let removed: usize = fix.edits.iter().map(|edit| edit.span.end - edit.span.start).sum();
        let added: usize = fix.edits.iter().map(|edit| edit.text.len()).sum();
        let longest = self.text.lines().map(|line| line.width()).max().unwrap_or(0);
        if longest + added.saturating_sub(removed) <= room {
            return Some(self);
        }
        let first = fix.edits.first()?.span.start.checked_sub(self.start)?;
        let last = fix.edits.last()?.span.end.checked_sub(self.start)?;
        let changed = last.checked_sub(first)? + added.saturating_sub(removed);
        let beside = room.checked_sub(changed + 2 * CUT.len())? / 2;
        if self.text.contains('\n') || fix.edits.iter().any(|edit| edit.text.contains('\n')) {
            return None;
        }
        let start = boundary(&self.text, first.saturating_sub(beside));
        let end = boundary(&self.text, (last + beside).min(self.text.len()));
        let (before, from) = if start > CUT.len() { (CUT, start) } else { ("", 0) };
        let (after, to) =
            if end + CUT.len() < self.text.len() { (CUT, end) } else { ("", self.text.len()) };
        let text = format!("{before}{}{after}", self.text.get(from..to)?);
        Some(Self { text: Cow::Owned(text), start: self.start + from - before.len(), ..self })
    }
}

/// The nearest place at or before an offset at which a text can be cut.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &FileResult<'a>) -> Self {
        let text = decodable(file.bytes);
        Self { name: escaped(file.name), text, index: LineIndex::new(text) }
    }

    pub(super) fn origin(&self, span: Span) -> annotate_snippets::Origin<'_> {
        let place = self.index.line_column(span.start);
        annotate_snippets::Origin::path(self.name.as_ref())
            .line(place.line)
            .char_column(place.column)
    }

    /// The lines that a span touches, unless they are too long to show. A byte-order mark is never
    /// among them: it would shift every column after it.
    pub(super) fn lines(&self, span: Span) -> Option<Window<'a>> {
        let text = self.text;
        let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let from = span.start.clamp(mark, text.len());
        let to = span.end.clamp(from, text.len());
        let is_break = |&byte: &u8| byte == b'\n' || byte == b'\r';
        let bytes = text.as_bytes();
        let start = bytes[mark..from].iter().rposition(is_break).map_or(mark, |at| mark + at + 1);
        let end = bytes[to..].iter().position(is_break).map_or(text.len(), |at| to + at);
        let lines = text.get(start..end)?;
        if lines.len() > LONGEST_LINE {
            return None;
        }
        let line = self.index.line_column(start).line;
        Some(Window { text: harmless(lines), start, line })
    }

    pub(super) fn window(
        &'a self,
        diagnostic: &Diagnostic,
        language: Language,
    ) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
        let primary = self.first_line(diagnostic.span);
        let related: Vec<_> = diagnostic
            .related
            .iter()
            .map(|related| (self.first_line(related.span), related.label.get(language)))
            .collect();
        let start = related.iter().map(|(span, _)| span.start).fold(primary.start, usize::min);
        let end = related.iter().map(|(span, _)| span.end).fold(primary.end, usize::max);
        let window = self.lines(Span::new(start, end))?;
        let range = |span: &Range<usize>| {
            let length = window.text.len();
            let start = span.start.saturating_sub(window.start).min(length);
            start..span.end.saturating_sub(window.start).clamp(start, length)
        };
        let others = related
            .iter()
            .map(|(span, label)| AnnotationKind::Context.span(range(span)).label(*label));
        let primary = AnnotationKind::Primary.span(range(&primary));
        Some(
            Snippet::source(window.text.clone())
                .line_start(window.line)
                .path(self.name.as_ref())
                .annotation(primary)
                .annotations(others),
        )
    }

    /// The part of a span on its first line: a whole section is named by where it begins.
    fn first_line(&self, span: Span) -> Range<usize> {
        let start = span.start.min(self.text.len());
        let end = span.end.clamp(start, self.text.len());
        let text = self.text.get(start..end).unwrap_or("");
        let length = text.find(['\n', '\r']).unwrap_or(text.len());
        start..start + length
    }
}

/// Control characters of two bytes, which the renderer passes through, replaced by a dot of as many.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(|character| ('\u{80}'..='\u{9f}').contains(&character)) {
        Cow::Owned(text.replace(|character| ('\u{80}'..='\u{9f}').contains(&character), "·"))
    } else {
        Cow::Borrowed(text)
    }
}
