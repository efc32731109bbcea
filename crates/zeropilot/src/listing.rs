//! `zeropilot models`, `gpus`, `rules` and `advisories`: what is known, filtered by a word.

use clap::Args;
use zeropilot_lint::RULES;
use zeropilot_lint::advisory::{Advisory, advisories as all_advisories, advisory};
use zeropilot_text::Language;
use zeropilot_view::listing::{self, Listed};
use zeropilot_view::{Format, advisory as page};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
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

/// Lists the advisories, or shows the one that is named.
pub(crate) fn advisories(
    command: &ListCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let named = command.word.as_deref().and_then(advisory);
    match named.filter(|_| layout.format != Format::Json) {
        Some(advisory) => {
            let mut output = Output::new(layout.color);
            output.result(&page::human(advisory, &layout));
            output.flush();
            ExitStatus::Clean
        }
        None => {
            let all: Vec<&Advisory> = all_advisories().iter().collect();
            list(all.iter(), "advisories", command, language)
        }
    }
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
