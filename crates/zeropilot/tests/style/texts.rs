//! The texts that people read: strings of the crates, texts of `knowledge`, documents, words of the page.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;

use crate::pages::{Page, all as documents, below};

/// A text and where it is.
pub(crate) struct Text {
    pub(crate) place: String,
    pub(crate) words: String,
}

/// Directories of `knowledge` with texts for people.
const KNOWLEDGE: [&str; 6] = ["advisories", "concepts", "keys", "recipes", "stacks", "findings"];
/// Crates that print nothing for users.
const SILENT: [&str; 2] = ["zeropilot_oracle", "zeropilot_accuracy"];

pub(crate) fn all() -> Vec<Text> {
    let mut texts = Vec::new();
    for (path, tokens) in sources() {
        strings(&path, tokens, &mut texts);
    }
    for directory in KNOWLEDGE {
        for path in below(&format!("knowledge/{directory}")) {
            texts.extend(lines(&Page::read(&path)));
        }
    }
    texts.extend(documents().iter().flat_map(lines));
    texts.extend(lines(&Page::read("web/src/words.ts")));
    texts.retain(|text| is_sentence(&text.words) && !is_the_guide(&text.place));
    texts
}

/// Words with a space between them, or Chinese ones; the rest are names.
fn is_sentence(words: &str) -> bool {
    words.trim().contains(' ')
        || words.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter))
}

/// The guide names the words that it wants avoided.
fn is_the_guide(place: &str) -> bool {
    place.starts_with("docs/style.md") || place.starts_with("docs/zh/style.md")
}

fn lines(page: &Page) -> Vec<Text> {
    let mut is_code = false;
    let mut texts = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            texts.push(Text {
                place: format!("{}:{}", page.path, number + 1),
                words: line.to_owned(),
            });
        }
    }
    texts
}

/// Sources of the crates, without their tests.
fn sources() -> Vec<(String, TokenStream)> {
    let is_source = |path: &String| {
        path.ends_with(".rs")
            && path.contains("/src/")
            && !path.ends_with("tests.rs")
            && !path.contains("/tests/")
            && !SILENT.iter().any(|name| path.starts_with(&format!("crates/{name}/")))
    };
    let paths = below("crates").into_iter().filter(is_source);
    paths
        .map(|path| {
            let text = Page::read(&path).text;
            let tokens =
                TokenStream::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
            (path, tokens)
        })
        .collect()
}

/// An attribute, `#[…]` or `#![…]`: its group and how many tokens it takes.
fn attribute(tokens: &[TokenTree]) -> Option<(&TokenTree, usize)> {
    let is = |token: &TokenTree, mark| matches!(token, TokenTree::Punct(found) if found.as_char() == mark);
    let is_bracket = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    match tokens {
        [sharp, group, ..] if is(sharp, '#') && is_bracket(group) => Some((group, 2)),
        [sharp, inner, group, ..] if is(sharp, '#') && is(inner, '!') && is_bracket(group) => {
            Some((group, 3))
        }
        _ => None,
    }
}

/// The tokens of a file or group without attributes, and without what is compiled for tests only.
fn code(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((group, length)) = attribute(&tokens[at..]) else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        at += length;
        let words = group.to_string().replace(' ', "");
        if words.starts_with("[cfg(test)") {
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                _ => false,
            };
            at += tokens[at..].iter().position(ends).map_or(tokens.len() - at, |end| end + 1);
        } else if words.starts_with("[error") {
            // `thiserror` prints what is in it.
            kept.push(group.clone());
        }
    }
    kept
}

fn strings(path: &str, tokens: TokenStream, texts: &mut Vec<Text>) {
    for token in code(tokens) {
        match token {
            TokenTree::Group(group) => strings(path, group.stream(), texts),
            TokenTree::Literal(literal) => {
                if let Some(words) = string(&literal.to_string()) {
                    let line = literal.span().start().line;
                    texts.push(Text { place: format!("{path}:{line}"), words });
                }
            }
            _ => {}
        }
    }
}

/// What a string literal holds, its escapes undone as far as sentences need it.
fn string(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        return Some(raw.trim_matches('#').trim_matches('"').to_owned());
    }
    let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut lines = inside.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    Some(joined.replace("\\n", " ").replace("\\\"", "\""))
}

/// Texts that exist in both languages: `Text::new` in crates, `en` and `zh` in data.
pub(crate) fn pairs() -> Vec<(String, String, String)> {
    let mut pairs = Vec::new();
    for (path, tokens) in sources() {
        text_pairs(&path, tokens, &mut pairs);
    }
    for directory in ["advisories", "keys", "recipes"] {
        for path in below(&format!("knowledge/{directory}")) {
            if path.ends_with(".json") && !path.contains("/ms-swift/") {
                let value: Value = serde_json::from_str(&Page::read(&path).text).expect("JSON");
                data_pairs(&path, &value, &mut pairs);
            }
        }
    }
    assert!(pairs.len() > 2500, "{}", pairs.len());
    pairs
}

fn text_pairs(path: &str, tokens: TokenStream, pairs: &mut Vec<(String, String, String)>) {
    let tokens = code(tokens);
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        text_pairs(path, group.stream(), pairs);
        let before: String =
            tokens[at.saturating_sub(4)..at].iter().map(ToString::to_string).collect();
        if !before.ends_with("Text::new") {
            continue;
        }
        let literals: Vec<_> = group
            .stream()
            .into_iter()
            .filter_map(|token| match token {
                TokenTree::Literal(literal) => Some(literal),
                _ => None,
            })
            .collect();
        if let [english, chinese] = literals.as_slice() {
            let place = format!("{path}:{}", english.span().start().line);
            let texts = (string(&english.to_string()), string(&chinese.to_string()));
            if let (Some(english), Some(chinese)) = texts {
                pairs.push((place, english, chinese));
            }
        }
    }
}

fn data_pairs(path: &str, value: &Value, pairs: &mut Vec<(String, String, String)>) {
    if let (Some(english), Some(chinese)) = (value["en"].as_str(), value["zh"].as_str()) {
        pairs.push((path.to_owned(), english.to_owned(), chinese.to_owned()));
    }
    let inside: Vec<&Value> = match value {
        Value::Object(object) => object.values().collect(),
        Value::Array(list) => list.iter().collect(),
        _ => Vec::new(),
    };
    for value in inside {
        data_pairs(path, value, pairs);
    }
}
