//! `zeropilot models`, `gpus` and `rules`: what is known, filtered by a word.

use clap::Args;
use zeropilot_lint::RULES;
use zeropilot_text::Language;
use zeropilot_view::listing::{self, Listed};

use crate::exit_status::ExitStatus;
use crate::options::FormatOptions;
use crate::output::Output;

/// The arguments of the commands that list what is known.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ListCommand {
    /// List only entries that contain this word
    #[arg(value_name = "WORD")]
    word: Option<String>,
    #[command(flatten)]
    format: FormatOptions,
}

const EXIT_CODES: &str = "Exit codes: 0 listed, 1 nothing matches";

/// Lists the models of the catalogue.
pub(crate) fn models(command: &ListCommand, language: Language) -> ExitStatus {
    list(zeropilot_model::catalogue::entries().iter(), "models", command, language)
}

/// Lists the accelerators.
pub(crate) fn gpus(command: &ListCommand, language: Language) -> ExitStatus {
    list(zeropilot_cluster::catalogue::accelerators().iter(), "gpus", command, language)
}

/// Lists the rules.
pub(crate) fn rules(command: &ListCommand, language: Language) -> ExitStatus {
    list(RULES.iter().copied(), "rules", command, language)
}

fn list<'a, T: Listed + 'a>(
    all: impl Iterator<Item = &'a T>,
    verb: &str,
    command: &ListCommand,
    language: Language,
) -> ExitStatus {
    let word = command.word.as_deref().unwrap_or_default();
    let wanted = word.to_lowercase();
    let found: Vec<&T> = all.filter(|one| one.contains(&wanted)).collect();
    let mut output = Output::new(false);
    if command.format.is_json() {
        output.result(&format!("{:#}\n", serde_json::json!(listing::json(&found, language))));
    } else if !found.is_empty() {
        output.result(&listing::table(&found, language));
    }
    output.flush();
    if found.is_empty() {
        output.say(&listing::nothing(word, verb, language));
        return ExitStatus::Findings;
    }
    ExitStatus::Clean
}
