//! The other reader: JSON as Python's `json` module reads a file.
//!
//! What Hjson would have allowed is refused with a kind of its own, because a config that passed
//! through the engine and then meets HF Trainer or accelerate fails on exactly those things.

use super::builder::{Builder, Enclosing};
use super::error::{Fault, SyntaxError, SyntaxErrorKind};
use super::newline::Lines;
use super::number::NumberToken;
use super::string::{Dialect, quoted};
use super::{Document, Node, Value};

/// The deepest nesting of lists and objects that is read.
///
/// Python's reader counts one level of its thousand per list or object, so its limit moves with
/// the caller: 988 levels straight from a script, 978 from ten calls down.
pub const MAX_JSON_DEPTH: usize = 980;

/// Reads `text` as Python's `json.load` reads a UTF-8 file.
///
/// # Errors
///
/// The first thing that reader trips over.
pub fn parse_json(text: &str) -> Result<Document, SyntaxError> {
    let lines = Lines::translate(text);
    match Reader::new(&lines).document() {
        Ok(root) => Ok(Document::new(text.to_owned(), root, Vec::new())),
        Err(fault) => Err(fault.into_error(&lines)),
    }
}

/// What comes next. Keys and values after a comma know where it stands.
enum Step {
    Key { comma: Option<usize> },
    Value { comma: Option<usize> },
    AfterValue,
    Done(Node),
}

struct Reader<'a> {
    lines: &'a Lines<'a>,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the last token of a value started, to tell a malformed number from a missing comma.
    token: usize,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn new(lines: &'a Lines<'a>) -> Self {
        let text = lines.text();
        Self {
            lines,
            text,
            bytes: text.as_bytes(),
            at: 0,
            token: 0,
            builder: Builder::new(MAX_JSON_DEPTH),
        }
    }

    fn document(&mut self) -> Result<Node, Fault> {
        if self.text.starts_with('\u{feff}') {
            return Err(Fault::new(SyntaxErrorKind::ByteOrderMark, 0, '\u{feff}'.len_utf8()));
        }
        self.skip_blank();
        if self.peek().is_none() {
            return Err(Fault::new(SyntaxErrorKind::EmptyDocument, 0, self.at));
        }
        let mut step = Step::Value { comma: None };
        let root = loop {
            step = match step {
                Step::Key { comma } => self.key(comma)?,
                Step::Value { comma } => self.value(comma)?,
                Step::AfterValue => self.after_value()?,
                Step::Done(root) => break root,
            };
        };
        self.skip_blank();
        if self.peek().is_some() { Err(self.trailing()) } else { Ok(root) }
    }

    fn key(&mut self, comma: Option<usize>) -> Result<Step, Fault> {
        let begin = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.not_a_key(comma));
        }
        let (name, end) = quoted(self.text, begin, Dialect::Json)?;
        self.builder.key(name, self.lines.span(begin, end));
        self.at = end;
        self.skip_blank();
        if self.peek() != Some(b':') {
            return Err(self.comment().unwrap_or_else(|| {
                let found = self.peek_char();
                Fault::new(SyntaxErrorKind::MissingColon { found }, begin, end)
            }));
        }
        self.at += 1;
        self.skip_blank();
        Ok(Step::Value { comma: None })
    }

    fn value(&mut self, comma: Option<usize>) -> Result<Step, Fault> {
        let begin = self.at;
        self.token = begin;
        let value = match self.peek() {
            Some(b'"') => {
                let (value, end) = quoted(self.text, begin, Dialect::Json)?;
                self.at = end;
                Some(Value::Str(value))
            }
            Some(b'{') => {
                return self.open(Enclosing::Object, b'}', Step::Key { comma: None });
            }
            Some(b'[') => {
                return self.open(Enclosing::Array, b']', Step::Value { comma: None });
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word(),
        };
        let Some(value) = value else {
            return Err(self.not_a_value(comma));
        };
        let node = Node { span: self.lines.span(begin, self.at), value };
        Ok(self.builder.value(node).map_or(Step::AfterValue, Step::Done))
    }

    fn open(&mut self, kind: Enclosing, close: u8, first: Step) -> Result<Step, Fault> {
        self.builder.open(self.at, kind)?;
        self.at += 1;
        self.skip_blank();
        Ok(if self.peek() == Some(close) { self.close() } else { first })
    }

    fn close(&mut self) -> Step {
        self.at += 1;
        self.token = self.at;
        self.builder.close(self.lines, self.at).map_or(Step::AfterValue, Step::Done)
    }

    fn after_value(&mut self) -> Result<Step, Fault> {
        let value_end = self.at;
        self.skip_blank();
        let is_array = self.builder.enclosing() == Some(Enclosing::Array);
        match (self.peek(), is_array) {
            (Some(b','), _) => {
                let comma = Some(self.at);
                self.at += 1;
                self.skip_blank();
                Ok(if is_array { Step::Value { comma } } else { Step::Key { comma } })
            }
            (Some(b']'), true) | (Some(b'}'), false) => Ok(self.close()),
            _ => Err(self.not_a_comma(value_end, is_array)),
        }
    }

    fn word(&mut self) -> Option<Value> {
        let (word, value) = match self.peek()? {
            b'n' => ("null", Value::Null),
            b't' => ("true", Value::Bool(true)),
            b'f' => ("false", Value::Bool(false)),
            b'N' => ("NaN", Value::Float(f64::NAN)),
            b'I' => ("Infinity", Value::Float(f64::INFINITY)),
            _ => return None,
        };
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn number(&mut self) -> Result<Option<Value>, Fault> {
        const MINUS_INFINITY: &str = "-Infinity";
        if self.text[self.at..].starts_with(MINUS_INFINITY) {
            self.at += MINUS_INFINITY.len();
            return Ok(Some(Value::Float(f64::NEG_INFINITY)));
        }
        let begin = self.at;
        let Some(token) = number_token(&self.text[begin..]) else {
            return Ok(None);
        };
        self.at = begin + token.text.len();
        token.json_value().map(Some).map_err(|kind| Fault::new(kind, begin, self.at))
    }

    fn skip_blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_char(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }
}

/// Finding the most helpful name for a refusal that is already certain.
impl Reader<'_> {
    fn not_a_key(&self, comma: Option<usize>) -> Fault {
        if let Some(fault) = self.comment().or_else(|| self.foreign_string()) {
            return fault;
        }
        let Some(character) = self.peek_char() else {
            return self.builder.unterminated(self.at);
        };
        match (character, comma) {
            ('}', Some(comma)) => {
                Fault::new(SyntaxErrorKind::TrailingComma { close: '}' }, comma, comma + 1)
            }
            (':', _) => self.here(SyntaxErrorKind::MissingKey),
            ('{' | '}' | '[' | ']' | ',', _) => {
                self.here(SyntaxErrorKind::PunctuatorWhereKeyExpected { character })
            }
            _ => self.over_word(SyntaxErrorKind::UnquotedKey),
        }
    }

    fn not_a_value(&self, comma: Option<usize>) -> Fault {
        if let Some(fault) = self.comment().or_else(|| self.foreign_string()) {
            return fault;
        }
        let Some(character) = self.peek_char() else {
            return self.builder.unterminated(self.at);
        };
        match (character, comma) {
            (']', Some(comma)) => {
                Fault::new(SyntaxErrorKind::TrailingComma { close: ']' }, comma, comma + 1)
            }
            ('}' | ']' | ',' | ':', _) => {
                self.here(SyntaxErrorKind::PunctuatorWhereValueExpected { character })
            }
            ('0'..='9' | '.' | '+' | '-', _) => self.over_word(SyntaxErrorKind::MalformedNumber),
            _ => self.over_word(match self.word_here() {
                "True" => SyntaxErrorKind::PythonLiteral { json: "true" },
                "False" => SyntaxErrorKind::PythonLiteral { json: "false" },
                "None" => SyntaxErrorKind::PythonLiteral { json: "null" },
                _ => SyntaxErrorKind::UnquotedValue,
            }),
        }
    }

    fn not_a_comma(&self, value_end: usize, is_array: bool) -> Fault {
        if let Some(fault) = self.comment().or_else(|| self.ill_formed_value(value_end)) {
            return fault;
        }
        let Some(found) = self.peek_char() else {
            return self.builder.unterminated(self.at);
        };
        match found {
            ']' | '}' => {
                let expected = if is_array { ']' } else { '}' };
                self.here(SyntaxErrorKind::MismatchedClose { expected, found })
            }
            _ if found.is_alphanumeric() || matches!(found, '"' | '\'' | '{' | '[' | '-' | '_') => {
                self.over_word(SyntaxErrorKind::MissingComma)
            }
            character => self.here(SyntaxErrorKind::UnexpectedCharacter { character }),
        }
    }

    fn trailing(&self) -> Fault {
        self.comment().or_else(|| self.ill_formed_value(self.at)).unwrap_or_else(|| {
            let end = self.text[self.at..].find('\n').map_or(self.text.len(), |len| self.at + len);
            Fault::new(SyntaxErrorKind::TrailingData, self.at, end)
        })
    }

    /// A number or word that goes on where the reader had to stop, such as `01` or `nullable`.
    fn ill_formed_value(&self, value_end: usize) -> Option<Fault> {
        let is_scalar = self.token < value_end && self.bytes[self.token] != b'"';
        let goes_on = self.at == value_end
            && self.peek_char().is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
        if !(is_scalar && goes_on) {
            return None;
        }
        let is_number = matches!(self.bytes[self.token], b'-' | b'0'..=b'9');
        let kind = if is_number {
            SyntaxErrorKind::MalformedNumber
        } else {
            SyntaxErrorKind::UnquotedValue
        };
        Some(Fault::new(kind, self.token, self.at + self.word_here().len()))
    }

    fn comment(&self) -> Option<Fault> {
        let rest = &self.text[self.at..];
        let line = rest.find('\n').unwrap_or(rest.len());
        let length = if rest.starts_with('#') || rest.starts_with("//") {
            line
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(line, |length| length + 2)
        } else {
            return None;
        };
        Some(Fault::new(SyntaxErrorKind::CommentInJson, self.at, self.at + length))
    }

    fn foreign_string(&self) -> Option<Fault> {
        let inner = self.text[self.at..].strip_prefix('\'')?;
        let length = inner.find(['\'', '\n']).unwrap_or(inner.len());
        let closed = usize::from(inner[length..].starts_with('\''));
        let end = self.at + 1 + length + closed;
        Some(Fault::new(SyntaxErrorKind::SingleQuotes, self.at, end))
    }

    fn here(&self, kind: SyntaxErrorKind) -> Fault {
        let length = self.peek_char().map_or(0, char::len_utf8);
        Fault::new(kind, self.at, self.at + length)
    }

    /// `kind` over the word that starts here, or the single character if none does.
    fn over_word(&self, kind: SyntaxErrorKind) -> Fault {
        let is_name = matches!(kind, SyntaxErrorKind::UnquotedKey | SyntaxErrorKind::UnquotedValue);
        match (self.word_here().len(), self.peek_char()) {
            (0, Some(character)) if is_name => {
                self.here(SyntaxErrorKind::UnexpectedCharacter { character })
            }
            (0, _) => self.here(kind),
            (length, _) => Fault::new(kind, self.at, self.at + length),
        }
    }

    fn word_here(&self) -> &str {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    }
}

/// The number at the start of `text`, in ASCII digits only.
fn number_token(text: &str) -> Option<NumberToken<'_>> {
    let bytes = text.as_bytes();
    let digits_end =
        |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(text.starts_with('-'));
    let mut end = match bytes.get(sign)? {
        b'0' => sign + 1,
        b'1'..=b'9' => digits_end(sign),
        _ => return None,
    };
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && digits_end(end + 1) > end + 1 {
        end = digits_end(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digits_end(signed) > signed {
            end = digits_end(signed);
            is_float = true;
        }
    }
    Some(NumberToken { text: &text[..end], is_float })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        let document = parse_json(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        document.root().value.clone()
    }

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(value("-0"), Value::Int(0.into()));
        assert_eq!(value(" 1e3\r\n"), Value::Float(1000.0));
        assert_eq!(value("1E999"), Value::Float(f64::INFINITY));
        assert_eq!(value("-Infinity"), Value::Float(f64::NEG_INFINITY));
        assert!(matches!(value("NaN"), Value::Float(nan) if nan.is_nan()));
        assert!(matches!(value("-0.0"), Value::Float(zero) if zero.is_sign_negative()));
        assert_eq!(value("18446744073709551616"), Value::Int((1_i128 << 64).into()));
    }

    #[test]
    fn refusals_name_what_hjson_would_have_allowed() {
        use SyntaxErrorKind as Kind;
        for (text, kind, place) in [
            ("", Kind::EmptyDocument, ""),
            ("\u{feff}{}", Kind::ByteOrderMark, "\u{feff}"),
            ("{\"a\": 1,\r\n}", Kind::TrailingComma { close: '}' }, ","),
            ("[1, ]", Kind::TrailingComma { close: ']' }, ","),
            ("{'a': 1}", Kind::SingleQuotes, "'a'"),
            ("{\"a\": 'x y'}", Kind::SingleQuotes, "'x y'"),
            ("{a: 1}", Kind::UnquotedKey, "a"),
            ("{\"a\": auto}", Kind::UnquotedValue, "auto"),
            ("{\"a\": nullable}", Kind::UnquotedValue, "nullable"),
            ("{\"a\": True}", Kind::PythonLiteral { json: "true" }, "True"),
            ("[None]", Kind::PythonLiteral { json: "null" }, "None"),
            ("{ // x\n}", Kind::CommentInJson, "// x"),
            ("{\"a\": 1 # x\n}", Kind::CommentInJson, "# x"),
            ("{} /* x */", Kind::CommentInJson, "/* x */"),
            ("{\"a\" /* x */: 1}", Kind::CommentInJson, "/* x */"),
            ("{\"a\": 1 \"b\": 2}", Kind::MissingComma, "\""),
            ("[1 2]", Kind::MissingComma, "2"),
            ("[01]", Kind::MalformedNumber, "01"),
            ("[1.]", Kind::MalformedNumber, "1."),
            ("[.5]", Kind::MalformedNumber, ".5"),
            ("[+1]", Kind::MalformedNumber, "+1"),
            ("[1_000]", Kind::MalformedNumber, "1_000"),
            ("1٣", Kind::MalformedNumber, "1٣"),
            ("[-]", Kind::MalformedNumber, "-"),
            ("[1}", Kind::MismatchedClose { expected: ']', found: '}' }, "}"),
            ("[1", Kind::UnterminatedArray, "["),
            ("{\"a\": {", Kind::UnterminatedObject, "{"),
            ("{\"a\"}", Kind::MissingColon { found: Some('}') }, "\"a\""),
            ("{\"a\":}", Kind::PunctuatorWhereValueExpected { character: '}' }, "}"),
            ("{,}", Kind::PunctuatorWhereKeyExpected { character: ',' }, ","),
            ("{:1}", Kind::MissingKey, ":"),
            ("[\"a\tb\"]", Kind::ControlCharacterInString { character: '\t' }, "\t"),
            ("[\"a\n\"]", Kind::UnterminatedString { quote: '"' }, "\"a"),
            ("[\"\\x\"]", Kind::BadEscape { character: 'x' }, "\\x"),
            ("{} {}", Kind::TrailingData, "{}"),
            ("[\u{a0}1]", Kind::UnexpectedCharacter { character: '\u{a0}' }, "\u{a0}"),
        ] {
            let error = parse_json(text).expect_err(text);
            assert_eq!(error.kind, kind, "{text:?}");
            assert_eq!(error.span.of(text), Some(place), "{text:?}");
        }
    }
}
