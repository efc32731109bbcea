//! Whether to use colours.

use std::io::IsTerminal;

use clap::ValueEnum;

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless an environment variable turns colors off.
    #[default]
    Auto,
    /// Always, also in files and pipes.
    Always,
    /// Never.
    Never,
}

/// Decides for standard output.
pub(crate) fn for_stdout(choice: ColorChoice) -> bool {
    decide(choice, std::io::stdout().is_terminal(), |name| std::env::var(name).ok())
}

/// The flag first, then `NO_COLOR`, then `CLICOLOR_FORCE`, then the terminal.
fn decide(
    choice: ColorChoice,
    is_terminal: bool,
    environment: impl Fn(&str) -> Option<String>,
) -> bool {
    let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if is_set("NO_COLOR") => false,
        ColorChoice::Auto if environment("CLICOLOR_FORCE").is_some_and(|value| value != "0") => {
            true
        }
        ColorChoice::Auto => is_terminal && environment("TERM").as_deref() != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_beats_the_environment_which_beats_the_terminal() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let forced = |name: &str| (name == "CLICOLOR_FORCE").then(|| "1".to_owned());
        assert!(decide(ColorChoice::Auto, true, none));
        assert!(!decide(ColorChoice::Auto, false, none));
        assert!(!decide(ColorChoice::Auto, true, no_color));
        assert!(decide(ColorChoice::Always, false, no_color));
        assert!(decide(ColorChoice::Auto, false, forced));
        assert!(!decide(ColorChoice::Never, true, forced));
    }
}
