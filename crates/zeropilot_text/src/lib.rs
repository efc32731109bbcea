//! The two languages, and texts that exist in both.
//!
//! A message is written where it is made, both languages side by side and both checked by the compiler:
//! [`tr!`]`(language, "{n} files", "{n} 个文件")`. A text that is data, such as the sentences of a rule, is a [`Text`].

use std::fmt::{self, Write as _};

/// A language people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// By its short name: `en` or `zh`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "en" => Some(Self::English),
            "zh" => Some(Self::Chinese),
            _ => None,
        }
    }

    /// That of the locale: the first variable that is set decides, as POSIX has it.
    pub fn from_locale(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .into_iter()
            .find_map(|name| variable(name).filter(|value| !value.is_empty()));
        match locale {
            Some(locale) if locale.starts_with("zh") => Self::Chinese,
            _ => Self::English,
        }
    }
}

/// Formats a message in the language of the reader.
///
/// ```
/// use zeropilot_text::{Language, tr};
///
/// let files = 3;
/// assert_eq!(tr!(Language::English, "{files} files", "{files} 个文件"), "3 files");
/// assert_eq!(tr!(Language::Chinese, "{files} files", "{files} 个文件"), "3 个文件");
/// ```
///
/// Where the languages need other arguments, each has its own in parentheses:
/// `tr!(language, ("{} files", words), ("{n} 个文件"))`.
#[macro_export]
macro_rules! tr {
    ($language:expr, ($($en:tt)*), ($($zh:tt)*) $(,)?) => {
        match $language {
            $crate::Language::English => ::std::format!($($en)*),
            $crate::Language::Chinese => ::std::format!($($zh)*),
        }
    };
    ($language:expr, $en:literal, $zh:literal $(, $($argument:tt)*)?) => {
        match $language {
            $crate::Language::English => ::std::format!($en $(, $($argument)*)?),
            $crate::Language::Chinese => ::std::format!($zh $(, $($argument)*)?),
        }
    };
}

/// A value whose words depend on the language.
pub trait Localized {
    /// Writes it.
    ///
    /// # Errors
    ///
    /// Those of the formatter.
    fn localize(&self, language: Language, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Localized for &str {
    fn localize(&self, _: Language, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

struct InLanguage<'a, A> {
    value: &'a A,
    language: Language,
}

impl<A: Localized> fmt::Display for InLanguage<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.localize(self.language, f)
    }
}

/// A text in both languages, possibly a template with `{name}` in it.
///
/// `{{` and `}}` stand for the braces themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// In English.
    pub en: &'static str,
    /// In Chinese.
    pub zh: &'static str,
}

impl Text {
    /// A text.
    pub const fn new(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh }
    }

    /// The text in one language.
    pub fn get(self, language: Language) -> &'static str {
        match language {
            Language::English => self.en,
            Language::Chinese => self.zh,
        }
    }

    /// The template with its names replaced by `arguments`. An unknown name stays as it stands.
    pub fn fill<A: Localized>(self, language: Language, arguments: &[(&'static str, A)]) -> String {
        let template = self.get(language);
        let mut filled = String::with_capacity(template.len() + 64);
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            filled.push_str(&rest[..at]);
            let tail = &rest[at..];
            if let Some(after) = tail.strip_prefix("{{") {
                filled.push('{');
                rest = after;
            } else if let Some(after) = tail.strip_prefix("}}") {
                filled.push('}');
                rest = after;
            } else {
                rest = fill_name(tail, language, arguments, &mut filled);
            }
        }
        filled.push_str(rest);
        filled
    }

    /// The names a template asks for, in one language.
    pub fn names(self, language: Language) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut rest = self.get(language);
        while let Some(at) = rest.find('{') {
            let tail = &rest[at..];
            if let Some(after) = tail.strip_prefix("{{") {
                rest = after;
            } else {
                let end = tail.find('}').unwrap_or(tail.len());
                names.push(&tail[1..end]);
                rest = &tail[end..];
            }
        }
        names
    }
}

/// Writes what `{name}` at the start of `tail` stands for and returns what follows it.
fn fill_name<'t, A: Localized>(
    tail: &'t str,
    language: Language,
    arguments: &[(&'static str, A)],
    filled: &mut String,
) -> &'t str {
    let end = tail.find('}').map_or(tail.len(), |end| end + 1);
    let name = tail[..end].trim_start_matches('{').trim_end_matches('}');
    match arguments.iter().rev().find(|(known, _)| *known == name) {
        Some((_, argument)) => {
            // Writing to a string cannot fail.
            let _ = write!(filled, "{}", InLanguage { value: argument, language });
        }
        None => filled.push_str(&tail[..end]),
    }
    &tail[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_and_braces_kept() {
        let text = Text::new("`{key}`: write {{\"enabled\": {value}}}", "写成 {value}：`{key}`");
        let arguments = [("key", "bf16"), ("value", "true")];
        assert_eq!(text.fill(Language::English, &arguments), "`bf16`: write {\"enabled\": true}");
        assert_eq!(text.fill(Language::Chinese, &arguments), "写成 true：`bf16`");
        assert_eq!(text.names(Language::English), ["key", "value"]);
        assert_eq!(
            text.fill::<&str>(Language::English, &[]),
            "`{key}`: write {\"enabled\": {value}}"
        );
    }
}
