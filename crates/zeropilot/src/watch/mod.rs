//! `zeropilot watch`: how a run or the machine stands, on a screen, as text, as lines of JSON, or for monitoring.

mod draw;
mod screen;
mod serve;
mod source;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use zeropilot_text::Language;
use zeropilot_view::Format;
use zeropilot_view::run::watch::{Glyphs, json, machine, text};

use self::draw::Brush;
use self::source::{Seen, Source};
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct WatchCommand {
    /// Name or directory of a run; if omitted, the last run, or this machine if there is none
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Watch this machine: GPUs, host memory, training processes
    #[arg(long, conflicts_with = "run")]
    pub(crate) machine: bool,
    /// Print the state once and exit
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
    /// Serve OpenMetrics over HTTP at a loopback address such as 127.0.0.1:9400, until Ctrl-C
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["once", "json", "output_format"])]
    pub(crate) openmetrics: Option<String>,
}

/// How often one looks.
const PACE: Duration = Duration::from_secs(1);

/// Watches a run until it ends, or until asked to stop.
pub(crate) fn run(
    command: &WatchCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(Format::Human, global, language);
    let mut output = Output::new(layout.color);
    let mut source = match Source::open(command.run.as_deref(), command.machine, language) {
        Ok(source) => source,
        Err(problem) => {
            output.say(&problem);
            return ExitStatus::Failure;
        }
    };
    if let Some(address) = &command.openmetrics {
        drop(output);
        return match serve::serve(address, &mut source, language) {
            Ok(()) => ExitStatus::Clean,
            Err(problem) => {
                Output::new(false).say(&problem);
                ExitStatus::Failure
            }
        };
    }
    let glyphs = glyphs(language);
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if is_terminal && !command.once && !command.format.is_json() {
        drop(output);
        let brush = Brush { color: layout.color, glyphs, language };
        return match screen::show(&mut source, brush) {
            Ok(()) => ExitStatus::Clean,
            Err(error) => {
                Output::new(false).say(&screen::problem(&error, language));
                ExitStatus::Failure
            }
        };
    }
    loop {
        let seen = source.look();
        output.result(&match &seen {
            Seen::Run(look) if command.format.is_json() => format!("{}\n", json(look)),
            Seen::Machine(look) if command.format.is_json() => format!("{}\n", machine::json(look)),
            Seen::Run(look) => text(look, layout.width.unwrap_or(80), glyphs, language),
            Seen::Machine(look) => {
                machine::text(look, layout.width.unwrap_or(80), glyphs, language)
            }
        });
        output.flush();
        if command.once || !command.format.is_json() || !seen.goes_on() || output.is_closed() {
            return ExitStatus::Clean;
        }
        thread::sleep(PACE);
    }
}

/// Chinese is not to be had without Unicode, so there the locale is not asked.
fn glyphs(language: Language) -> Glyphs {
    match language {
        Language::Chinese => Glyphs::Blocks,
        Language::English => Glyphs::from_locale(|name| std::env::var(name).ok()),
    }
}
