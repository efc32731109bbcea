//! `zeropilot accuracy`: what was predicted for the user's own runs, and what they needed.

use std::path::PathBuf;

use clap::Args;
use zeropilot_record::counted;
use zeropilot_run::accuracies;
use zeropilot_text::Language;
use zeropilot_view::Format;
use zeropilot_view::accuracy::{OwnRunsReport, export, nothing_to_export};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;
use crate::records::named_or_home;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot accuracy
  zeropilot accuracy --json
  zeropilot accuracy --export > rows.jsonl

Exit codes: 0 done, 2 the directory cannot be read";

/// The arguments of `zeropilot accuracy`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AccuracyCommand {
    /// Read the records in this directory; if omitted, in ZEROPILOT_RUNS or the user's state directory
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,
    /// Print runs on GPUs as rows of `knowledge/field`, without names, paths or times, to share in a pull request
    #[arg(long, conflicts_with = "json")]
    pub(crate) export: bool,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

/// Compares.
pub(crate) fn run(
    command: &AccuracyCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let mut output = Output::new(layout(Format::Human, global, language).color);
    let home = match named_or_home(command.runs.as_deref(), language) {
        Ok(home) => home,
        Err(problem) => {
            output.say(&problem);
            return ExitStatus::Failure;
        }
    };
    let runs = accuracies(&home);
    let counted = counted(&runs, env!("CARGO_PKG_VERSION"));
    let report = OwnRunsReport { runs: &runs, counted: &counted };
    if command.export {
        let rows: Vec<String> = (1..)
            .zip(&runs)
            .filter_map(|(number, run)| Some(format!("{}\n", export(run, number)?)))
            .collect();
        if rows.is_empty() {
            output.say(&nothing_to_export(language));
        }
        output.result(&rows.concat());
    } else if command.format.is_json() {
        output.result(&format!("{:#}\n", report.json()));
    } else {
        output.result(&report.human(language));
    }
    output.flush();
    ExitStatus::Clean
}
