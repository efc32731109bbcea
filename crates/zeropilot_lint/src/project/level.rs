//! How a project rates findings: `[severity]`, by codes of rules or their beginnings.
//!
//! What is rated changes how findings are told and what makes a check fail. What becomes of the run is
//! told by the verdict, which stays.

use std::ops::Range;

use toml::de::DeValue;
use zeropilot_text::Text;

use super::{Reader, Value};
use crate::diagnostic::Diagnostic;
use crate::registry::RULES;
use crate::rule::Severity;

/// How findings of some rules are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// With this severity.
    As(Severity),
    /// Not at all.
    Off,
}

impl Level {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("error", Self::As(Severity::Error)),
        ("warning", Self::As(Severity::Warning)),
        ("note", Self::As(Severity::Note)),
        ("off", Self::Off),
    ];
}

/// A table of codes, or beginnings of codes, with their levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels(Vec<(String, Level)>);

impl Levels {
    /// The level of a rule: the longest beginning of its code decides.
    pub fn of(&self, code: &str) -> Option<Level> {
        let fitting = self.0.iter().filter(|(part, _)| code.starts_with(part.as_str()));
        fitting.max_by_key(|(part, _)| part.len()).map(|(_, level)| *level)
    }

    /// Whether it rates nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The codes of all rules that are off.
    pub(super) fn off(&self) -> impl Iterator<Item = &'static str> {
        let codes = RULES.iter().map(|rule| rule.code);
        codes.filter(|code| self.of(code) == Some(Level::Off))
    }
}

/// Tells findings with the levels that are looked up by their codes.
pub(super) fn rate(found: &mut Vec<Diagnostic>, level: impl Fn(&str) -> Option<Level>) {
    found.retain_mut(|found| match level(found.rule.code) {
        None => true,
        Some(Level::As(severity)) => {
            found.rate(severity);
            true
        }
        Some(Level::Off) => false,
    });
}

impl Reader {
    /// Reads a table of levels.
    pub(super) fn levels(&mut self, value: &Value<'_>) -> Levels {
        let DeValue::Table(table) = value.get_ref() else {
            self.no_table(
                value,
                Text::new(
                    "this must be a table with rule codes as keys",
                    "只能是以规则编号为键的表",
                ),
                Text::new(
                    "write `[severity]`, and below it `K26 = \"note\"`",
                    "写 `[severity]`，下一行写 `K26 = \"note\"`",
                ),
            );
            return Levels::default();
        };
        let mut table: Vec<_> = table.iter().collect();
        table.sort_by_key(|(code, _)| code.span().start);
        let mut levels: Vec<(String, Level)> = Vec::new();
        for (key, value) in table {
            let code = self.code(key.get_ref(), key.span());
            let level = self.one_of(value, &Level::ALL);
            let Some((code, level)) = code.zip(level) else { continue };
            if levels.iter().any(|(known, _)| *known == code) {
                self.rated_twice(key.span(), &code);
            }
            levels.push((code, level));
        }
        Levels(levels)
    }

    /// `k05` and `K05` are different keys of TOML.
    fn rated_twice(&mut self, span: Range<usize>, code: &str) {
        let message = Text::new("`{code}` is already in this table", "`{code}` 在这个表里已经写过");
        let help = Text::new("keep one of these lines", "只保留其中一行");
        self.problem(span, message, help, "code", code);
    }
}
