//! What this machine lacks for a command, before it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use zeropilot_cluster::Nvidia;
use zeropilot_config::packages::Packages;
use zeropilot_config::syntax::{decode, parse_hjson};
use zeropilot_doctor::{Circumstances, Finding, Machine, Needs, Python, examine};
use zeropilot_lint::Severity;
use zeropilot_run::RunCommand;
use zeropilot_text::Language;

use crate::doctor::is_on_cpu;
use crate::engine_version;

/// Launchers that stand beside the interpreter they start.
const LAUNCHERS: [&str; 5] = ["torchrun", "deepspeed", "accelerate", "python", "python3"];
/// Findings with which no run begins, wherever else something is installed or cached.
const CERTAIN: [&str; 3] = ["no-package", "cpu-torch", "no-path"];
/// The finding with which a run may begin and then wait without end.
const DOUBTFUL: &str = "stale-lock";

/// What makes the run impossible (errors) or may keep it waiting (warnings). Nothing if it is not certain that it uses
/// DeepSpeed, which interpreter it uses and where that finds packages.
pub(super) fn lacks(command: &RunCommand, language: Language) -> Vec<Finding> {
    // A script may choose another environment before it starts anything.
    if command.script.is_some() || command.launches == 0 {
        return Vec::new();
    }
    let environment = |name: &str| std::env::var_os(name);
    let Some(python) = interpreter(&command.words, &environment) else { return Vec::new() };
    let bytes = command.config_file().and_then(|path| std::fs::read(path).ok());
    let text = bytes.as_deref().and_then(|bytes| decode(bytes).ok());
    let needs = text.and_then(|text| parse_hjson(text).ok());
    let needs = needs.map(|document| Needs::of(&document)).unwrap_or_default();
    let machine = Machine::look(Some(&python), &needs.nvme_paths, &Nvidia, &environment);
    let on_cpu = is_on_cpu(&environment);
    let circumstances = Circumstances { needs, on_cpu, ..Circumstances::default() };
    let mut found = examine(&machine, &circumstances, language);
    found.retain(|finding| {
        let is_certain = finding.severity == Severity::Error
            && CERTAIN.contains(&finding.name)
            && (finding.name != "no-package" || is_closed(&python, &environment));
        is_certain || finding.name == DOUBTFUL
    });
    found
}

/// The versions that the run imports, as far as it is certain which interpreter it uses.
pub(super) fn packages(command: &RunCommand) -> Packages {
    let environment = |name: &str| std::env::var_os(name);
    let python = match command.script {
        Some(_) => None,
        None => interpreter(&command.words, &environment),
    };
    match python.and_then(|python| Python::find(Some(&python), &environment)) {
        Some(python) => python.training_packages(),
        None => engine_version::packages(None),
    }
}

/// The interpreter beside the launcher.
fn interpreter(
    words: &[OsString],
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let first = Path::new(words.first()?);
    LAUNCHERS.iter().find(|name| first.file_name().is_some_and(|word| word == **name))?;
    let found = if first.components().count() > 1 {
        first.to_owned()
    } else {
        let path = environment("PATH")?;
        let mut places = std::env::split_paths(&path).map(|directory| directory.join(first));
        places.find(|file| file.is_file())?
    };
    let python = found.with_file_name("python");
    python.is_file().then_some(python)
}

/// Whether the interpreter finds packages in its own environment only.
fn is_closed(python: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let settings = python.parent().and_then(Path::parent).map(|prefix| prefix.join("pyvenv.cfg"));
    let settings = settings.and_then(|path| std::fs::read_to_string(path).ok());
    let is_own = settings.is_some_and(|text| {
        !text.lines().any(|line| {
            line.split_once('=').is_some_and(|(name, value)| {
                name.trim() == "include-system-site-packages" && value.trim() == "true"
            })
        })
    });
    is_own && environment("PYTHONPATH").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_environment_proves_that_a_package_is_missing() {
        let home = tempfile::tempdir().expect("a directory");
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        for name in ["python", "torchrun"] {
            std::fs::write(bin.join(name), "").expect("a file");
        }
        let settings = home.path().join("pyvenv.cfg");
        let lacking = |settings_text: &str, arguments: &[&str]| {
            std::fs::write(&settings, settings_text).expect("a file");
            let launcher = bin.join("torchrun").into_os_string();
            let arguments = arguments.iter().map(OsString::from);
            let command = RunCommand::read(std::iter::once(launcher).chain(arguments).collect());
            let found = lacks(&command, Language::English);
            found.iter().filter(|finding| finding.name == "no-package").count()
        };
        // deepspeed and torch
        let launch = ["t.py", "--deepspeed", "ds.json"];
        assert_eq!(lacking("include-system-site-packages = false\n", &launch), 2);
        assert_eq!(lacking("include-system-site-packages = true\n", &launch), 0);
        // Whether this program imports either of them is not known.
        assert_eq!(lacking("include-system-site-packages = false\n", &["t.py"]), 0);
        let other = RunCommand::read(vec!["srun".into(), "torchrun".into(), "t.py".into()]);
        assert!(lacks(&other, Language::English).is_empty());
    }
}
