//! `zeropilot calibrate`: measures this machine with the user's own PyTorch and DeepSpeed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use zeropilot_ask::calibrate::{CalibrateProblem, ProbeQuestion, probes, profile};
use zeropilot_cluster::discovery::{Driver, visible};
use zeropilot_cluster::{DeviceKind, MachineProfile, Nvidia};
use zeropilot_doctor::Python;
use zeropilot_text::Language;
use zeropilot_view::{calibrate as words, talk};

use crate::doctor::is_on_cpu;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::machine_file;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;

/// What runs on the ranks.
const PROGRAM: &str = include_str!("probe.py");

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot calibrate
  zeropilot calibrate --python ~/envs/train --output a100-node.json
  DS_ACCELERATOR=cpu zeropilot calibrate --ranks 2 --ranks 4
  zeropilot calibrate --show-program

Tested on CPU ranks; not yet tested on GPUs.

Exit codes: 0 measured and written, 2 nothing could be measured";

/// The arguments of `zeropilot calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalibrateCommand {
    /// Set the Python interpreter or environment used for training; if omitted, the active one, or the first on PATH
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Measure with this many ranks; can be repeated; if omitted, one per GPU, or 2 on CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    ranks: Vec<u64>,
    /// Write the profile to this file; if omitted, to the location where `memory`, `plan` and `simulate` look for it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the Python measurement program without running it
    #[arg(long)]
    show_program: bool,
    #[command(flatten)]
    format: FormatOptions,
}

/// Measures and writes the profile.
pub(crate) fn run(
    command: &CalibrateCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    if command.show_program {
        output.result(PROGRAM);
        output.flush();
        return ExitStatus::Clean;
    }
    match measure(command, global, language, &mut output) {
        Ok((profile, path)) => {
            output.result(&match command.format.is_json() {
                true => written(&profile),
                false => words::human(&profile, &path, language),
            });
            output.flush();
            ExitStatus::Clean
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

fn measure(
    command: &CalibrateCommand,
    global: &GlobalOptions,
    language: Language,
    output: &mut Output,
) -> Result<(MachineProfile, PathBuf), String> {
    let environment = |name: &str| std::env::var_os(name);
    let python = Python::find(command.python.as_deref(), &environment);
    let python = python.ok_or_else(|| words::no_python(language))?.path;
    let gpus = if is_on_cpu(&environment) { 0 } else { gpus_here() };
    let kind = if gpus == 0 { DeviceKind::Cpu } else { DeviceKind::Cuda };
    let usual = if gpus == 0 { 2 } else { gpus };
    let ranks = if command.ranks.is_empty() { vec![usual] } else { command.ranks.clone() };
    let path = match &command.output {
        Some(path) => path.clone(),
        None => machine_file::usual().ok_or_else(|| words::no_home(language))?,
    };
    let mut answers = Vec::new();
    for ranks in ranks {
        if !global.quiet {
            output.say(&words::measuring(ranks, language));
        }
        let question = probes(kind, ranks);
        let answer = asked(&python, &question, kind).map_err(|error| {
            words::problem(&CalibrateProblem::Probe(error.to_string()), language)
        })?;
        answers.push((question, answer));
    }
    let profile = profile(&answers).map_err(|problem| words::problem(&problem, language))?;
    let write = || {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, written(&profile))
    };
    write().map_err(|error| talk::cannot_write(&path, &error, language))?;
    Ok((profile, path))
}

fn written(profile: &MachineProfile) -> String {
    format!("{:#}\n", serde_json::json!(profile))
}

/// GPUs that a program started here would see.
fn gpus_here() -> u64 {
    let shown = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let found = Nvidia.gpus().unwrap_or_default();
    visible(&found, shown.as_deref()).gpus.len() as u64
}

/// The answer of the probe: the last line it prints, or the last line of what went wrong.
fn asked(python: &Path, question: &ProbeQuestion, kind: DeviceKind) -> std::io::Result<String> {
    let mut program = tempfile::Builder::new().suffix(".py").tempfile()?;
    program.write_all(PROGRAM.as_bytes())?;
    let mut command = Command::new(python);
    command.arg(program.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if kind == DeviceKind::Cpu {
        command.env("DS_ACCELERATOR", "cpu");
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&serde_json::to_vec(question)?)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(std::io::Error::other(last.to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
