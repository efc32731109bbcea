//! `zeropilot lsp`: a language server for one editor.

use std::num::NonZeroUsize;

use clap::Args;
use zeropilot_ask::parsers;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_lint::Settings;
use zeropilot_lsp::{Options, serve};
use zeropilot_text::Language;
use zeropilot_view::talk;

use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::options::GlobalOptions;
use crate::output::Output;

/// The arguments of `zeropilot lsp`.
#[derive(Debug, Args)]
pub(crate) struct LspCommand {
    /// Speak over standard input and output, the only way there is; editors pass it
    #[arg(long)]
    pub(crate) stdio: bool,
    /// How many ranks (GPUs) the run has, unless the editor says it
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroUsize>,
    /// The engine to check for, unless the editor says it; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    /// Who reads the files, unless the editor says it; otherwise guessed for each
    #[arg(long, value_name = "NAME", value_parser = parsers::front_end())]
    pub(crate) front_end: Option<FrontEnd>,
}

/// Serves until the editor says goodbye.
pub(crate) fn run(command: &LspCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let version = match engine_version::choose(command.deepspeed_version.as_deref()) {
        Ok((version, _)) => version,
        Err(error) => {
            Output::new(false).say(&talk::unknown_version(&error, language));
            return ExitStatus::Failure;
        }
    };
    let settings = Settings {
        version,
        world_size: command.world_size.map(usize::from),
        front_end: command.front_end,
        ..Settings::default()
    };
    // The editor knows its user's language better than the terminal it was started from.
    let language = global.lang.map(|_| language);
    match serve(Options { settings, language }) {
        Ok(()) => ExitStatus::Clean,
        Err(error) => {
            let words = talk::editor_gone(&error.to_string(), language.unwrap_or_default());
            Output::new(false).say(&words);
            ExitStatus::Failure
        }
    }
}
