//! The configs that projects ship for their users, each checked as the project reads it.
//!
//! Which files those are, and who reads them, is written in `knowledge/findings/presets.json`.

use std::io;
use std::path::Path;

use serde::Deserialize;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Report, Settings, Severity, check};
use zeropilot_text::Language;

use crate::study::no_ops;

/// Who reads the files of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reader {
    HfTrainer,
    Accelerate,
    /// The HF Trainer if the file says `"auto"`, else the engine.
    AsWritten,
}

impl Reader {
    fn front_end(self) -> Option<FrontEnd> {
        match self {
            Self::HfTrainer => Some(FrontEnd::HfTrainer),
            Self::Accelerate => Some(FrontEnd::Accelerate),
            Self::AsWritten => None,
        }
    }
}

/// A project and which of its files count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    #[serde(rename = "project")]
    pub(crate) name: String,
    repositories: Vec<String>,
    under: String,
    /// Pieces of paths that do not count.
    #[serde(default)]
    except: Vec<String>,
    reader: Reader,
    pub(crate) why: String,
}

impl Project {
    fn ships(&self, source: &Source) -> bool {
        self.repositories.contains(&source.repository)
            && source.path.starts_with(&self.under)
            && !self.except.iter().any(|piece| source.path.contains(piece))
    }
}

/// Where a file of the corpus comes from.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Source {
    pub(crate) file: String,
    #[serde(rename = "repo")]
    pub(crate) repository: String,
    pub(crate) path: String,
    pub(crate) commit: String,
}

/// An error or a warning in a shipped file.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) severity: Severity,
    pub(crate) rule: &'static str,
    pub(crate) path: KeyPath,
    pub(crate) message: String,
    /// The engines for which it is found, oldest first.
    pub(crate) versions: Vec<EngineVersion>,
}

/// A shipped file.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) source: Source,
    pub(crate) idle: Vec<&'static str>,
    pub(crate) found: Vec<Found>,
}

/// The projects of `knowledge/findings/presets.json`.
pub(crate) fn projects() -> Vec<Project> {
    let text = include_str!("../../../knowledge/findings/presets.json");
    // The file is part of the program and a test reads it.
    serde_json::from_str(text).unwrap_or_else(|error| panic!("presets.json: {error}"))
}

/// The files of a corpus that each project ships, in the order of their paths.
pub(crate) fn shipped(corpus: &Path) -> io::Result<Vec<(Project, Vec<Preset>)>> {
    let index = std::fs::read_to_string(corpus.join("index.jsonl"))?;
    let sources: Vec<Source> = index.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut all = Vec::new();
    for project in projects() {
        let mut presets = Vec::new();
        for source in sources.iter().filter(|source| project.ships(source)) {
            let bytes = std::fs::read(corpus.join(&source.file))?;
            presets.push(preset(source.clone(), &bytes, project.reader));
        }
        presets.sort_by(|a, b| a.source.path.cmp(&b.source.path));
        all.push((project, presets));
    }
    Ok(all)
}

fn preset(source: Source, bytes: &[u8], reader: Reader) -> Preset {
    let judged = |version| {
        let front_end = reader.front_end();
        check(bytes, &Settings { version, front_end, ..Settings::default() })
    };
    let report = judged(EngineVersion::NEWEST);
    let others: Vec<Report> = EngineVersion::all().map(judged).collect();
    let told = report.diagnostics.iter().filter(|found| found.severity != Severity::Note);
    let found = told.map(|found| {
        let is_there = |report: &&Report| {
            let mut others = report.diagnostics.iter();
            others.any(|other| other.rule == found.rule && other.path == found.path)
        };
        Found {
            severity: found.severity,
            rule: found.rule.code,
            path: found.path.clone(),
            message: found.message(Language::English),
            versions: others.iter().filter(is_there).map(|report| report.version).collect(),
        }
    });
    Preset { source, idle: no_ops(&report), found: found.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repository: &str, path: &str) -> Source {
        let [file, repository, path, commit] =
            ["0001.json", repository, path, "0"].map(str::to_owned);
        Source { file, repository, path, commit }
    }

    #[test]
    fn what_is_for_users_counts_and_what_is_for_tests_does_not() {
        let projects = projects();
        let of = |source: Source| {
            let project = projects.iter().find(|project| project.ships(&source));
            project.map(|project| project.name.as_str())
        };
        let accelerate = |path| of(source("huggingface/accelerate", path));
        let template = "examples/deepspeed_config_templates/zero_stage3_config.json";
        assert_eq!(accelerate(template), Some("accelerate"));
        assert_eq!(accelerate("tests/deepspeed/ds_config_zero2.json"), None);
        let examples = |path| of(source("microsoft/DeepSpeedExamples", path));
        assert_eq!(examples("MoQ/test.json"), Some("DeepSpeedExamples"));
        assert_eq!(examples("compression/bert/ds_config_TEMPLATE.json"), None);
        assert!(projects.iter().all(|project| !project.why.is_empty()));
    }

    /// `compile` became a strict section with DeepCompile, in 0.16.
    #[test]
    fn a_finding_names_the_engines_it_holds_for() {
        let text = r#"{"train_batch_size": 8, "compile": {"disable": false}}"#;
        let preset = preset(source("a/b", "c.json"), text.as_bytes(), Reader::AsWritten);
        let names: Vec<_> = preset.found[0].versions.iter().map(|version| version.name()).collect();
        assert_eq!((preset.found[0].rule, preset.found.len()), ("K03", 1));
        assert_eq!(names, ["0.16.9", "0.17.6", "0.18.9", "0.19.8"]);
    }
}
