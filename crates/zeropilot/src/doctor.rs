//! `zeropilot doctor`: what this machine lacks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{Machines, MemoryProblem, MemoryRequest, Training, memory};
use zeropilot_cluster::Nvidia;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{decode, parse_hjson};
use zeropilot_doctor::{Circumstances, Finding, Machine, Needs, Python, examine};
use zeropilot_lint::{Report, Settings, Severity, check};
use zeropilot_text::Language;
use zeropilot_units::Bytes;
use zeropilot_view::{Layout, doctor, problem, talk};

use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::model_source;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot doctor
  zeropilot doctor ds_config.json --python ~/envs/train
  zeropilot doctor ds_config.json --model qwen3-8b

Exit codes: 0 nothing is missing, 1 errors or warnings found, 2 the config could not be read";

/// The arguments of `zeropilot doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorCommand {
    /// Check whether this config can run on this machine; if omitted, check only the machine
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Set the Python interpreter or environment used for training; if omitted, the active one, or the first on PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Compare host memory with the amount that training this model needs
    #[arg(long, value_name = "MODEL", requires = "config")]
    pub(crate) model: Option<String>,
    /// Set the GPUs of the run; if omitted, the GPUs of this machine
    #[arg(long, value_name = "GPUS", requires = "model")]
    pub(crate) gpus: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
    #[command(flatten)]
    pub(crate) training: Training,
}

/// Looks at the machine and says what is missing.
pub(crate) fn run(
    command: &DoctorCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    match answer(command, &layout) {
        Ok((text, findings)) => {
            output.result(&text);
            output.flush();
            let is_bad = |finding: &Finding| finding.severity != Severity::Note;
            if findings.iter().any(is_bad) { ExitStatus::Findings } else { ExitStatus::Clean }
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

/// Whether ranks are told to compute on CPUs.
pub(crate) fn is_on_cpu(environment: &dyn Fn(&str) -> Option<OsString>) -> bool {
    environment("DS_ACCELERATOR").is_some_and(|name| name == "cpu")
}

fn answer(command: &DoctorCommand, layout: &Layout) -> Result<(String, Vec<Finding>), String> {
    let language = layout.language;
    let config = command.config.as_deref().map(|path| read(path, language)).transpose()?;
    let needs = config.as_deref().map(needs);
    let is_unreadable = needs.as_ref().is_some_and(Option::is_none);
    let needs = needs.flatten().unwrap_or_default();
    let environment = |name: &str| std::env::var_os(name);
    let machine =
        Machine::look(command.python.as_deref(), &needs.nvme_paths, &Nvidia, &environment);
    let report = config.as_deref().map(|bytes| judged(bytes, &machine));
    let file = command.config.as_deref().zip(config.as_deref());
    if let (Some((path, bytes)), Some(report), true) = (file, &report, is_unreadable) {
        let name = path.display().to_string();
        let (bytes, report) = (bytes.to_vec(), Box::new(report.clone()));
        return Err(problem::memory(&MemoryProblem::Refused { name, bytes, report }, layout));
    }
    let host_memory = match (&command.model, file) {
        (Some(model), Some(file)) => Some(host_memory(command, file, model, layout)?),
        _ => None,
    };
    let circumstances = Circumstances {
        needs,
        report: report.as_ref(),
        host_memory,
        on_cpu: is_on_cpu(&environment),
    };
    let findings = examine(&machine, &circumstances, language);
    let text = match command.format.is_json() {
        true => format!("{:#}\n", doctor::json(&machine, &findings, language)),
        false => doctor::human(&machine, &findings, layout),
    };
    Ok((text, findings))
}

fn read(path: &Path, language: Language) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| talk::cannot_read(path, error, language))
}

/// What a config asks for, if it can be read.
fn needs(bytes: &[u8]) -> Option<Needs> {
    let document = decode(bytes).ok().and_then(|text| parse_hjson(text).ok());
    document.map(|document| Needs::of(&document))
}

/// What the installed engine says; the newest if none is.
fn judged(bytes: &[u8], machine: &Machine) -> Report {
    let engine = machine.python.as_ref().and_then(|python: &Python| python.package("deepspeed"));
    let version = engine.and_then(|engine| EngineVersion::nearest(&engine.version).ok());
    let version = version.unwrap_or(EngineVersion::NEWEST);
    let packages = machine.python.as_ref().map(Python::training_packages).unwrap_or_default();
    check(bytes, &Settings { version, packages, ..Settings::default() })
}

/// What the processes of one host need together at most, and how many they are.
fn host_memory(
    command: &DoctorCommand,
    (path, bytes): (&Path, &[u8]),
    name: &str,
    layout: &Layout,
) -> Result<(Bytes, u64), String> {
    let language = layout.language;
    let machines = Machines { gpus: command.gpus.clone(), ..Machines::default() };
    let request = MemoryRequest {
        machines: cluster_source::or_here(machines, language)?,
        config: Some(WrittenConfig { name: path.display().to_string(), bytes: bytes.to_vec() }),
        training: command.training.clone(),
        ..MemoryRequest::default()
    };
    let model = model_source::open(name, language)?;
    let memory = memory(name, model, &request).map_err(|wrong| problem::memory(&wrong, layout))?;
    let ranks = memory.answer.ranks_per_host;
    Ok((memory.answer.node().expected(), ranks))
}
