//! Which language to speak, decided before anything is said.

use std::ffi::OsString;

use zeropilot_text::Language;

/// `--lang` if it is given and known, else what the project has settled, else the locale.
pub(crate) fn choose(
    arguments: &[OsString],
    settled: Option<Language>,
    environment: impl Fn(&str) -> Option<String>,
) -> Language {
    from_arguments(arguments).or(settled).unwrap_or_else(|| Language::from_locale(environment))
}

fn from_arguments(arguments: &[OsString]) -> Option<Language> {
    let mut arguments = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    while let Some(argument) = arguments.next() {
        let name = match argument.split_once('=') {
            Some(("--lang", name)) => Some(name),
            _ if argument == "--lang" => arguments.next(),
            _ if argument == "--" => return None,
            _ => None,
        };
        if let Some(language) = name.and_then(Language::from_name) {
            return Some(language);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(arguments: &[&str], environment: &[(&str, &str)]) -> Language {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        choose(&arguments, None, |name| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_flag_wins_over_the_locale() {
        let chinese = [("LANG", "zh_CN.UTF-8")];
        assert_eq!(language(&["zeropilot"], &chinese), Language::Chinese);
        assert_eq!(language(&["zeropilot", "--lang", "en"], &chinese), Language::English);
        assert_eq!(language(&["zeropilot", "check", "--lang=zh"], &[]), Language::Chinese);
        assert_eq!(language(&["zeropilot"], &[]), Language::English);
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let mixed = [("LC_ALL", ""), ("LC_MESSAGES", "en_US"), ("LANG", "zh_CN")];
        assert_eq!(language(&["zeropilot"], &mixed), Language::English);
        assert_eq!(
            language(&["zeropilot"], &[("LC_ALL", "zh_TW"), ("LANG", "C")]),
            Language::Chinese
        );
    }
}
