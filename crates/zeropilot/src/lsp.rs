//! `zeropilot lsp`: a language server for one editor.

use zeropilot_lint::{Language, Settings};
use zeropilot_lsp::{Options, serve};
use zeropilot_view::talk;

use crate::cli::{GlobalOptions, LspCommand};
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::output::Output;

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
