//! A config file key by key: what is written, what it becomes, what was found about it; and what
//! differs between two files.

use std::collections::{BTreeMap, BTreeSet};

use zeropilot_config::keys::{self, Annotation, Status, Unit, annotate};
use zeropilot_config::python::{PyValue, same};
use zeropilot_config::syntax::{Span, decode, parse_hjson};

use crate::check::check;
use crate::key_values::KeyTable;
use crate::report::Report;
use crate::rules::keys::unknown_key::is_of_accelerate;
use crate::settings::Settings;
use crate::subject::shortened;

/// One key of a file.
#[derive(Debug, Clone)]
pub struct ExplainedKey {
    /// Dotted path, as written.
    pub path: String,
    /// How many sections it stands in.
    pub depth: usize,
    /// Where the key stands.
    pub span: Span,
    /// Whether its value is a section whose keys follow.
    pub is_section: bool,
    /// Its value as it stands in the file, shortened if it is long; empty for a section.
    pub written: String,
    /// What becomes of it.
    pub status: Status,
    /// What its value became; `None` if that is only known when the script runs, or nothing is kept.
    pub value: Option<PyValue>,
    /// Whether that differs from what is written.
    pub is_changed: bool,
    /// The argument of the training script that fills it at run time.
    pub filled_from: Option<&'static str>,
    /// What was found about it, as positions in the report.
    pub findings: Vec<usize>,
}

/// A file with everything known about its keys.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The verdict and the findings.
    pub report: Report,
    /// Its keys in the order of the file; none if it cannot be read.
    pub keys: Vec<ExplainedKey>,
    /// Findings about no key of the file, as positions in the report.
    pub loose: Vec<usize>,
}

/// Explains a config file.
pub fn explain(bytes: &[u8], settings: &Settings) -> Explanation {
    let report = check(bytes, settings);
    let text = decode(bytes).unwrap_or("");
    let document = parse_hjson(text).ok();
    let table = report.resolved.as_ref().map(|values| values.keys.table());
    let keys: Vec<ExplainedKey> = document
        .iter()
        .flat_map(|document| {
            let annotations = annotate(document.root(), report.version);
            annotations
                .into_iter()
                .map(|annotation| explained(annotation, text, &report, table.as_ref()))
        })
        .collect();
    let told: BTreeSet<usize> = keys.iter().flat_map(|key| key.findings.iter().copied()).collect();
    let loose = (0..report.diagnostics.len()).filter(|index| !told.contains(index)).collect();
    drop(table);
    Explanation { report, keys, loose }
}

fn explained(
    annotation: Annotation<'_>,
    text: &str,
    report: &Report,
    table: Option<&KeyTable<'_>>,
) -> ExplainedKey {
    let is_section = annotation.is_section();
    let Annotation { path, depth, member, status } = annotation;
    let status = match status {
        Status::Unread if is_of_accelerate(report.front_end, &path) => Status::HandedOn(None),
        status => status,
    };
    let value = match &status {
        Status::Read(_) | Status::HandedOn(_) if !is_section => {
            table.and_then(|table| table.get(&path)).cloned()
        }
        _ => None,
    };
    let written = PyValue::from(&member.value);
    let pending = report.pending.iter().find(|pending| pending.path == path);
    let of_key = |index: &usize| report.diagnostics[*index].path.to_string() == path;
    let findings = (0..report.diagnostics.len()).filter(of_key).collect();
    ExplainedKey {
        depth,
        span: member.key_span,
        is_section,
        written: if is_section {
            String::new()
        } else {
            shortened(member.value.span.of(text).unwrap_or(""))
        },
        is_changed: value.as_ref().is_some_and(|value| !is_alike(value, &written)),
        value,
        filled_from: pending.map(|pending| pending.argument),
        findings,
        status,
        path,
    }
}

/// Whether two values say the same to somebody who does not care how a number or a name is written.
fn is_alike(left: &PyValue, right: &PyValue) -> bool {
    match (left, right) {
        // The engine knows its optimizers by their names in lower case.
        (PyValue::Str(left), PyValue::Str(right)) => left.eq_ignore_ascii_case(right),
        _ => match (left.number(), right.number()) {
            (Some(left), Some(right)) => left.equals(&right),
            _ => same(left, right),
        },
    }
}

/// What a key is on one side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// This value.
    Value(PyValue),
    /// A section that is there, with keys of its own.
    Section,
    /// Only the running script decides.
    Open,
    /// Not there.
    Absent,
}

/// A key that two configs disagree about.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Its path.
    pub path: String,
    /// In the first config.
    pub left: Side,
    /// In the second.
    pub right: Side,
}

/// What two accepted files make the engine do differently, whether it is written in them or not, in
/// order of the keys; `None` if one of them is refused.
pub fn differences(left: &Explanation, right: &Explanation) -> Option<Vec<Difference>> {
    let left_table = left.report.resolved.as_ref()?.keys.table();
    let right_table = right.report.resolved.as_ref()?.keys.table();
    let mut paths: BTreeSet<String> = keys::all()
        .filter(|(path, text)| text.unit != Unit::Section && !path.ends_with('*'))
        .map(|(path, _)| path.to_owned())
        .collect();
    let written: [BTreeSet<String>; 2] = [left, right].map(|file| written_paths(file).collect());
    paths.extend(written.iter().flatten().cloned());
    let mut found = BTreeMap::new();
    for path in paths {
        let (left, right) = (side(&left_table, &path), side(&right_table, &path));
        let is_same = match (&left, &right) {
            (Side::Value(left), Side::Value(right)) => is_alike(left, right),
            (left, right) => left == right,
        };
        if is_same {
            continue;
        }
        let is_written = written.iter().any(|paths| paths.contains(&path));
        match (left == Side::Absent || right == Side::Absent, path.rsplit_once('.')) {
            // The defaults of a section that only one file has say no more than the section does.
            (true, Some((section, _))) if !is_written => {
                let there = |side| if side == Side::Absent { side } else { Side::Section };
                found.entry(section.to_owned()).or_insert((there(left), there(right)));
            }
            _ => {
                found.insert(path, (left, right));
            }
        }
    }
    let differences = found.into_iter();
    Some(differences.map(|(path, (left, right))| Difference { path, left, right }).collect())
}

/// Keys that have no text of their own but reach somebody, such as `optimizer.params.momentum`.
fn written_paths(explanation: &Explanation) -> impl Iterator<Item = String> + '_ {
    let reaches = |key: &&ExplainedKey| {
        !key.is_section && matches!(key.status, Status::HandedOn(_) | Status::Read(_))
    };
    explanation.keys.iter().filter(reaches).map(|key| match &key.status {
        Status::Read(Some(path)) if !path.ends_with('*') => path.clone(),
        _ => key.path.clone(),
    })
}

fn side(table: &KeyTable<'_>, path: &str) -> Side {
    match table.get(path) {
        Some(value) => Side::Value(value.clone()),
        None if table.is_open(path) => Side::Open,
        None => Side::Absent,
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_config::front_end::FrontEnd;

    use super::*;

    fn explained(text: &str) -> Explanation {
        explain(text.as_bytes(), &Settings { world_size: Some(4), ..Settings::default() })
    }

    #[test]
    fn written_and_resolved_values_stand_side_by_side() {
        let explanation = explained(
            r#"{"train_batch_size": 64, "zero_optimisation": {"stage": 3},
                "zero_optimization": {"stage": true, "reduce_bucket_size": 5e8}}"#,
        );
        let keys: Vec<(&str, &str, bool, usize)> = explanation
            .keys
            .iter()
            .map(|key| {
                (key.path.as_str(), key.written.as_str(), key.is_changed, key.findings.len())
            })
            .collect();
        assert_eq!(
            keys,
            [
                ("train_batch_size", "64", false, 0),
                ("zero_optimisation", "{\"stage\": 3}", false, 1),
                ("zero_optimization", "", false, 0),
                ("zero_optimization.stage", "true", false, 0),
                ("zero_optimization.reduce_bucket_size", "5e8", false, 0),
            ]
        );
        assert!(explanation.loose.is_empty());
    }

    #[test]
    fn a_key_that_accelerate_reads_is_unread_only_without_it() {
        let of = |front_end| {
            let settings = Settings { front_end: Some(front_end), ..Settings::default() };
            let text = br#"{"msamp": {"enabled": true}, "train_batch_size": 4}"#;
            explain(text, &settings).keys.remove(0).status
        };
        assert_eq!(of(FrontEnd::Accelerate), Status::HandedOn(None));
        assert_eq!(of(FrontEnd::DeepSpeed), Status::Unread);
    }

    #[test]
    fn a_section_of_one_file_is_said_once() {
        let left = explained(r#"{"train_batch_size": 4, "zero_optimization": {"stage": 3}}"#);
        let right = explained(
            r#"{"train_batch_size": 4, "comms_logger": {},
                "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}"#,
        );
        let found = differences(&left, &right).expect("both accepted");
        let paths: Vec<(&str, &Side)> =
            found.iter().map(|difference| (difference.path.as_str(), &difference.right)).collect();
        let cpu = Side::Value(PyValue::str("cpu"));
        assert_eq!(
            paths,
            [
                ("comms_logger", &Side::Section),
                ("zero_optimization.offload_param", &Side::Section),
                ("zero_optimization.offload_param.device", &cpu),
            ]
        );
    }

    #[test]
    fn what_is_not_written_differs_too() {
        let left = explained(r#"{"train_batch_size": 64, "zero_optimization": {"stage": 2}}"#);
        let right = explained(
            r#"{"train_batch_size": 64, "zero_optimization": {"stage": 3},
                "optimizer": {"type": "SGD", "params": {"lr": 1, "momentum": 0.9}}}"#,
        );
        let found = differences(&left, &right).expect("both accepted");
        let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "optimizer.params.lr",
                "optimizer.params.momentum",
                "optimizer.type",
                "zero_optimization.overlap_comm",
                "zero_optimization.stage",
            ]
        );
        assert_eq!(found[0].left, Side::Absent);
        assert_eq!(found[3].right, Side::Value(PyValue::Bool(true)));
    }
}
