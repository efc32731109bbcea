//! `zeropilot diagnose`: a log in, why memory ran out and what to change out.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::{Memory, MemoryRequest, memory as ask};
use zeropilot_diagnose::{Diagnosis, Reader};
use zeropilot_text::Language;
use zeropilot_view::diagnose::{self, LogReport};
use zeropilot_view::{Layout, problem, talk};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::memory::{Prepared, prepare};
use crate::options::{FormatOptions, GlobalOptions, JobOptions, LikenessOptions, MachineOption};
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot diagnose train.log
  zeropilot diagnose - < train.log
  zeropilot diagnose train.log --model Qwen/Qwen3-8B --gpus 8xA100-80G --config ds_config.json
  zeropilot diagnose slurm-4711.out --job train.sh --json

Exit codes: 0 found and explained an out-of-memory error, 1 found none in the log, 2 could not read the log, files or options";

/// The arguments of `zeropilot diagnose`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiagnoseCommand {
    /// Log of the run, all ranks and standard error included, or `-` for standard input
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Compare with the prediction for this training job: launch script, training script, YAML or directory
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Select a run by its number if the job starts several (the first is 1)
    #[arg(long, value_name = "N")]
    launch: Option<usize>,
    /// Compare with the prediction for this model: built-in name, directory, config.json or Hugging Face ID
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Use this DeepSpeed config; if omitted, zeropilot builds one from --stage, --offload and --precision
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stage", "offload", "without_deepspeed"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    format: FormatOptions,
    #[command(flatten)]
    machine: MachineOption,
    #[command(flatten)]
    request: MemoryRequest,
}

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Reads the log and says why memory ran out.
pub(crate) fn run(
    command: &DiagnoseCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    match answer(command, &layout, &mut output) {
        Ok(status) => {
            output.flush();
            status
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

fn answer(
    command: &DiagnoseCommand,
    layout: &Layout,
    output: &mut Output,
) -> Result<ExitStatus, String> {
    let language = layout.language;
    let diagnosis = read(&command.log, language)?;
    let asks = command.job.is_some() || command.model.is_some();
    let predicted = match asks && diagnosis.is_some() {
        true => Some(predict(command, layout)?),
        false => None,
    };
    if !asks && (command.config.is_some() || command.request.machines.gpus.is_some()) {
        output.say(&talk::no_effect("--gpus, --config", "`--model`, `--job`", language));
    }
    let name = match is_stdin(&command.log) {
        true => "<stdin>".into(),
        false => command.log.to_string_lossy(),
    };
    let report =
        LogReport { name: &name, diagnosis: diagnosis.as_ref(), predicted: predicted.as_ref() };
    if command.format.is_json() {
        output.result(&format!("{:#}\n", diagnose::json(&report, language)));
    } else {
        output.result(&diagnose::human(&report, layout));
    }
    Ok(if diagnosis.is_some() { ExitStatus::Clean } else { ExitStatus::Findings })
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The log piece by piece, however long it is.
fn read(path: &Path, language: Language) -> Result<Option<Diagnosis>, String> {
    let read = |mut source: Box<dyn Read>| -> io::Result<Option<Diagnosis>> {
        let mut reader = Reader::default();
        let mut piece = vec![0; PIECE];
        loop {
            match source.read(&mut piece) {
                Ok(0) => return Ok(reader.finish()),
                Ok(count) => reader.feed(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    let source: io::Result<Box<dyn Read>> = if is_stdin(path) {
        Ok(Box::new(io::stdin().lock()))
    } else {
        File::open(path).map(|file| Box::new(file) as Box<dyn Read>)
    };
    source.and_then(read).map_err(|error| talk::cannot_read(path, error, language))
}

/// What the same job is predicted to need.
fn predict(command: &DiagnoseCommand, layout: &Layout) -> Result<Memory, String> {
    let options = JobOptions {
        job: command.job.clone(),
        launch: command.launch,
        model: command.model.clone(),
        likeness: LikenessOptions::default(),
    };
    let config = command.config.as_deref();
    let Prepared { name, model, request } =
        prepare(&options, &command.request, config, &command.machine, layout)?;
    ask(&name, model, &request).map_err(|found| problem::memory(&found, layout))
}
