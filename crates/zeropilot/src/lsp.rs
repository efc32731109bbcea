//! `zeropilot lsp`: a language server for one editor.

use clap::Args;
use zeropilot_lint::Settings;
use zeropilot_lsp::{Options, serve};
use zeropilot_text::Language;
use zeropilot_view::talk;

use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::options::{GlobalOptions, ReaderOptions};
use crate::output::Output;

pub(crate) const AFTER_HELP: &str = "\
Editor settings take precedence over these options.

Exit codes: 0 success, 2 failure";

/// The arguments of `zeropilot lsp`.
#[derive(Debug, Args)]
pub(crate) struct LspCommand {
    /// Use standard input and output (the only transport; editors pass this option)
    #[arg(long)]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) reader: ReaderOptions,
}

/// Serves until the editor says goodbye.
pub(crate) fn run(command: &LspCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let version = match engine_version::choose(command.reader.deepspeed_version.as_deref()) {
        Ok((version, _)) => version,
        Err(error) => {
            Output::new(false).say(&talk::unknown_version(&error, language));
            return ExitStatus::Failure;
        }
    };
    let settings = Settings {
        version,
        world_size: command.reader.world_size.map(usize::from),
        front_end: command.reader.front_end,
        packages: engine_version::packages(command.reader.deepspeed_version.as_deref()),
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
