//! `zeropilot completions` and `zeropilot man`: what shells and `man` are told, made from the definition of the arguments.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use zeropilot_text::{Language, tr};
use zeropilot_view::{escaped, system};

use crate::exit_status::ExitStatus;
use crate::output::Output;

/// The arguments of `zeropilot completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsCommand {
    /// Shell to write completions for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The arguments of `zeropilot man`.
#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// Directory for the manual pages; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "Examples:
  zeropilot completions bash > ~/.local/share/bash-completion/completions/zeropilot
  zeropilot completions zsh > ~/.zfunc/_zeropilot
  zeropilot completions fish > ~/.config/fish/completions/zeropilot.fish

Exit codes: 0 success, 2 failure";

/// Writes the completions of a shell.
pub(crate) fn completions(command: &CompletionsCommand, mut definition: Command) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut definition, "zeropilot", &mut script);
    let mut output = Output::new(false);
    output.result(&String::from_utf8_lossy(&script));
    output.flush();
    ExitStatus::Clean
}

/// Writes a page for the command and one for each verb.
pub(crate) fn man(command: &ManCommand, definition: Command, language: Language) -> ExitStatus {
    let written = std::fs::create_dir_all(&command.directory)
        .and_then(|()| clap_mangen::generate_to(definition, &command.directory));
    match written {
        Ok(()) => ExitStatus::Clean,
        Err(error) => {
            let place = command.directory.to_string_lossy();
            let (place, error) = (escaped(&place), system::failure(&error, language));
            Output::new(false).say(&tr!(
                language,
                "error: cannot write manual pages to {place}: {error}",
                "错误：无法把手册页写进 {place}：{error}"
            ));
            ExitStatus::Failure
        }
    }
}
