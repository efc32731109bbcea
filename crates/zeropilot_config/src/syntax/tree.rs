//! The tree both readers build: values as Python would hold them, each with its place.

use num_bigint::BigInt;

/// A half-open range of byte offsets in the document's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset just past the last byte.
    pub end: usize,
}

impl Span {
    /// The range from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The part of `text` it covers, or nothing if it does not lie within.
    pub fn of(self, text: &str) -> Option<&str> {
        text.get(self.start..self.end)
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value stands, without surrounding white space or comments.
    ///
    /// Two cases need care. An Hjson root without braces reaches from its first key to the end of
    /// its last value, and is `0..0` in a blank file. Exotic white space that Python strips from
    /// an unquoted value (a no-break space, say) belongs to the span: left behind by an edit, it
    /// would become part of whatever is written there.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a reader makes of a piece of text, in Python's kinds.
///
/// Integers are unbounded as they are in Python: the engine compares and divides them before
/// anything could overflow, and an absurd one must be reported as the engine would.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number Python holds as `int`.
    Int(BigInt),
    /// A number Python holds as `float`, NaN and infinities included.
    Float(f64),
    /// Text. An unpaired surrogate escape becomes U+FFFD.
    Str(String),
    /// A list.
    Array(Vec<Node>),
    /// An object, members in the order written, duplicates kept.
    Object(Vec<Member>),
}

/// One `key: value` of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key, unescaped.
    pub key: String,
    /// Where the key stands, quotes included.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// A comment, markers included; the line end is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// Where it stands.
    pub span: Span,
}

/// A text and the tree read from it.
///
/// The text is kept byte for byte, with its comments, line ends and byte-order mark: an edit is a
/// replacement of spans, and everything outside them stays as it was written.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    root: Node,
    comments: Vec<Comment>,
}

impl Document {
    pub(super) fn new(text: String, root: Node, comments: Vec<Comment>) -> Self {
        Self { text, root, comments }
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The outermost value.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// All comments, in order. Always empty for JSON.
    pub fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// The value of a top-level key; see [`Node::get`].
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.root.get(key)
    }
}

impl Node {
    /// The value of `key` when this is an object. Of duplicates the last counts, as in a Python
    /// dict.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.value)
    }

    /// The member named `key` when this is an object, the last one of duplicates.
    pub fn member(&self, key: &str) -> Option<&Member> {
        match &self.value {
            Value::Object(members) => members.iter().rev().find(|member| member.key == key),
            _ => None,
        }
    }
}
