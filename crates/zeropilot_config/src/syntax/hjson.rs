//! The engine's reader: Hjson as Python's `hjson` 3.1.0 reads a file.
//!
//! Not the Hjson specification. Where the package and the specification differ, the package is
//! followed, crashes included: every exception it can leave with is a refusal here.

use super::builder::{Builder, Enclosing};
use super::error::{Fault, SyntaxError, SyntaxErrorKind};
use super::newline::Lines;
use super::number::NumberToken;
use super::python_text::{ascii_digit, is_space};
use super::string::{Dialect, quoted};
use super::{Comment, Document, Node, Span, Value};

/// The deepest nesting of lists and objects that is read.
///
/// Python's reader spends two stack frames per level and stops at a thousand frames, so its limit
/// moves with the caller: 494 levels straight from a script, 488 from ten calls down.
pub const MAX_HJSON_DEPTH: usize = 490;

/// Reads `text` as the engine reads a config file.
///
/// # Errors
///
/// The first thing the engine's reader trips over.
pub fn parse_hjson(text: &str) -> Result<Document, SyntaxError> {
    let lines = Lines::translate(text);
    let mut reader = Reader::new(&lines);
    match reader.document() {
        Ok(root) => Ok(Document::new(text.to_owned(), root, reader.comments)),
        Err(fault) => Err(fault.into_error(&lines)),
    }
}

/// What comes next.
enum Step {
    Key,
    Value,
    AfterValue,
    Done(Node),
}

struct Reader<'a> {
    lines: &'a Lines<'a>,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the last line starts, if there is more than one.
    last_line: Option<usize>,
    /// Where the last value ended, blanks after it not counted.
    value_end: usize,
    builder: Builder,
    comments: Vec<Comment>,
    /// The last unquoted text that ran over a closing bracket or brace.
    swallowed: Option<(Span, char)>,
}

impl<'a> Reader<'a> {
    fn new(lines: &'a Lines<'a>) -> Self {
        let text = lines.text();
        Self {
            lines,
            text,
            bytes: text.as_bytes(),
            at: 0,
            last_line: text.rfind('\n').map(|newline| newline + 1),
            value_end: 0,
            builder: Builder::new(MAX_HJSON_DEPTH),
            comments: Vec::new(),
            swallowed: None,
        }
    }

    fn document(&mut self) -> Result<Node, Fault> {
        self.at = byte_order_mark_len(self.text);
        let marked = self.at > 0;
        self.skip_blank()?;
        match self.peek() {
            None if marked => {
                Err(Fault::new(SyntaxErrorKind::NothingAfterByteOrderMark, 0, self.at))
            }
            None => Ok(Node { span: Span::default(), value: Value::Object(Vec::new()) }),
            Some(b'{' | b'[') => {
                let root = self.run(Step::Value)?;
                self.end_of_text()?;
                Ok(root)
            }
            Some(_) => self.bare_document(),
        }
    }

    /// An object without braces, or else a single value: the reader tries one after the other.
    fn bare_document(&mut self) -> Result<Node, Fault> {
        let begin = self.at;
        let comments = self.comments.len();
        let as_object =
            self.builder.open(begin, Enclosing::BareObject).and_then(|()| self.run(Step::Key));
        let fault = match as_object {
            Ok(root) => {
                self.end_of_text()?;
                return Ok(root);
            }
            Err(fault) if fault.crash => return Err(fault),
            Err(fault) => fault,
        };

        let looked_like_object = self.builder.has_read_a_key();
        self.builder.clear();
        self.comments.truncate(comments);
        self.at = begin;
        let as_value = self.run(Step::Value).and_then(|root| {
            self.end_of_text()?;
            Ok(root)
        });
        as_value.map_err(|other| {
            let says_more = other.kind == SyntaxErrorKind::TrailingData
                || self.text[begin..].starts_with("'''");
            if says_more && !looked_like_object { other } else { fault }
        })
    }

    fn run(&mut self, mut step: Step) -> Result<Node, Fault> {
        loop {
            step = match step {
                Step::Key => self.key()?,
                Step::Value => self.value()?,
                Step::AfterValue => self.after_value()?,
                Step::Done(root) => return Ok(root),
            };
        }
    }

    fn key(&mut self) -> Result<Step, Fault> {
        let begin = self.at;
        let (name, end) = match self.peek() {
            Some(b'"' | b'\'') => quoted(self.text, begin, Dialect::Hjson)?,
            _ => self.unquoted_key()?,
        };
        self.at = end;
        self.skip_blank()?;
        if self.peek() != Some(b':') {
            let kind = SyntaxErrorKind::MissingColon { found: self.peek_char() };
            return Err(Fault::new(kind, begin, end));
        }
        let key_end = begin + self.text[begin..end].trim_end_matches([' ', '\t', '\n']).len();
        self.builder.key(name, self.lines.span(begin, key_end));
        self.at += 1;
        self.skip_blank()?;
        Ok(Step::Value)
    }

    /// The key that starts here, and the offset of its colon.
    fn unquoted_key(&self) -> Result<(String, usize), Fault> {
        let begin = self.at;
        let mut space = None;
        for (at, &byte) in self.bytes.iter().enumerate().skip(begin) {
            match byte {
                b':' if at == begin => {
                    return Err(Fault::new(SyntaxErrorKind::MissingKey, at, at + 1));
                }
                b':' => {
                    let written = &self.text[begin..at];
                    return match space {
                        // Only then does the reader strip, so a no-break space before the colon
                        // belongs to the key unless a plain blank follows it.
                        Some(last) if last + 1 == at => {
                            Ok((written.trim_end_matches(is_space).to_owned(), at))
                        }
                        Some(_) => Err(Fault::new(SyntaxErrorKind::KeyWithWhitespace, begin, at)),
                        None => Ok((written.to_owned(), at)),
                    };
                }
                b' ' | b'\t' | b'\n' if space.is_none_or(|last| last + 1 == at) => {
                    space = Some(at);
                }
                b'{' | b'}' | b'[' | b']' | b',' => {
                    return Err(self.not_a_key(begin, at, Some(char::from(byte))));
                }
                _ => {}
            }
        }
        Err(self.not_a_key(begin, self.bytes.len(), None))
    }

    /// The fault of a run from `begin` that meets `found` at `at` before any colon.
    fn not_a_key(&self, begin: usize, at: usize, found: Option<char>) -> Fault {
        let written = self.text[begin..at].trim_end_matches([' ', '\t', '\n']);
        match found {
            None if written.is_empty() => self.unterminated(),
            Some(character) if written.is_empty() => {
                let kind = SyntaxErrorKind::PunctuatorWhereKeyExpected { character };
                Fault::new(kind, at, at + 1)
            }
            _ => {
                let kind = SyntaxErrorKind::MissingColon { found };
                Fault::new(kind, begin, begin + written.len())
            }
        }
    }

    fn value(&mut self) -> Result<Step, Fault> {
        let begin = self.at;
        let node = match self.peek() {
            None => return Err(self.unterminated()),
            Some(b'\'') if self.text[begin..].starts_with("'''") => self.multiline()?,
            Some(b'"' | b'\'') => {
                let (value, end) = quoted(self.text, begin, Dialect::Hjson)?;
                self.at = end;
                self.node(Value::Str(value), begin, end)
            }
            Some(b'{') => return self.open(Enclosing::Object, b'}', Step::Key),
            Some(b'[') => return self.open(Enclosing::Array, b']', Step::Value),
            Some(byte @ (b'}' | b']' | b',' | b':')) => {
                let kind =
                    SyntaxErrorKind::PunctuatorWhereValueExpected { character: char::from(byte) };
                return Err(Fault::new(kind, begin, begin + 1));
            }
            Some(byte) => self.unquoted(byte)?,
        };
        Ok(self.place(node))
    }

    fn place(&mut self, node: Node) -> Step {
        self.builder.value(node).map_or(Step::AfterValue, Step::Done)
    }

    fn open(&mut self, kind: Enclosing, close: u8, first: Step) -> Result<Step, Fault> {
        self.builder.open(self.at, kind)?;
        self.at += 1;
        self.skip_blank()?;
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(self.close(self.at));
        }
        Ok(first)
    }

    fn close(&mut self, end: usize) -> Step {
        self.value_end = end;
        self.builder.close(self.lines, end).map_or(Step::AfterValue, Step::Done)
    }

    fn after_value(&mut self) -> Result<Step, Fault> {
        self.skip_blank()?;
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blank()?;
        }
        Ok(match (self.builder.enclosing(), self.peek()) {
            (Some(Enclosing::Array), Some(b']')) | (Some(Enclosing::Object), Some(b'}')) => {
                self.at += 1;
                self.close(self.at)
            }
            (Some(Enclosing::BareObject), None) => self.close(self.value_end),
            (Some(Enclosing::Array), _) => Step::Value,
            _ => Step::Key,
        })
    }

    /// `null`, `true`, `false`, a number, or text to the end of the line.
    fn unquoted(&mut self, first: u8) -> Result<Node, Fault> {
        let begin = self.at;
        let word = match first {
            b'n' => self.keyword("null", Value::Null),
            b't' => self.keyword("true", Value::Bool(true)),
            b'f' => self.keyword("false", Value::Bool(false)),
            b'-' | b'0'..=b'9' => return self.number_or_text(),
            _ => None,
        };
        let Some((value, end)) = word else {
            return Ok(self.unquoted_text());
        };
        self.at = end;
        Ok(self.node(value, begin, end))
    }

    /// `value` if `word` and nothing but white space stands before the next terminator. White
    /// space is Python's here, since the reader strips before it compares.
    fn keyword(&self, word: &str, value: Value) -> Option<(Value, usize)> {
        let rest = self.text[self.at..].strip_prefix(word)?;
        let after = rest.trim_start_matches(|c| c != '\n' && is_space(c));
        let end = self.text.len() - after.len();
        self.is_terminator(end).then_some((value, end))
    }

    fn number_or_text(&mut self) -> Result<Node, Fault> {
        let begin = self.at;
        let Some(token) = number_token(&self.text[begin..]) else {
            return Ok(self.unquoted_text());
        };
        let end = begin + token.text.len();
        let blanks = self.bytes[end..].iter().take_while(|&&b| matches!(b, b' ' | b'\t')).count();
        if !self.is_terminator(end + blanks) {
            return Ok(self.unquoted_text());
        }
        self.at = end + blanks;
        let value = token.hjson_value().map_err(|kind| Fault::crash(kind, begin, end))?;
        Ok(self.node(value, begin, end))
    }

    /// Text runs to the end of its line, over commas, brackets and comment marks.
    fn unquoted_text(&mut self) -> Node {
        let begin = self.at;
        self.at = self.line_end(begin);
        let line = &self.text[begin..self.at];
        let value = line.trim_matches(is_space);
        if let Some(close) = value.trim_end_matches(',').chars().next_back()
            && matches!(close, '}' | ']')
        {
            self.swallowed = Some((Span::new(begin, begin + line.trim_end().len()), close));
        }
        self.node(Value::Str(value.to_owned()), begin, self.at)
    }

    /// A node from `begin` to `end`, without the plain blanks at its end.
    fn node(&mut self, value: Value, begin: usize, end: usize) -> Node {
        let written = self.text[begin..end].trim_end_matches([' ', '\t']);
        self.value_end = begin + written.len();
        Node { span: self.lines.span(begin, self.value_end), value }
    }

    /// A `'''` string: the indentation of its opening is removed from every further line.
    fn multiline(&mut self) -> Result<Node, Fault> {
        let open = self.at;
        let Some(last_line) = self.last_line else {
            // The reader looks back for the start of the line, past the start of the text into an
            // IndexError.
            let kind = SyntaxErrorKind::MultilineStringWithoutLineBreak;
            return Err(Fault::crash(kind, open, open + 3));
        };
        let unterminated = SyntaxErrorKind::UnterminatedMultilineString;
        let rest = self.text[open + 3..].trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            return Err(Fault::crash(unterminated, open, open + 3));
        }
        let Some(close) = rest.find("'''") else {
            return Err(Fault::new(unterminated, open, open + 3));
        };
        let body = &rest[..close];
        let value = match body.split_once('\n') {
            None => body.to_owned(),
            Some((first, further)) => {
                let indent = self.column(open, last_line);
                let mut value = String::with_capacity(body.len());
                if !first.is_empty() {
                    value.push_str(first);
                    value.push('\n');
                }
                value.push_str(unindented(further.split('\n'), indent).as_str());
                if value.ends_with('\n') {
                    value.pop();
                }
                value
            }
        };
        let end = self.text.len() - rest.len() + close + 3;
        self.at = end;
        Ok(self.node(Value::Str(value), open, end))
    }

    /// How many characters stand before `open` in its line. On the first line the reader's count
    /// runs on backwards from the end of the text, so that the last line is added.
    fn column(&self, open: usize, last_line: usize) -> usize {
        match self.text[..open].rfind('\n') {
            Some(newline) => self.text[newline + 1..open].chars().count(),
            None => self.text[..open].chars().count() + self.text[last_line..].chars().count(),
        }
    }

    fn end_of_text(&mut self) -> Result<(), Fault> {
        self.skip_blank()?;
        if self.at < self.bytes.len() {
            let end = self.line_end(self.at);
            return Err(Fault::new(SyntaxErrorKind::TrailingData, self.at, end));
        }
        Ok(())
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), Fault> {
        loop {
            while let Some(b' ' | b'\t' | b'\n') = self.peek() {
                self.at += 1;
            }
            let begin = self.at;
            match (self.peek(), self.bytes.get(begin + 1)) {
                (Some(b'#'), _) | (Some(b'/'), Some(b'/')) => self.at = self.line_end(begin),
                (Some(b'/'), Some(b'*')) => {
                    let Some(length) = self.text[begin + 2..].find("*/") else {
                        let kind = SyntaxErrorKind::UnterminatedComment;
                        return Err(Fault::crash(kind, begin, begin + 2));
                    };
                    self.at = begin + 2 + length + 2;
                }
                _ => return Ok(()),
            }
            self.comments.push(Comment { span: self.lines.span(begin, self.at) });
        }
    }

    fn unterminated(&self) -> Fault {
        if let (Some((span, close)), Some(Enclosing::Array | Enclosing::Object)) =
            (self.swallowed, self.builder.enclosing())
        {
            let kind = SyntaxErrorKind::CloseSwallowedByUnquotedText { close };
            return Fault::new(kind, span.start, span.end);
        }
        self.builder.unterminated(self.bytes.len())
    }

    fn is_terminator(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            None | Some(b'\n' | b',' | b'}' | b']' | b'#') => true,
            Some(b'/') => matches!(self.bytes.get(at + 1), Some(b'/' | b'*')),
            _ => false,
        }
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find('\n').map_or(self.bytes.len(), |length| from + length)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_char(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }
}

/// The length of the mark the reader removes: U+FEFF, or its UTF-8 bytes decoded as Latin-1.
fn byte_order_mark_len(text: &str) -> usize {
    ["\u{feff}", "\u{ef}\u{bb}\u{bf}"]
        .into_iter()
        .find(|mark| text.starts_with(mark))
        .map_or(0, str::len)
}

/// Joins lines, each without up to `indent` blanks at its start.
fn unindented<'a>(lines: impl Iterator<Item = &'a str>, indent: usize) -> String {
    let mut joined = String::new();
    for (count, line) in lines.enumerate() {
        if count > 0 {
            joined.push('\n');
        }
        let blanks = line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
        joined.push_str(&line[blanks.min(indent)..]);
    }
    joined
}

/// The number at the start of `text`. Its first digit is ASCII, the others may be of any script.
fn number_token(text: &str) -> Option<NumberToken<'_>> {
    let sign = usize::from(text.starts_with('-'));
    let mut end = match text.as_bytes().get(sign)? {
        b'0' => sign + 1,
        b'1'..=b'9' => digits_end(text, sign),
        _ => return None,
    };
    let mut is_float = false;
    if text[end..].starts_with('.') {
        let fraction = digits_end(text, end + 1);
        if fraction > end + 1 {
            end = fraction;
            is_float = true;
        }
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = end + 1 + usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits_end(text, signed);
        if exponent > signed {
            end = exponent;
            is_float = true;
        }
    }
    Some(NumberToken { text: &text[..end], is_float })
}

fn digits_end(text: &str, from: usize) -> usize {
    let rest = text[from..].trim_start_matches(|c| ascii_digit(c).is_some());
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A compact form of what was read: strings in quotes, integers plain, floats with `f`.
    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}f"),
            Value::Str(value) => format!("{value:?}"),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
            }
            Value::Object(members) => {
                let member = |m: &super::super::Member| format!("{}:{}", m.key, shown(&m.value));
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }

    #[track_caller]
    fn assert_reads(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            let document = parse_hjson(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
            assert_eq!(shown(document.root()), *expected, "{text:?}");
        }
    }

    #[track_caller]
    fn assert_refuses(cases: &[(&str, SyntaxErrorKind, &str)]) {
        for (text, kind, place) in cases {
            let error = parse_hjson(text).expect_err(text);
            assert_eq!(error.kind, *kind, "{text:?}");
            assert_eq!(error.span.of(text), Some(*place), "{text:?}");
        }
    }

    #[test]
    fn blank_texts_are_an_empty_object() {
        assert_reads(&[("", "{}"), (" \r\n\t", "{}"), ("# only\n/* notes */ // here", "{}")]);
        assert_eq!(parse_hjson("# note").unwrap().root().span, Span::default());
    }

    #[test]
    fn commas_braces_and_quotes_are_optional() {
        assert_reads(&[
            ("a: 1\nb: 2", "{a:1,b:2}"),
            ("a: 1, b: 2,", "{a:1,b:2}"),
            ("[1\n2,3,]", "[1,2,3]"),
            ("{a#b: 1, c//d: 2, null: 3}", "{a#b:1,c//d:2,null:3}"),
            ("a\n:\n1", "{a:1}"),
            ("\u{feff}a: 1", "{a:1}"),
            ("\u{ef}\u{bb}\u{bf}{a: 1}", "{a:1}"),
        ]);
    }

    #[test]
    fn unquoted_text_runs_to_the_end_of_its_line() {
        assert_reads(&[
            ("a: auto, b: 2 # c", "{a:\"auto, b: 2 # c\"}"),
            ("{a: x}\n}", "{a:\"x}\"}"),
            ("[\n a // b\n]", "[\"a // b\"]"),
            ("a: \u{a0}x\u{1c}", "{a:\"x\"}"),
            ("a: \u{a0}", "{a:\"\"}"),
            ("a: 1 2", "{a:\"1 2\"}"),
            ("a: 01", "{a:\"01\"}"),
            ("a: nullable", "{a:\"nullable\"}"),
            ("a: None", "{a:\"None\"}"),
            ("a: .5", "{a:\".5\"}"),
            ("a: -", "{a:\"-\"}"),
            ("a: NaN", "{a:\"NaN\"}"),
        ]);
    }

    #[test]
    fn words_and_numbers_end_at_punctuation_and_comments() {
        assert_reads(&[
            ("{a: null}", "{a:null}"),
            ("a: true\u{a0}# c", "{a:true}"),
            ("[false/**/,1 //\n]", "[false,1]"),
            ("a: 1 \t, b: 2", "{a:1,b:2}"),
            ("a: 1\u{a0}", "{a:\"1\"}"),
            ("a: 1/2", "{a:\"1/2\"}"),
            ("[1e3, 1.0, -0.0, 0.5, 1e10]", "[1000,1,0,0.5f,10000000000.0f]"),
            ("a: 1٢.٥", "{a:12.5f}"),
        ]);
    }

    #[test]
    fn a_broken_root_object_may_still_be_a_single_value() {
        assert_reads(&[
            ("true", "true"),
            ("12", "12"),
            ("'a'", "\"a\""),
            ("text without a colon", "\"text without a colon\""),
            ("a: {", "\"a: {\""),
            ("a: [1, }", "\"a: [1, }\""),
            ("\na: '''x", "\"a: '''x\""),
            ("'''a'''\n", "\"a\""),
        ]);
        // A crash, unlike a decode error, is not tried again.
        for text in ["a: 1e999", "\na: '''", "a: '''x'''", "a: 1 /*", "a: \"\\u-001\""] {
            assert!(parse_hjson(text).is_err(), "{text:?}");
        }
        assert!(parse_hjson(&format!("a: {}", "9".repeat(4301))).is_err());
        assert!(parse_hjson(&format!("a: {}", "[".repeat(600))).is_err());
    }

    #[test]
    fn keys_are_stripped_only_before_a_plain_blank() {
        assert_reads(&[
            ("a \t: 1", "{a:1}"),
            ("a\u{a0}: 1", "{a\u{a0}:1}"),
            ("a\u{a0} : 1", "{a:1}"),
            ("\u{a0} : 1", "{:1}"),
            ("'': 1", "{:1}"),
        ]);
    }

    #[test]
    fn multiline_strings_lose_the_indentation_of_their_opening() {
        assert_reads(&[
            ("a:\n  '''\n  x\n    y\n  '''", "{a:\"x\\n  y\"}"),
            ("\na: ''' x\n      y'''", "{a:\"x\\n   y\"}"),
            ("\na: '''x\n\n'''", "{a:\"x\\n\"}"),
            ("\n[''''''\n'''it''s''']", "[\"\",\"it''s\"]"),
            ("\r\n'''\r\na\rb'''", "\"a\\nb\""),
        ]);
    }

    #[test]
    fn indentation_on_the_first_line_counts_the_last_line_too() {
        // Three characters before the opening, and six after the last line break.
        assert_reads(&[("[  '''\n          a''',\n12345]", "[\" a\",12345]")]);
    }

    #[test]
    fn refusals_say_what_is_wrong_and_where() {
        use SyntaxErrorKind as Kind;
        assert_refuses(&[
            ("{a: 1", Kind::UnterminatedObject, "{"),
            ("[1,\r\n2", Kind::UnterminatedArray, "["),
            ("{a: auto}", Kind::CloseSwallowedByUnquotedText { close: '}' }, "auto}"),
            ("{\"a\" 1}", Kind::MissingColon { found: Some('1') }, "\"a\""),
            ("{a\n}", Kind::MissingColon { found: Some('}') }, "a"),
            ("{,}", Kind::PunctuatorWhereKeyExpected { character: ',' }, ","),
            ("{a: 1,,}", Kind::PunctuatorWhereKeyExpected { character: ',' }, ","),
            ("{: 1}", Kind::MissingKey, ":"),
            ("{a b: 1}", Kind::KeyWithWhitespace, "a b"),
            ("{a: }", Kind::PunctuatorWhereValueExpected { character: '}' }, "}"),
            ("{\"a\": \"x\ny\"}", Kind::UnterminatedString { quote: '"' }, "\"x"),
            ("{a: '\t'}", Kind::ControlCharacterInString { character: '\t' }, "\t"),
            ("{a: '\\x'}", Kind::BadEscape { character: 'x' }, "\\x"),
            ("{a: '\\u12'}", Kind::BadUnicodeEscape, "\\u12'}"),
            ("{a: 1} b", Kind::TrailingData, "b"),
            ("{} /* x", Kind::UnterminatedComment, "/*"),
            ("{a: '''x'''}", Kind::MultilineStringWithoutLineBreak, "'''"),
            ("{a:\n'''x''}", Kind::UnterminatedMultilineString, "'''"),
            ("{a: -1e999}", Kind::NumberOverflow, "-1e999"),
            ("\u{feff} ", Kind::NothingAfterByteOrderMark, "\u{feff} "),
            ("a: 1\nb: }\n", Kind::PunctuatorWhereValueExpected { character: '}' }, "}"),
            ("true\nfalse\n", Kind::TrailingData, "false"),
        ]);
    }

    #[test]
    fn places_are_those_of_the_original_text() {
        let text = "\u{feff}# é\r\n{\r\n  a : 'x'\r\n  b: some text \r\n}\r\n";
        let document = parse_hjson(text).unwrap();
        let part = |span: Span| span.of(text).unwrap();
        assert_eq!(part(document.comments()[0].span), "# é");
        assert!(part(document.root().span).starts_with("{\r\n"));
        let Value::Object(members) = &document.root().value else { panic!("an object") };
        let parts: Vec<_> =
            members.iter().map(|m| (part(m.key_span), part(m.value.span))).collect();
        assert_eq!(parts, [("a", "'x'"), ("b", "some text")]);
    }

    #[test]
    fn a_root_without_braces_reaches_from_first_key_to_last_value() {
        let text = "# c\na: 1\nb: [2] , # d\n";
        let document = parse_hjson(text).unwrap();
        assert_eq!(document.root().span.of(text), Some("a: 1\nb: [2]"));
        assert_eq!(document.comments().len(), 2);
    }
}
