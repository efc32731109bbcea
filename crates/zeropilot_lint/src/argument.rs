//! What is put into a sentence: typed, and worded only when the language is known.

use std::fmt;

use zeropilot_config::problem::{Bound, Expected};
use zeropilot_config::python::Kind;

use zeropilot_text::{Language, Localized, Text};

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// Something that reads the same in every language: a key, a number, a piece of the file.
    Plain(String),
    /// A fixed phrase.
    Phrase(Text),
    /// A phrase with pieces of its own.
    Nested(Text, Vec<(&'static str, Argument)>),
    /// A kind of value.
    Kind(Kind),
    /// What a value had to be.
    Expected(Expected),
    /// A limit.
    Bound(Bound),
    /// Several words, each in backticks.
    Words(Vec<String>),
    /// Several numbers.
    Numbers(Vec<u64>),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

impl From<i128> for Argument {
    fn from(number: i128) -> Self {
        Self::Plain(number.to_string())
    }
}

impl From<usize> for Argument {
    fn from(number: usize) -> Self {
        Self::Plain(number.to_string())
    }
}

impl From<Text> for Argument {
    fn from(text: Text) -> Self {
        Self::Phrase(text)
    }
}

impl Localized for Argument {
    fn localize(&self, language: Language, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Phrase(text) => f.write_str(text.get(language)),
            Self::Nested(text, arguments) => f.write_str(&text.fill(language, arguments)),
            Self::Kind(kind) => f.write_str(kind_name(*kind).get(language)),
            Self::Expected(expected) => write_expected(f, expected, language),
            Self::Bound(bound) => write_bound(f, *bound, language),
            Self::Words(words) => write_words(f, words, language),
            Self::Numbers(numbers) => write_numbers(f, numbers, language),
        }
    }
}

fn kind_name(kind: Kind) -> Text {
    match kind {
        Kind::Null => Text::new("null", " null"),
        Kind::Bool => Text::new("a boolean", "布尔值"),
        Kind::Int => Text::new("an integer", "整数"),
        Kind::Float => Text::new("a fractional number", "小数"),
        Kind::Str => Text::new("a string", "字符串"),
        Kind::List => Text::new("a list", "数组"),
        Kind::Dict => Text::new("an object", "对象"),
    }
}

/// In Chinese a space stands between words and code, so what begins with code begins with one.
fn write_expected(
    f: &mut fmt::Formatter<'_>,
    expected: &Expected,
    language: Language,
) -> fmt::Result {
    let text = match expected {
        Expected::Bool => Text::new("`true` or `false`", " `true` 或 `false`"),
        Expected::Int => Text::new("an integer", "整数"),
        Expected::Float => Text::new("a number", "数字"),
        Expected::Str => Text::new("a string", "字符串"),
        Expected::OneOf(words) => {
            f.write_str(Text::new("one of ", "以下之一：").get(language))?;
            return write_words(f, words, language);
        }
        Expected::Section => Text::new("an object `{…}`", "对象 `{…}`"),
        Expected::List => Text::new("a list", "数组"),
        Expected::ListOfText => Text::new("a list of strings", "字符串数组"),
        Expected::ListOfPositiveInts => {
            Text::new("a list of positive integers", "由正整数组成的数组")
        }
        Expected::Nothing => Text::new("a value that JSON cannot express", " JSON 无法表示的值"),
        Expected::Null => Text::new("`null`", " `null`"),
        Expected::NotEmpty => Text::new("a non-empty value", "非空的值"),
    };
    f.write_str(text.get(language))
}

fn write_bound(f: &mut fmt::Formatter<'_>, bound: Bound, language: Language) -> fmt::Result {
    let (words, limit) = match bound {
        Bound::Above(limit) => (Text::new("greater than", "大于"), limit),
        Bound::AtLeast(limit) => (Text::new("at least", "不小于"), limit),
        Bound::Below(limit) => (Text::new("less than", "小于"), limit),
        Bound::AtMost(limit) => (Text::new("at most", "不大于"), limit),
    };
    write!(f, "{} {limit}", words.get(language))
}

/// How many words or numbers are listed before the rest is counted.
const LISTED: usize = 12;

fn write_words(f: &mut fmt::Formatter<'_>, words: &[String], language: Language) -> fmt::Result {
    write_list(f, words.iter().map(|word| format!("`{word}`")), words.len(), language)
}

fn write_numbers(f: &mut fmt::Formatter<'_>, numbers: &[u64], language: Language) -> fmt::Result {
    write_list(f, numbers.iter().map(u64::to_string), numbers.len(), language)
}

fn write_list(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = String>,
    count: usize,
    language: Language,
) -> fmt::Result {
    let separator = Text::new(", ", "、").get(language);
    for (index, item) in items.take(LISTED).enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        f.write_str(&item)?;
    }
    match (count.saturating_sub(LISTED), language) {
        (0, _) => Ok(()),
        (more, Language::English) => write!(f, " and {more} more"),
        (_, Language::Chinese) => write!(f, " 等共 {count} 个"),
    }
}
