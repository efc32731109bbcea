//! The `zeropilot` command.
//!
//! Arguments, files, streams and exit codes are here; what is true about a config and how it is
//! said are not. Supervising runs needs what only Linux has (subreapers, `/proc`): elsewhere those verbs are missing.

#[cfg(target_os = "linux")]
mod accuracy;
mod adoption;
mod calibrate;
mod check;
mod checkpoint;
mod cli;
mod cluster_source;
mod color;
mod diagnose;
mod doctor;
mod engine_version;
mod exit_status;
mod explain;
mod files;
mod help_zh;
mod job;
mod job_source;
mod language;
mod layout;
mod listing;
mod lsp;
mod machine_file;
mod manner;
mod mcp;
mod memory;
mod mend;
mod model_source;
mod new;
mod options;
mod output;
mod own_runs;
mod parse;
mod piece;
mod plan;
mod plan_diff;
mod progress;
mod project;
mod rechecking;
#[cfg(target_os = "linux")]
mod records;
mod rule;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod runs;
mod schema;
mod session;
mod shell_files;
mod simulate;
mod usage;
mod value_error;
#[cfg(target_os = "linux")]
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use cli::Command;
use exit_status::ExitStatus;
use zeropilot_view::system;

/// Checking is many small allocations on several threads, which this one serves faster than most
/// systems' own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    #[cfg(target_os = "linux")]
    if let [_, word, command @ ..] = arguments.as_slice()
        && word == run::GUARD
    {
        return ExitCode::from(zeropilot_run::guard(command));
    }
    let project = project::find(&arguments);
    let settled = project.as_ref().ok().and_then(|found| found.project.language);
    let language = language::choose(&arguments, settled, |name| std::env::var(name).ok());
    let status = match parse::parse(arguments, language) {
        Ok(cli) => match cli.command {
            Command::Check(command) => check::run(&command, &cli.global, language, project),
            Command::Plan(command) => plan::run(&command, &cli.global, language),
            Command::Memory(command) => memory::run(&command, &cli.global, language),
            Command::Simulate(command) => simulate::run(&command, &cli.global, language),
            Command::Rule(command) => rule::run(&command, &cli.global, language),
            Command::Rules(command) => listing::rules(&command, language),
            Command::Advisories(command) => listing::advisories(&command, &cli.global, language),
            Command::Models(command) => listing::models(&command, language),
            Command::Gpus(command) => listing::gpus(&command, language),
            Command::Explain(command) => explain::run(&command, &cli.global, language),
            #[cfg(target_os = "linux")]
            Command::Run(command) => run::run(&command, &cli.global, language),
            #[cfg(target_os = "linux")]
            Command::Accuracy(command) => accuracy::run(&command, &cli.global, language),
            #[cfg(target_os = "linux")]
            Command::Runs(command) => runs::list(&command, &cli.global, language),
            #[cfg(target_os = "linux")]
            Command::Report(command) => runs::report(&command, &cli.global, language),
            #[cfg(target_os = "linux")]
            Command::Watch(command) => watch::run(&command, &cli.global, language),
            Command::New(command) => new::run(&command, &cli.global, language),
            Command::Schema(command) => schema::run(&command, &cli.global, language),
            Command::Calibrate(command) => calibrate::run(&command, &cli.global, language),
            Command::Diagnose(command) => diagnose::run(&command, &cli.global, language),
            Command::Doctor(command) => doctor::run(&command, &cli.global, language),
            Command::Lsp(command) => lsp::run(&command, &cli.global, language),
            Command::Mcp => mcp::run(language),
            Command::Completions(command) => {
                shell_files::completions(&command, parse::definition(language))
            }
            Command::Man(command) => {
                shell_files::man(&command, parse::definition(language), language)
            }
        },
        Err(error) => {
            // Nothing is left to be told if the terminal is gone.
            if error.use_stderr() {
                let _ = usage::print(&error, language);
                ExitStatus::Failure
            } else {
                output::note(error.print());
                ExitStatus::Clean
            }
        }
    };
    match output::lost() {
        Some(error) => {
            let _ = writeln!(std::io::stderr(), "{}", system::results_lost(error, language));
            ExitStatus::Failure
        }
        None => status,
    }
    .into()
}
