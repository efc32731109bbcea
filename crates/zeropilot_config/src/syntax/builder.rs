//! Containers under construction, on the heap instead of the call stack.
//!
//! Nesting is bounded because Python's is, and no text, however deep, can exhaust ours.

use super::error::{Fault, SyntaxErrorKind};
use super::newline::Lines;
use super::{Member, Node, Span, Value};

/// What encloses the place a reader is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enclosing {
    /// A list.
    Array,
    /// An object in braces.
    Object,
    /// The object that is the whole Hjson text, written without braces.
    BareObject,
}

enum Content {
    Array(Vec<Node>),
    Object { members: Vec<Member>, key: Option<(String, Span)>, bare: bool },
}

struct Open {
    start: usize,
    content: Content,
}

/// The open containers, outermost first.
pub(super) struct Builder {
    open: Vec<Open>,
    limit: usize,
}

impl Builder {
    pub(super) fn new(limit: usize) -> Self {
        Self { open: Vec::new(), limit }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    pub(super) fn enclosing(&self) -> Option<Enclosing> {
        self.open.last().map(|open| match open.content {
            Content::Array(_) => Enclosing::Array,
            Content::Object { bare: false, .. } => Enclosing::Object,
            Content::Object { bare: true, .. } => Enclosing::BareObject,
        })
    }

    /// Whether the outermost container got as far as a key with its colon, or an item.
    pub(super) fn has_read_a_key(&self) -> bool {
        self.open.first().is_some_and(|open| match &open.content {
            Content::Array(items) => !items.is_empty(),
            Content::Object { members, key, .. } => !members.is_empty() || key.is_some(),
        })
    }

    pub(super) fn open(&mut self, start: usize, kind: Enclosing) -> Result<(), Fault> {
        if self.open.len() >= self.limit {
            let kind = SyntaxErrorKind::TooDeep { limit: self.limit };
            return Err(Fault::crash(kind, start, start + 1));
        }
        let content = match kind {
            Enclosing::Array => Content::Array(Vec::new()),
            Enclosing::Object | Enclosing::BareObject => Content::Object {
                members: Vec::new(),
                key: None,
                bare: kind == Enclosing::BareObject,
            },
        };
        self.open.push(Open { start, content });
        Ok(())
    }

    /// Remembers the key of the value that comes next.
    pub(super) fn key(&mut self, name: String, span: Span) {
        if let Some(Open { content: Content::Object { key, .. }, .. }) = self.open.last_mut() {
            *key = Some((name, span));
        }
    }

    /// Puts a value where it belongs; gives it back when it is the outermost.
    pub(super) fn value(&mut self, value: Node) -> Option<Node> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => return Some(value),
            Some(Content::Array(items)) => items.push(value),
            Some(Content::Object { members, key, .. }) => {
                if let Some((key, key_span)) = key.take() {
                    members.push(Member { key, key_span, value });
                }
            }
        }
        None
    }

    /// Completes the innermost container, which ends at `end`, and puts it where it belongs.
    pub(super) fn close(&mut self, lines: &Lines<'_>, end: usize) -> Option<Node> {
        let Open { start, content } = self.open.pop()?;
        let value = match content {
            Content::Array(items) => Value::Array(items),
            Content::Object { members, .. } => Value::Object(members),
        };
        self.value(Node { span: lines.span(start, end), value })
    }

    /// The fault of a text that ends here: the innermost container was never closed.
    pub(super) fn unterminated(&self, end: usize) -> Fault {
        match self.open.last() {
            Some(Open { start, content: Content::Array(_) }) => {
                Fault::new(SyntaxErrorKind::UnterminatedArray, *start, start + 1)
            }
            Some(Open { start, content: Content::Object { bare: false, .. } }) => {
                Fault::new(SyntaxErrorKind::UnterminatedObject, *start, start + 1)
            }
            _ => Fault::new(SyntaxErrorKind::MissingValue, end, end),
        }
    }
}
