//! `zeropilot watch`: how a run stands, once or again and again.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use zeropilot_lint::Language;
use zeropilot_run::{Record, Standing};
use zeropilot_view::Format;
use zeropilot_view::run::watch::{Look, json, text};

use crate::cli::GlobalOptions;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::output::Output;
use crate::runs::find;

/// The arguments.
#[derive(Debug, Args)]
pub(crate) struct WatchCommand {
    /// A run by its name or directory; otherwise the last
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Look once and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Write JSON, once
    #[arg(long)]
    pub(crate) json: bool,
}

const PACE: Duration = Duration::from_secs(1);

/// Watches a run until it ends.
pub(crate) fn run(
    command: &WatchCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(Format::Human, global, language);
    let mut output = Output::new(layout.color);
    let is_terminal = std::io::stdout().is_terminal();
    loop {
        let record = match find(command.run.as_deref(), language) {
            Ok(record) => record,
            Err(problem) => {
                output.say(&problem);
                return ExitStatus::Failure;
            }
        };
        let is_running = record.standing() == Standing::Running;
        let look = look(&record, is_running);
        if command.json {
            output.result(&format!("{:#}\n", json(&look)));
        } else {
            let width = layout.width.unwrap_or(80);
            if is_terminal && !command.once {
                // Home, and nothing below: the screen stays still.
                output.result("\u{1b}[H\u{1b}[J");
            }
            output.result(&text(&look, width, language));
        }
        output.flush();
        if command.once || command.json || !is_running || !is_terminal || output.is_closed() {
            return ExitStatus::Clean;
        }
        let _ = std::io::stdout().flush();
        thread::sleep(PACE);
    }
}

fn look(record: &Record, is_running: bool) -> Look {
    let events = record.events().map(Iterator::collect).unwrap_or_default();
    Look { info: record.info.clone(), verdict: record.verdict.clone(), is_running, events }
}
