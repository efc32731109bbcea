//! `zeropilot completions` and `zeropilot man`: what shells and `man` are told, made from the definition of the arguments.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use zeropilot_lint::Language;
use zeropilot_view::{escaped, system};

use crate::cli;
use crate::exit_status::ExitStatus;
use crate::output::Output;

/// The arguments of `zeropilot completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The arguments of `zeropilot man`.
#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// Where they go; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "Examples:
  zeropilot completions bash > ~/.local/share/bash-completion/completions/zeropilot
  zeropilot completions zsh > ~/.zfunc/_zeropilot
  zeropilot completions fish > ~/.config/fish/completions/zeropilot.fish

Exit codes: 0 done, 2 it could not be done";

/// Writes the completions of a shell.
pub(crate) fn completions(command: &CompletionsCommand, language: Language) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(
        command.shell,
        &mut cli::definition(language),
        "zeropilot",
        &mut script,
    );
    let mut output = Output::new(false);
    output.result(&String::from_utf8_lossy(&script));
    output.flush();
    ExitStatus::Clean
}

/// Writes a page for the command and one for each verb.
pub(crate) fn man(command: &ManCommand, language: Language) -> ExitStatus {
    let written = std::fs::create_dir_all(&command.directory)
        .and_then(|()| clap_mangen::generate_to(cli::definition(language), &command.directory));
    match written {
        Ok(()) => ExitStatus::Clean,
        Err(error) => {
            let place = command.directory.to_string_lossy();
            let (place, error) = (escaped(&place), system::failure(&error, language));
            Output::new(false).say(&match language {
                Language::English => format!("error: no manual pages in {place}: {error}"),
                Language::Chinese => format!("错误：无法把手册页写进 {place}：{error}"),
            });
            ExitStatus::Failure
        }
    }
}
