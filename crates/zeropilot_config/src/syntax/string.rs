//! Quoted strings of both readers, with their escapes.
//!
//! Quoteless and `'''` strings exist in Hjson only and are read there.

use super::error::{Fault, SyntaxErrorKind};
use super::python_text::{ascii_digit, is_space};

/// Whose escapes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Hjson,
    Json,
}

/// The string whose quote stands at `open`, and the offset after its closing quote.
pub(super) fn quoted(text: &str, open: usize, dialect: Dialect) -> Result<(String, usize), Fault> {
    let bytes = text.as_bytes();
    let quote = bytes[open];
    let mut out = String::new();
    let mut from = open + 1;
    let mut at = from;
    loop {
        at += bytes[at..]
            .iter()
            .position(|&byte| byte == quote || byte == b'\\' || byte < b' ')
            .unwrap_or(bytes.len() - at);
        match bytes.get(at) {
            Some(&byte) if byte == quote => {
                out.push_str(&text[from..at]);
                return Ok((out, at + 1));
            }
            Some(b'\\') => {
                out.push_str(&text[from..at]);
                at = escape(&mut out, text, open, at, dialect)?;
                from = at;
            }
            None | Some(b'\n') => return Err(unterminated(quote, open, at)),
            Some(&control) => {
                let kind =
                    SyntaxErrorKind::ControlCharacterInString { character: char::from(control) };
                return Err(Fault::new(kind, at, at + 1));
            }
        }
    }
}

fn unterminated(quote: u8, open: usize, end: usize) -> Fault {
    Fault::new(SyntaxErrorKind::UnterminatedString { quote: char::from(quote) }, open, end)
}

/// Appends what the escape at `at` stands for; gives the offset after it.
fn escape(
    out: &mut String,
    text: &str,
    open: usize,
    at: usize,
    dialect: Dialect,
) -> Result<usize, Fault> {
    let Some(letter) = text[at + 1..].chars().next() else {
        return Err(unterminated(text.as_bytes()[open], open, text.len()));
    };
    let end = at + 1 + letter.len_utf8();
    out.push(match letter {
        '"' | '\\' | '/' => letter,
        '\'' if dialect == Dialect::Hjson => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode_escape(out, text, at, dialect),
        _ => return Err(Fault::new(SyntaxErrorKind::BadEscape { character: letter }, at, end)),
    });
    Ok(end)
}

fn unicode_escape(
    out: &mut String,
    text: &str,
    at: usize,
    dialect: Dialect,
) -> Result<usize, Fault> {
    let (unit, mut end) = code_unit(text, at, dialect)?;
    let mut code = unit;
    if unit & 0xfc00 == 0xd800 && text[end..].starts_with("\\u") {
        let (low, low_end) = code_unit(text, end, dialect)?;
        if low & 0xfc00 == 0xdc00 {
            code = 0x1_0000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
            end = low_end;
        }
    }
    // A minus sign gets through `int()` but not through `chr()`, whose error is not a decode error.
    let code = u32::try_from(code)
        .map_err(|_| Fault::crash(SyntaxErrorKind::BadUnicodeEscape, at, end))?;
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(end)
}

/// The value after the `\u` at `at`, and the offset after its four characters.
fn code_unit(text: &str, at: usize, dialect: Dialect) -> Result<(i32, usize), Fault> {
    let mut four = ['\0'; 4];
    let mut end = at + 2;
    let mut count = 0;
    for (slot, character) in four.iter_mut().zip(text[end..].chars()) {
        *slot = character;
        end += character.len_utf8();
        count += 1;
    }
    let unit = match dialect {
        _ if count < 4 => None,
        Dialect::Hjson => python_int_base_16(four),
        Dialect::Json => hex_digits(four),
    };
    unit.map(|unit| (unit, end)).ok_or_else(|| {
        let line = text[at..end].find('\n').map_or(end, |line| at + line);
        Fault::new(SyntaxErrorKind::BadUnicodeEscape, at, line)
    })
}

fn hex_digits(four: [char; 4]) -> Option<i32> {
    four.iter().try_fold(0, |value, &digit| Some(value << 4 | hex_value(digit)?))
}

fn hex_value(digit: char) -> Option<i32> {
    digit.to_digit(16).and_then(|value| i32::try_from(value).ok())
}

/// What `int(text, 16)` gives for four characters, except that the reader itself refuses an `x` in
/// second place. White space around, a sign, single underscores, a `0x` after a sign or a blank
/// and digits of any script all pass.
fn python_int_base_16(four: [char; 4]) -> Option<i32> {
    if let Some(value) = hex_digits(four) {
        return Some(value);
    }
    if matches!(four[1], 'x' | 'X') {
        return None;
    }
    let ascii = four.map(|character| match character {
        '\0'..='\x7e' => character,
        _ if is_space(character) => ' ',
        _ => ascii_digit(character).unwrap_or('?'),
    });
    // Python's C-level strip: the separators that `str.strip()` also removes stay here.
    let blank = |c: &char| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
    let first = ascii.iter().position(|c| !blank(c))?;
    let last = ascii.iter().rposition(|c| !blank(c))?;

    let (negative, unsigned) = match &ascii[first..=last] {
        ['-', rest @ ..] => (true, rest),
        ['+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = match unsigned {
        ['0', 'x' | 'X', '_', rest @ ..] | ['0', 'x' | 'X', rest @ ..] => rest,
        rest => rest,
    };
    let value = digits.split(|&c| c == '_').map(|run| (!run.is_empty()).then_some(run)).try_fold(
        0,
        |value, run| {
            run?.iter().try_fold(value, |value, &digit| Some(value << 4 | hex_value(digit)?))
        },
    )?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hjson(text: &str) -> Option<String> {
        quoted(text, 0, Dialect::Hjson).ok().map(|(value, _)| value)
    }

    #[test]
    fn unicode_escapes_of_hjson_go_through_pythons_int() {
        for (written, expected) in [
            (r#""\u0041""#, Some("A")),
            (r#""\u+041""#, Some("A")),
            (r#""\u 41 ""#, Some("A")),
            (r#""\u4_1 ""#, Some("A")),
            (r#""\u+0x4""#, Some("\u{4}")),
            (r#""\u 0x4""#, Some("\u{4}")),
            ("\"\\u\n41 \"", Some("A")),
            ("\"\\u\u{a0}41 \"", Some("A")),
            ("\"\\u\u{664}1  \"", Some("A")),
            (r#""\u-000""#, Some("\0")),
            (r#""\u-001""#, None),
            (r#""\u0x41""#, None),
            (r#""\u0X_4""#, None),
            (r#""\u_041""#, None),
            (r#""\u4__1""#, None),
            (r#""\u41_ ""#, None),
            (r#""\u+0x ""#, None),
            (r#""\u    ""#, None),
            ("\"\\u\u{1c}41 \"", None),
            (r#""\u+ 41""#, None),
            (r#""\u41""#, None),
        ] {
            assert_eq!(hjson(written).as_deref(), expected, "{written:?}");
        }
    }

    #[test]
    fn unicode_escapes_of_json_are_four_hexadecimal_digits() {
        let json = |text| quoted(text, 0, Dialect::Json).ok().map(|(value, _)| value);
        assert_eq!(json(r#""\u00e9""#).as_deref(), Some("é"));
        assert_eq!(json(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(json(r#""\u+041""#), None);
        assert_eq!(json(r#""\ud83d\uzzzz""#), None);
        assert_eq!(json(r#""\'""#), None);
    }

    #[test]
    fn surrogates_pair_up_or_are_replaced() {
        assert_eq!(hjson(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(hjson(r#""\ud83dx""#).as_deref(), Some("\u{fffd}x"));
        assert_eq!(hjson(r#""\ud83d\u0041""#).as_deref(), Some("\u{fffd}A"));
        assert_eq!(hjson(r#""\ude00\ud83d""#).as_deref(), Some("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn the_other_quote_is_plain_text() {
        assert_eq!(hjson(r#""it's""#).as_deref(), Some("it's"));
        assert_eq!(hjson(r#"'a "b" \' c'"#).as_deref(), Some("a \"b\" ' c"));
    }
}
