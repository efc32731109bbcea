//! `int("…")`, `float("…")` and `repr(float)` as CPython has them.

use num_bigint::BigInt;

use super::PyValue;
use crate::syntax::MAX_INT_DIGITS;
use crate::syntax::python_text::{ascii_digit, is_space};

/// `int(text)` in base ten, or `None` where Python raises `ValueError`.
pub fn parse_int(text: &str) -> Option<BigInt> {
    let text = strip(text);
    let (negative, digits) = split_sign(text);
    let digits = ungroup(digits)?;
    if digits.is_empty()
        || digits.len() > MAX_INT_DIGITS
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let value: BigInt = digits.parse().ok()?;
    Some(if negative { -value } else { value })
}

/// `float(text)`, or `None` where Python raises `ValueError`.
pub fn parse_float(text: &str) -> Option<f64> {
    let text = strip(text);
    let (negative, body) = split_sign(text);
    let lower = body.to_ascii_lowercase();
    let magnitude = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            let body = ungroup(body)?;
            // Rust's own parser also takes the words handled above; Python takes only digits from here on.
            if !body.bytes().all(|byte| {
                byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
            }) {
                return None;
            }
            if body.starts_with(['+', '-']) {
                return None;
            }
            body.parse::<f64>().ok()?
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// CPython looks for Unicode white space only in text that is not plain ASCII.
fn strip(text: &str) -> &str {
    if text.is_ascii() {
        text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}'])
    } else {
        text.trim_matches(is_space)
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Removes single underscores between digits and turns Unicode decimal digits into ASCII ones.
fn ungroup(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut previous_digit = false;
    let mut pending_underscore = false;
    for character in text.chars() {
        if character == '_' {
            if !previous_digit || pending_underscore {
                return None;
            }
            pending_underscore = true;
            continue;
        }
        let digit = ascii_digit(character);
        if pending_underscore && digit.is_none() {
            return None;
        }
        pending_underscore = false;
        previous_digit = digit.is_some();
        out.push(digit.unwrap_or(character));
    }
    (!pending_underscore).then_some(out)
}

/// `repr(value)`: the shortest digits that read back as the same number, in Python's layout.
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// `str(value)`.
pub fn python_str(value: &PyValue) -> String {
    match value {
        PyValue::Str(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
fn repr(value: &PyValue) -> String {
    match value {
        PyValue::None => "None".to_owned(),
        PyValue::Bool(true) => "True".to_owned(),
        PyValue::Bool(false) => "False".to_owned(),
        PyValue::Int(value) => value.to_string(),
        PyValue::Float(value) => float_repr(*value),
        PyValue::Str(text) => text_repr(text),
        PyValue::List(items) => {
            let items: Vec<String> = items.iter().map(repr).collect();
            format!("[{}]", items.join(", "))
        }
        PyValue::Dict(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(key, value)| format!("{}: {}", text_repr(key), repr(value)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int_accepts_what_python_accepts() {
        for (text, value) in
            [("12", 12), (" 12\n", 12), ("+1_000", 1000), ("-0", 0), ("007", 7), ("١٢", 12)]
        {
            assert_eq!(parse_int(text), Some(value.into()), "{text:?}");
        }
        for text in ["", "\u{1c}5", "1.0", "1e3", "_1", "1_", "1__0", "- 1", "0x10", "one"] {
            assert_eq!(parse_int(text), None, "{text:?}");
        }
    }

    #[test]
    fn float_accepts_what_python_accepts() {
        for (text, value) in [
            ("1e3", 1000.0),
            (" .5 ", 0.5),
            ("5.", 5.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("1_0.0_1", 10.01),
        ] {
            assert_eq!(parse_float(text), Some(value), "{text:?}");
        }
        for text in ["", ".", "e5", "--1", "+-1", "1_.0", "infinit"] {
            assert_eq!(parse_float(text), None, "{text:?}");
        }
    }

    /// Expected texts are CPython 3.11's `repr`.
    #[test]
    fn float_repr_is_pythons() {
        for (value, text) in [
            (1.0, "1.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(float_repr(value), text);
        }
    }
}
