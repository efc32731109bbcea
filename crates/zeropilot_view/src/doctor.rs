//! What a machine lacks, for people and for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use zeropilot_cluster::discovery::{FoundGpu, visible};
use zeropilot_doctor::{Finding, Limit, Machine};
use zeropilot_lint::Severity;
use zeropilot_text::{Language, Text, tr};

use crate::explain::Page;
use crate::json::value;
use crate::{Layout, escaped};

/// Packages that are named whether or not anything is wrong with them.
const NAMED: [&str; 4] = ["deepspeed", "torch", "transformers", "accelerate"];

/// What is there, then what is missing.
pub fn human(machine: &Machine, findings: &[Finding], layout: &Layout) -> String {
    let language = layout.language;
    let mut page = Page::new(layout);
    if !layout.quiet {
        page.title(Text::new("This machine", "本机").get(language));
        page.rows(2, &present(machine, language));
        page.blank();
    }
    list(&mut page, findings, language);
    page.line(&closing(findings, language));
    page.into_text()
}

/// What is missing, alone.
pub fn lacking(findings: &[Finding], layout: &Layout) -> String {
    let mut page = Page::new(layout);
    list(&mut page, findings, layout.language);
    page.into_text()
}

fn list(page: &mut Page, findings: &[Finding], language: Language) {
    for finding in findings {
        let (severity, colon) =
            (name(finding.severity).get(language), Text::new(": ", "：").get(language));
        let head = format!("{severity}[{}]{colon}{}", finding.name, finding.message(language));
        page.warning(0, &escaped(&head));
        let mut rows = vec![
            (Text::new("why", "原因").get(language), finding.why(language)),
            (Text::new("help", "建议").get(language), finding.help(language)),
        ];
        if let Some(command) = finding.command {
            rows.push((Text::new("run", "命令").get(language), command.to_owned()));
        }
        page.rows(2, &rows);
        page.blank();
    }
}

fn name(severity: Severity) -> Text {
    match severity {
        Severity::Error => Text::new("error", "错误"),
        Severity::Warning => Text::new("warning", "警告"),
        Severity::Note => Text::new("note", "提示"),
    }
}

fn present(machine: &Machine, language: Language) -> Vec<(&'static str, String)> {
    let label = |en, zh| Text::new(en, zh).get(language);
    let none = || label("none", "无").to_owned();
    let mut rows = vec![(
        label("python", "Python"),
        machine.python.as_ref().map_or_else(none, |python| python.path.display().to_string()),
    )];
    for package in NAMED {
        let version = machine.python.as_ref().and_then(|python| python.package(package));
        rows.push((package, version.map_or_else(none, |package| package.version.clone())));
    }
    rows.push((label("GPUs", "GPU"), gpus(machine).unwrap_or_else(none)));
    rows.push((
        label("host memory", "主机内存"),
        machine.ram.map_or_else(none, |ram| ram.to_string()),
    ));
    if let Some(shm) = machine.shm {
        rows.push(("/dev/shm", shm.total.to_string()));
    }
    let tools = machine.tools;
    let tools = [
        ("c++", tools.cxx),
        ("nvcc", tools.nvcc),
        ("ninja", tools.ninja),
        ("libaio", tools.libaio),
    ];
    let tools: Vec<&str> =
        tools.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    rows.push((
        label("build tools", "编译工具"),
        if tools.is_empty() { none() } else { tools.join(", ") },
    ));
    rows
}

/// "8 × NVIDIA H100 80GB HBM3".
fn gpus(machine: &Machine) -> Option<String> {
    let gpus = machine.gpus.as_ref().ok().filter(|gpus| !gpus.is_empty())?;
    let seen = visible(gpus, machine.visible_devices.as_deref()).gpus;
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for gpu in seen {
        match counted.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, count)) => *count += 1,
            None => counted.push((&gpu.name, 1)),
        }
    }
    let words: Vec<String> =
        counted.iter().map(|(name, count)| format!("{count} × {}", escaped(name))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn closing(findings: &[Finding], language: Language) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => tr!(language, "nothing is missing", "没有缺失"),
        (_, _) => tr!(
            language,
            ("{}, {}", plural(errors, "error"), plural(warnings, "warning")),
            ("{errors} 个错误，{warnings} 个警告")
        ),
    }
}

/// What is there, and what is missing.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Diagnosis<'a> {
    machine: MachineFacts<'a>,
    findings: Vec<MachineFinding>,
}

/// What is there; `memlock` and `open_files` are numbers, `unlimited` or unknown.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MachineFacts<'a> {
    python: Option<String>,
    packages: BTreeMap<&'static str, Option<&'a str>>,
    gpus: Option<Vec<MachineGpu<'a>>>,
    cuda_visible_devices: Option<&'a str>,
    ram: Option<u64>,
    memlock: Json,
    open_files: Json,
    shm: Option<u64>,
    tools: BuildTools,
}

/// A GPU of this machine.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MachineGpu<'a> {
    name: &'a str,
    uuid: &'a str,
    memory: u64,
}

/// Whether tools that compile DeepSpeed's operators are there.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BuildTools {
    cxx: bool,
    nvcc: bool,
    ninja: bool,
    libaio: bool,
}

/// Something missing, with its reason, its remedy and a command.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MachineFinding {
    name: &'static str,
    severity: &'static str,
    message: String,
    why: String,
    help: String,
    command: Option<&'static str>,
}

impl<'a> From<&'a FoundGpu> for MachineGpu<'a> {
    fn from(gpu: &'a FoundGpu) -> Self {
        Self { name: &gpu.name, uuid: &gpu.uuid, memory: gpu.memory.0 }
    }
}

/// Both as one object. Keys are added, never changed.
pub fn json(machine: &Machine, findings: &[Finding], language: Language) -> Json {
    let package = |name: &'static str| {
        let found = machine.python.as_ref().and_then(|python| python.package(name));
        (name, found.map(|package| package.version.as_str()))
    };
    let limit = |limit: Limit| match limit {
        Limit::Unlimited => Json::from("unlimited"),
        Limit::AtMost(most) => Json::from(most),
        Limit::Unknown => Json::Null,
    };
    let tools = machine.tools;
    let finding = |finding: &Finding| MachineFinding {
        name: finding.name,
        severity: finding.severity.name(),
        message: finding.message(language),
        why: finding.why(language),
        help: finding.help(language),
        command: finding.command,
    };
    value(&Diagnosis {
        machine: MachineFacts {
            python: machine.python.as_ref().map(|python| python.path.display().to_string()),
            packages: NAMED.map(package).into(),
            gpus: machine
                .gpus
                .as_ref()
                .ok()
                .map(|gpus| gpus.iter().map(MachineGpu::from).collect()),
            cuda_visible_devices: machine.visible_devices.as_deref(),
            ram: machine.ram.map(|ram| ram.0),
            memlock: limit(machine.memlock),
            open_files: limit(machine.open_files),
            shm: machine.shm.map(|shm| shm.total.0),
            tools: BuildTools {
                cxx: tools.cxx,
                nvcc: tools.nvcc,
                ninja: tools.ninja,
                libaio: tools.libaio,
            },
        },
        findings: findings.iter().map(finding).collect(),
    })
}
