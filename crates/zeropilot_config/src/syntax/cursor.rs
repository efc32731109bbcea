//! What stands around a place in a text that need not be whole.
//!
//! The readers stop at the first fault, as the engine's do. While a person types there nearly always is one, so editors
//! need something more patient: this looks at braces, quotes, colons and commas only, and guesses where one is missing.

use super::Span;

/// Where a cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Keys of the sections around it, outermost first.
    pub sections: Vec<String>,
    /// Keys that the innermost section has, the one under the cursor left out.
    pub present: Vec<String>,
    /// What can be written there.
    pub slot: Slot,
}

/// A place for a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// A key, or the place for one.
    Key {
        /// Its text so far, quotes included; empty if there is none.
        span: Span,
        /// The key, if there is one.
        name: String,
        /// Whether its colon stands already.
        has_colon: bool,
        /// Where a comma is missing before it.
        comma_before: Option<usize>,
        /// Whether a comma is missing after it.
        comma_after: bool,
    },
    /// The value of a key, or the place for it.
    Value {
        /// The key.
        key: String,
        /// The value's text so far if it is no list or section; empty if there is none.
        span: Span,
    },
    /// Neither: inside a list, a comment, or where only a comma can follow.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Punctuation(u8),
    /// Text in quotes, or a word.
    Text,
}

/// The place at a byte offset.
pub fn cursor(text: &str, offset: usize) -> Cursor {
    let Some(tokens) = tokens(text, offset) else {
        return Cursor { sections: Vec::new(), present: Vec::new(), slot: Slot::Other };
    };
    Walk::new(text, &tokens, offset).run()
}

/// The top-level keys of a text, however broken.
pub fn top_level_keys(text: &str) -> Vec<String> {
    let Some(tokens) = tokens(text, usize::MAX) else { return Vec::new() };
    let mut depth = 0_usize;
    let is_bare = tokens.first().is_none_or(|(token, _)| *token != Token::Punctuation(b'{'));
    let mut keys = Vec::new();
    for (index, (token, span)) in tokens.iter().enumerate() {
        match token {
            Token::Punctuation(b'{' | b'[') => depth += 1,
            Token::Punctuation(b'}' | b']') => depth = depth.saturating_sub(1),
            Token::Text if depth == usize::from(!is_bare) && is_colon(&tokens, index + 1) => {
                keys.push(unquoted(text, *span).to_owned());
            }
            _ => {}
        }
    }
    keys
}

type Tokens = [(Token, Span)];

fn is_colon(tokens: &Tokens, index: usize) -> bool {
    tokens.get(index).is_some_and(|(token, _)| *token == Token::Punctuation(b':'))
}

fn unquoted(text: &str, span: Span) -> &str {
    let word = span.of(text).unwrap_or("");
    let quote = word.chars().next().filter(|quote| matches!(quote, '"' | '\''));
    match quote {
        Some(quote) => {
            let inner = &word[1..];
            inner.strip_suffix(quote).unwrap_or(inner)
        }
        None => word,
    }
}

/// The tokens of a text; `None` if the offset is in a comment.
fn tokens(text: &str, offset: usize) -> Option<Vec<(Token, Span)>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = match bytes[at] {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {
                found.push((Token::Punctuation(bytes[at]), Span::new(at, at + 1)));
                at + 1
            }
            byte if byte.is_ascii_whitespace() => at + 1,
            _ if rest.starts_with('#') || rest.starts_with("//") || rest.starts_with("/*") => {
                let end = match rest.starts_with("/*") {
                    true => rest.find("*/").map_or(text.len(), |end| at + end + 2),
                    false => line_end(text, at),
                };
                if (at + 1..=end).contains(&offset) {
                    return None;
                }
                end
            }
            quote @ (b'"' | b'\'') => {
                let end = string_end(text, at, quote);
                found.push((Token::Text, Span::new(at, end)));
                end
            }
            _ => {
                let stops = |c: char| c.is_whitespace() || "{}[]:,\"'#".contains(c);
                let end = rest.find(stops).map_or(text.len(), |length| at + length.max(1));
                found.push((Token::Text, Span::new(at, end)));
                end
            }
        };
        at = end.max(at + 1);
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    Some(found)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find(['\n', '\r']).map_or(text.len(), |length| at + length)
}

/// The end of a string; one that is not closed ends with its line, or before what must be punctuation.
fn string_end(text: &str, at: usize, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'\n' | b'\r' => return end,
            byte if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    end.min(text.len())
}

/// An open section or list.
struct Frame {
    key: Option<String>,
    is_list: bool,
    members: Vec<(String, Span)>,
    /// A key whose colon has been seen and whose value has not.
    waiting: Option<String>,
    /// The end of the last value that no comma follows.
    value_end: Option<usize>,
}

impl Frame {
    fn new(key: Option<String>, is_list: bool) -> Self {
        Self { key, is_list, members: Vec::new(), waiting: None, value_end: None }
    }
}

struct Walk<'t> {
    text: &'t str,
    tokens: &'t Tokens,
    offset: usize,
    frames: Vec<Frame>,
    /// The answer, without the members that follow the cursor, and how deep it stands.
    found: Option<(Cursor, usize, Span)>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str, tokens: &'t Tokens, offset: usize) -> Self {
        let is_bare = tokens.first().is_none_or(|(token, _)| *token != Token::Punctuation(b'{'));
        let frames = if is_bare { vec![Frame::new(None, false)] } else { Vec::new() };
        Self { text, tokens, offset, frames, found: None }
    }

    fn run(mut self) -> Cursor {
        for index in 0..self.tokens.len() {
            let (token, span) = self.tokens[index];
            if self.found.is_none() && self.offset <= span.start {
                self.answer(index, Span::new(self.offset, self.offset), false);
            }
            let is_inside = span.start < self.offset && self.offset <= span.end;
            if self.found.is_none() && token == Token::Text && is_inside {
                self.answer(index, span, true);
            }
            let closes = matches!(token, Token::Punctuation(b'}' | b']'));
            let is_own = |found: &(Cursor, usize, Span)| found.1 == self.frames.len();
            if closes && self.found.as_ref().is_some_and(is_own) {
                break;
            }
            self.step(index, token, span);
        }
        if self.found.is_none() {
            self.answer(self.tokens.len(), Span::new(self.offset, self.offset), false);
        }
        self.finish()
    }

    fn step(&mut self, index: usize, token: Token, span: Span) {
        match token {
            Token::Punctuation(open @ (b'{' | b'[')) => {
                let key = self.frames.last_mut().and_then(|frame| frame.waiting.take());
                self.frames.push(Frame::new(key, open == b'['));
            }
            Token::Punctuation(b'}' | b']') => {
                self.frames.pop();
                if let Some(frame) = self.frames.last_mut() {
                    frame.waiting = None;
                    frame.value_end = Some(span.end);
                }
            }
            Token::Punctuation(b',') => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.waiting = None;
                    frame.value_end = None;
                }
            }
            Token::Punctuation(_) => {}
            Token::Text => {
                let is_key = is_colon(self.tokens, index + 1);
                let name = unquoted(self.text, span).to_owned();
                let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_list) else {
                    return;
                };
                if is_key {
                    frame.members.push((name.clone(), span));
                    frame.waiting = Some(name);
                    frame.value_end = None;
                } else if frame.waiting.take().is_some() {
                    frame.value_end = Some(span.end);
                }
            }
        }
    }

    /// Notes what the cursor is at, before the token at `index` is taken.
    fn answer(&mut self, index: usize, span: Span, on_token: bool) {
        let is_key = on_token && is_colon(self.tokens, index + 1);
        let slot = match self.frames.last() {
            None => Slot::Other,
            Some(frame) if frame.is_list => Slot::Other,
            Some(Frame { waiting: Some(key), .. })
                if !is_key && !self.colon_is_ahead(index, on_token) =>
            {
                Slot::Value { key: key.clone(), span }
            }
            Some(frame) => self.key_slot(frame, index, span, on_token, is_key),
        };
        let sections = self.frames.iter().filter_map(|frame| frame.key.clone()).collect();
        let cursor = Cursor { sections, present: Vec::new(), slot };
        self.found = Some((cursor, self.frames.len(), span));
    }

    /// Whether the cursor stands between a key and its colon.
    fn colon_is_ahead(&self, index: usize, on_token: bool) -> bool {
        !on_token && is_colon(self.tokens, index)
    }

    fn key_slot(
        &self,
        frame: &Frame,
        index: usize,
        span: Span,
        on_token: bool,
        has_colon: bool,
    ) -> Slot {
        // Right behind a value only a comma can follow; on a new line a forgotten one is put in.
        let is_same_line =
            |end: usize| self.text.get(end..span.start).is_some_and(|gap| !gap.contains('\n'));
        if frame.value_end.is_some_and(is_same_line) {
            return Slot::Other;
        }
        let next = if on_token { index + 1 } else { index };
        let comma_after = !has_colon
            && matches!(self.tokens.get(next), Some((Token::Text, _)) if is_colon(self.tokens, next + 1));
        Slot::Key {
            span,
            name: if on_token { unquoted(self.text, span).to_owned() } else { String::new() },
            has_colon,
            comma_before: frame.value_end,
            comma_after,
        }
    }

    fn finish(self) -> Cursor {
        let (mut cursor, depth, span) = self.found.unwrap_or_else(|| {
            let nowhere = Cursor { sections: Vec::new(), present: Vec::new(), slot: Slot::Other };
            (nowhere, 0, Span::default())
        });
        if let Some(frame) = depth.checked_sub(1).and_then(|index| self.frames.get(index)) {
            let others = frame.members.iter().filter(|(_, place)| *place != span);
            cursor.present = others.map(|(name, _)| name.clone()).collect();
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of `|` in a text.
    fn at(marked: &str) -> Cursor {
        let offset = marked.find('|').expect("a mark");
        cursor(&marked.replacen('|', "", 1), offset)
    }

    fn key(marked: &str) -> (String, Vec<String>, String) {
        let found = at(marked);
        match found.slot {
            Slot::Key { name, .. } => (found.sections.join("."), found.present, name),
            other => panic!("{marked}: {other:?}"),
        }
    }

    fn value(marked: &str) -> (String, String) {
        let found = at(marked);
        match found.slot {
            Slot::Value { key, .. } => (found.sections.join("."), key),
            other => panic!("{marked}: {other:?}"),
        }
    }

    #[test]
    fn keys_are_seen_in_whole_and_broken_texts() {
        let expect = |marked: &str, section: &str, present: &[&str], name: &str| {
            let (found, others, word) = key(marked);
            assert_eq!((found.as_str(), word.as_str()), (section, name), "{marked}");
            assert_eq!(others, present, "{marked}");
        };
        expect("{|}", "", &[], "");
        expect("{\"zero_optimization\": {|}}", "zero_optimization", &[], "");
        expect("{\"a\": 1, \"sta|", "", &["a"], "sta");
        expect("{\"z\": {\"stage\": 3,\n  \"re|\n  \"x\": 1}}", "z", &["stage", "x"], "re");
        expect("{\"z\": {\"stage\": 3,\n  |\n}, \"b\": 2}", "z", &["stage"], "");
        expect("{\"st|age\": 3, \"b\": 2}", "", &["b"], "stage");
        expect("{ # c\n a: 1\n \"b|\n", "", &["a"], "b");
        expect("a: 1\n|", "", &["a"], "");
    }

    #[test]
    fn values_are_seen_before_and_while_they_are_written() {
        let expect = |marked: &str, section: &str, key: &str| {
            let (found, of) = value(marked);
            assert_eq!((found.as_str(), of.as_str()), (section, key), "{marked}");
        };
        expect("{\"bf16\": {\"enabled\": |}}", "bf16", "enabled");
        expect("{\"bf16\": {\"enabled\": |\n\"x\": 1}}", "bf16", "enabled");
        expect("{\"device\": \"cp|\n}", "", "device");
        expect("{\"device\": cp|}", "", "device");
        expect("{\"a\": {\"b\": [1, 2], \"c\": tr|", "a", "c");
    }

    #[test]
    fn missing_commas_are_noticed_on_both_sides() {
        let Slot::Key { comma_before, comma_after, .. } = at("{\"a\": 1\n|\n\"b\": 2}").slot else {
            panic!("a key");
        };
        assert_eq!((comma_before, comma_after), (Some(7), true));
        assert_eq!(at("{\"a\": 1 |}").slot, Slot::Other);
    }

    #[test]
    fn lists_and_comments_are_no_place_for_keys() {
        assert_eq!(at("{\"betas\": [0.9, |]}").slot, Slot::Other);
        assert_eq!(at("{ // wh|at\n}").slot, Slot::Other);
    }

    #[test]
    fn the_top_level_is_found_in_any_text() {
        assert_eq!(top_level_keys("{\"a\": {\"b\": 1}, \"c\": [{\"d\": 1}], \"e"), ["a", "c"]);
        assert_eq!(top_level_keys("a: 1\nb: {c: 2}"), ["a", "b"]);
        assert!(top_level_keys("\"\\").is_empty());
    }

    #[test]
    fn no_text_is_too_odd() {
        for text in ["", "\"", "'\\", "{]}[", "é\"ü", "/*", "{\"a\":\"\\", "]]]]", "::,,"] {
            for offset in 0..=text.len() {
                let _ = cursor(text, offset);
            }
        }
    }
}
