//! The words of the style guide.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::pages::Page;

/// A word to avoid.
pub(crate) struct Avoided {
    pub(crate) pattern: Regex,
    pub(crate) shown: String,
    pub(crate) write: String,
}

/// A file that may use such words.
pub(crate) struct Allowed {
    pub(crate) file: String,
    /// The word, or all of them.
    pub(crate) shown: Option<String>,
}

pub(crate) struct Words {
    glossary: Vec<[String; 3]>,
    pub(crate) avoid: Vec<Avoided>,
    pub(crate) allow: Vec<Allowed>,
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}")).to_owned()
}

impl Words {
    pub(crate) fn read() -> Self {
        let words: Value =
            serde_json::from_str(&Page::read("knowledge/style/words.json").text).expect("JSON");
        let list = |name: &str| words[name].as_array().expect("a list").clone();
        let pattern = |word: &Value| {
            RegexBuilder::new(&text(word, "pattern"))
                .case_insensitive(true)
                .build()
                .expect("a pattern")
        };
        Self {
            glossary: list("glossary")
                .iter()
                .map(|row| ["concept", "en", "zh"].map(|name| text(row, name)))
                .collect(),
            avoid: list("avoid")
                .iter()
                .map(|word| Avoided {
                    pattern: pattern(word),
                    shown: text(word, "shown"),
                    write: text(word, "write"),
                })
                .collect(),
            allow: list("allow")
                .iter()
                .map(|allowed| Allowed {
                    file: text(allowed, "file"),
                    shown: allowed["shown"].as_str().map(str::to_owned),
                })
                .collect(),
        }
    }

    pub(crate) fn allows(&self, place: &str, word: &Avoided) -> bool {
        self.allow.iter().any(|allowed| {
            place.starts_with(&allowed.file)
                && allowed.shown.as_ref().is_none_or(|shown| *shown == word.shown)
        })
    }

    pub(crate) fn glossary(&self, head: &str) -> String {
        let rows = self.glossary.iter().map(|row| format!("| {} |\n", row.join(" | ")));
        format!("| {head} |\n| --- | --- | --- |\n{}", rows.collect::<String>())
    }

    pub(crate) fn table(&self, head: &str) -> String {
        let rows = self.avoid.iter().map(|word| format!("| {} | {} |\n", word.shown, word.write));
        format!("| {head} |\n| --- | --- |\n{}", rows.collect::<String>())
    }
}

/// What of a text is searched: neither code in backticks nor the names of values in braces.
pub(crate) fn without_code(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let mut plain = String::new();
    let mut depth = 0_u32;
    for letter in outside.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}
