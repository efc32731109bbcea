//! An object as JSON, Hjson or Python writes it, with the marks that chats and editors put into it.

use super::Change;

/// An object that was read, and what was done to it.
#[derive(Debug)]
pub(super) struct Read {
    /// As JSON or Hjson.
    pub(super) text: String,
    /// Bytes of the text that was given.
    pub(super) length: usize,
    pub(super) changes: Vec<Change>,
}

#[derive(Debug, Default)]
struct Counts {
    quotes: usize,
    punctuation: usize,
    invisible: usize,
    python: usize,
}

fn is_double(mark: char) -> bool {
    matches!(mark, '"' | '“' | '”' | '„' | '‟' | '″' | '＂')
}

fn is_single(mark: char) -> bool {
    matches!(mark, '\'' | '‘' | '’' | '‚' | '‛' | '′' | '＇')
}

/// What stands for a mark outside of texts; `None` for marks that stay.
fn plain(mark: char) -> Option<char> {
    Some(match mark {
        '：' => ':',
        '，' => ',',
        '｛' => '{',
        '｝' => '}',
        '［' | '【' => '[',
        '］' | '】' => ']',
        _ => return None,
    })
}

fn is_unusual_space(mark: char) -> bool {
    matches!(mark, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn is_invisible(mark: char) -> bool {
    matches!(mark, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// Reads the object that the text begins with, up to its closing brace or to the end.
pub(super) fn object(text: &str) -> Read {
    let mut reader = Reader {
        text,
        at: 0,
        out: String::with_capacity(text.len()),
        counts: Counts::default(),
        expressions: Vec::new(),
    };
    let mut open: Vec<char> = Vec::new();
    while let Some(mark) = reader.peek() {
        match plain(mark).unwrap_or(mark) {
            '{' | '[' => open.push(if plain(mark).unwrap_or(mark) == '{' { '}' } else { ']' }),
            '}' | ']' => {
                open.pop();
            }
            _ => {}
        }
        reader.step(mark);
        if open.is_empty() {
            break;
        }
    }
    let Reader { mut out, at, counts, mut expressions, .. } = reader;
    let mut changes = Vec::new();
    for (count, change) in [
        (counts.quotes, Change::Quotes as fn(usize) -> Change),
        (counts.punctuation, Change::Punctuation),
        (counts.invisible, Change::Invisible),
        (counts.python, Change::Python),
    ] {
        if count > 0 {
            changes.push(change(count));
        }
    }
    // Only Python has names as values; Hjson has texts without quotes.
    if counts.python > 0 || counts.quotes > 0 {
        expressions.dedup();
        changes.extend(expressions.into_iter().map(Change::Expression));
    }
    if !open.is_empty() {
        changes.push(Change::Closed(open.len()));
        let kept = out.trim_end().trim_end_matches(',').len();
        out.truncate(kept);
        out.push('\n');
        out.extend(open.iter().rev());
    }
    Read { text: out, length: at, changes }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    out: String,
    counts: Counts,
    expressions: Vec<String>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    fn put(&mut self, taken: char, given: &str) {
        self.out.push_str(given);
        self.at += taken.len_utf8();
    }

    /// Reads what begins with this mark.
    fn step(&mut self, mark: char) {
        let rest = self.rest();
        if let Some(inside) = rest.strip_prefix("'''") {
            let end = inside.find("'''").map_or(rest.len(), |end| end + 6);
            self.copy(end);
        } else if mark == '"' {
            self.straight();
        } else if is_double(mark) || is_single(mark) {
            self.quoted(mark);
        } else if mark == '#' || rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.copy(end);
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
            self.copy(end);
        } else if mark.is_ascii_alphabetic() || mark == '_' {
            self.word();
        } else if mark.is_ascii_digit() {
            self.number();
        } else if let Some(given) = plain(mark) {
            self.counts.punctuation += 1;
            self.put(mark, given.encode_utf8(&mut [0; 4]));
        } else if is_unusual_space(mark) {
            self.counts.invisible += 1;
            self.put(mark, " ");
        } else if is_invisible(mark) {
            self.counts.invisible += 1;
            self.put(mark, "");
        } else {
            self.copy(mark.len_utf8());
        }
    }

    /// A text in straight double quotes stays as it is.
    fn straight(&mut self) {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, mark)| {
            let ends = !escaped && matches!(mark, '"' | '\n');
            escaped = !escaped && *mark == '\\';
            ends
        });
        self.copy(end.map_or(rest.len(), |(at, mark)| at + mark.len_utf8()));
    }

    /// A text in other quotes gets straight double ones.
    fn quoted(&mut self, opening: char) {
        let closes = if is_double(opening) { is_double } else { is_single };
        let rest = self.rest();
        let line = rest.find('\n').unwrap_or(rest.len());
        let inside = &rest[opening.len_utf8()..line.max(opening.len_utf8())];
        let mut escaped = false;
        let end = inside.char_indices().find(|(_, mark)| {
            let ends = !escaped && closes(*mark);
            escaped = !escaped && *mark == '\\';
            ends
        });
        let Some((end, closing)) = end else {
            return self.copy(opening.len_utf8());
        };
        self.counts.quotes += 1;
        let content = inside[..end].replace("\\'", "'");
        self.out.push('"');
        for mark in content.chars() {
            if mark == '"' {
                self.out.push('\\');
            }
            self.out.push(mark);
        }
        self.out.push('"');
        self.at += opening.len_utf8() + end + closing.len_utf8();
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = rest
            .find(|mark: char| !(mark.is_alphanumeric() || matches!(mark, '_' | '.' | '-')))
            .unwrap_or(rest.len());
        let given = match &rest[..length] {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            word => {
                let is_key = rest[length..].trim_start().starts_with([':', '：']);
                if !is_key && !matches!(word, "true" | "false" | "null" | "Infinity" | "NaN") {
                    let end = rest.find([',', '\n', '}', '#']).unwrap_or(rest.len());
                    let expression = rest[..end.max(length)].trim_end();
                    self.expressions.push(expression.to_owned());
                    return self.copy(expression.len());
                }
                return self.copy(length);
            }
        };
        self.counts.python += 1;
        self.out.push_str(given);
        self.at += length;
    }

    fn number(&mut self) {
        let rest = self.rest();
        let length = rest
            .find(|mark: char| {
                !(mark.is_ascii_alphanumeric() || matches!(mark, '_' | '.' | '+' | '-'))
            })
            .unwrap_or(rest.len());
        let number = &rest[..length];
        let is_grouped = number.contains('_')
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_' || byte == b'.');
        if !is_grouped {
            return self.copy(length);
        }
        self.counts.python += 1;
        self.out.push_str(&number.replace('_', ""));
        self.at += length;
    }
}
