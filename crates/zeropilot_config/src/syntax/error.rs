//! Why a text was refused, in terms a person who wrote the text can act on.
//!
//! The kinds are the contract: sentences for people are written elsewhere, keyed by kind. The
//! English ones here are for logs and `Error` chains.

use super::Span;
use super::newline::Lines;

/// A text its reader refuses, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct SyntaxError {
    /// The cause.
    pub kind: SyntaxErrorKind,
    /// The part of the text to look at.
    pub span: Span,
}

/// One cause of refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// The bytes are not UTF-8.
    #[error("the file is not UTF-8 text")]
    NotUtf8,
    /// A quoted string has no closing quote on its line.
    #[error("this string has no closing {quote}")]
    UnterminatedString {
        /// The quote that opened it.
        quote: char,
    },
    /// A `'''` string has no closing `'''`.
    #[error("this string has no closing '''")]
    UnterminatedMultilineString,
    /// A `'''` string stands in a text without any line break, which crashes the reader.
    #[error("a ''' string needs at least one line break in the file")]
    MultilineStringWithoutLineBreak,
    /// A `/*` has no `*/`.
    #[error("this comment has no closing */")]
    UnterminatedComment,
    /// The text ends inside a list.
    #[error("this list has no closing ]")]
    UnterminatedArray,
    /// The text ends inside an object.
    #[error("this object has no closing }}")]
    UnterminatedObject,
    /// Hjson: the bracket or brace that should close belongs to an unquoted text, which runs to
    /// the end of its line.
    #[error("this unquoted text runs to the end of its line and includes the '{close}'")]
    CloseSwallowedByUnquotedText {
        /// The bracket or brace.
        close: char,
    },
    /// A raw control character other than a line break stands in a quoted string.
    #[error("control character U+{:04X} inside a string", u32::from(*character))]
    ControlCharacterInString {
        /// The control character.
        character: char,
    },
    /// A backslash is followed by something that is no escape.
    #[error("\\{character} is not an escape sequence")]
    BadEscape {
        /// What follows the backslash.
        character: char,
    },
    /// `\u` is not followed by four hexadecimal digits.
    #[error("\\u must be followed by four hexadecimal digits")]
    BadUnicodeEscape,
    /// A colon has no key before it.
    #[error("a key is missing before ':'")]
    MissingKey,
    /// An unquoted key has white space inside.
    #[error("an unquoted key cannot contain whitespace")]
    KeyWithWhitespace,
    /// A bracket, brace or comma stands where a key belongs, or inside an unquoted key.
    #[error("found '{character}' where a key was expected")]
    PunctuatorWhereKeyExpected {
        /// What was found.
        character: char,
    },
    /// A key is not followed by a colon.
    #[error("':' is missing after the key")]
    MissingColon {
        /// What follows instead; nothing at the end of the text.
        found: Option<char>,
    },
    /// A bracket, brace, comma or colon stands where a value belongs.
    #[error("found '{character}' where a value was expected")]
    PunctuatorWhereValueExpected {
        /// What was found.
        character: char,
    },
    /// The text ends where a value belongs.
    #[error("a value is missing")]
    MissingValue,
    /// Something follows the outermost value.
    #[error("unexpected text after the end of the document")]
    TrailingData,
    /// A number too large for a float where the reader must turn it into an integer.
    #[error("this number is too large")]
    NumberOverflow,
    /// An integer longer than Python converts.
    #[error("this integer has {digits} digits, more than the {limit} that Python accepts")]
    TooManyDigits {
        /// How many it has.
        digits: usize,
        /// How many are read.
        limit: usize,
    },
    /// Lists and objects are nested deeper than the reader's stack.
    #[error("values are nested more than {limit} levels deep")]
    TooDeep {
        /// The deepest level that is read.
        limit: usize,
    },
    /// A byte-order mark with nothing after it: a blank Hjson file is `{}` only without the mark.
    #[error("the file contains only a byte-order mark")]
    NothingAfterByteOrderMark,
    /// JSON: the file has nothing but white space.
    #[error("the file is empty")]
    EmptyDocument,
    /// JSON: the file starts with a byte-order mark.
    #[error("the file starts with a byte-order mark, which JSON parsers reject")]
    ByteOrderMark,
    /// JSON: a comma before a closing bracket or brace.
    #[error("JSON does not allow a comma before the closing '{close}'")]
    TrailingComma {
        /// The bracket or brace after it.
        close: char,
    },
    /// JSON: two entries without a comma between them.
    #[error("a comma is missing before this value")]
    MissingComma,
    /// JSON: a bracket closes a brace or the other way round.
    #[error("found '{found}' where '{expected}' was expected")]
    MismatchedClose {
        /// What would close the innermost open list or object.
        expected: char,
        /// What was found.
        found: char,
    },
    /// JSON: a string in single quotes.
    #[error("JSON strings need double quotes")]
    SingleQuotes,
    /// JSON: a comment.
    #[error("JSON does not allow comments")]
    CommentInJson,
    /// JSON: a key without quotes.
    #[error("JSON keys need double quotes")]
    UnquotedKey,
    /// JSON: a word that is no JSON value.
    #[error("JSON text values need double quotes")]
    UnquotedValue,
    /// JSON: Python's `True`, `False` or `None`.
    #[error("write this as {json} in JSON")]
    PythonLiteral {
        /// How JSON spells it.
        json: &'static str,
    },
    /// JSON: a number in a form JSON does not have, such as `01`, `1.`, `.5` or `+1`.
    #[error("this is not a valid JSON number")]
    MalformedNumber,
    /// JSON: a character that cannot start or follow anything here.
    #[error("unexpected character '{}'", character.escape_debug())]
    UnexpectedCharacter {
        /// What was found.
        character: char,
    },
}

/// The text in `bytes`, or where it stops being UTF-8.
///
/// # Errors
///
/// [`SyntaxErrorKind::NotUtf8`] at the first byte that cannot be decoded.
pub fn decode(bytes: &[u8]) -> Result<&str, SyntaxError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        let end = error.error_len().map_or(bytes.len(), |len| start + len);
        SyntaxError { kind: SyntaxErrorKind::NotUtf8, span: Span::new(start, end) }
    })
}

/// A refusal while reading, in offsets of the translated text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: SyntaxErrorKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether Python leaves the reader with something other than its own decode error. Only a
    /// decode error lets the Hjson reader try again with the text as a single value.
    pub(super) crash: bool,
}

impl Fault {
    pub(super) fn new(kind: SyntaxErrorKind, start: usize, end: usize) -> Self {
        Self { kind, start, end, crash: false }
    }

    pub(super) fn crash(kind: SyntaxErrorKind, start: usize, end: usize) -> Self {
        Self { kind, start, end, crash: true }
    }

    pub(super) fn into_error(self, lines: &Lines<'_>) -> SyntaxError {
        SyntaxError { kind: self.kind, span: lines.span(self.start, self.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_points_at_the_first_bad_byte() {
        assert_eq!(decode("é".as_bytes()), Ok("é"));
        let bad = decode(b"{\"a\": \xff1}").unwrap_err();
        assert_eq!(bad.kind, SyntaxErrorKind::NotUtf8);
        assert_eq!(bad.span, Span::new(6, 7));
        assert_eq!(decode(b"ab\xe2\x82").unwrap_err().span, Span::new(2, 4));
    }
}
