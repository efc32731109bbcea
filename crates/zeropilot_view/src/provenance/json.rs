//! What an answer rests on, as JSON has it.

use serde::Serialize;
use serde_json::Value;
use zeropilot_ask::{Provenance, Statement};
use zeropilot_job::{Direction, NotModelled, Origin};
use zeropilot_text::Language;

use super::note_words;

/// Values and assumptions behind an answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Provenance"))]
pub(crate) struct Shape<'a> {
    framework: Option<&'static str>,
    values: Vec<StatedValue<'a>>,
    unknown: &'a [&'static str],
    not_modelled: Vec<LeftOut<'a>>,
    notes: Vec<String>,
}

/// A value that an answer uses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StatedValue<'a> {
    name: &'static str,
    value: &'a Value,
    origin: OriginShape<'a>,
}

/// A setting of the job that zeropilot does not model; the run needs `less`, `more` or `less_or_more`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NotModelled"))]
struct LeftOut<'a> {
    what: &'a str,
    written: &'a str,
    run_needs: &'static str,
    origin: OriginShape<'a>,
}

/// Where a value comes from: an `option`, a `file` with its line, a framework's `default`, what is `installed`, or
/// `assumed`.
#[derive(Debug, Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Origin"))]
struct OriginShape<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a str>,
}

impl<'a> From<&'a Provenance> for Shape<'a> {
    fn from(provenance: &'a Provenance) -> Self {
        let value = |one: &'a Statement| StatedValue {
            name: one.name,
            value: &one.value,
            origin: (&one.origin).into(),
        };
        let left_out = |one: &'a NotModelled| LeftOut {
            what: &one.en,
            written: &one.written,
            run_needs: match one.direction {
                Direction::Lower => "less",
                Direction::Higher => "more",
                Direction::Either => "less_or_more",
            },
            origin: (&one.origin).into(),
        };
        Self {
            framework: provenance.framework.map(zeropilot_job::Framework::name),
            values: provenance.statements.iter().map(value).collect(),
            unknown: &provenance.unknown,
            not_modelled: provenance.not_modelled.iter().map(left_out).collect(),
            notes: provenance
                .notes
                .iter()
                .map(|note| note_words(*note, Language::English))
                .collect(),
        }
    }
}

impl<'a> From<&'a Origin> for OriginShape<'a> {
    fn from(origin: &'a Origin) -> Self {
        match origin {
            Origin::File { name, line } => {
                Self { kind: "file", file: Some(name), line: Some(*line), of: None }
            }
            Origin::FrameworkDefault { version } => {
                Self { kind: "default", of: Some(version), ..Self::default() }
            }
            Origin::Installed { place } => {
                Self { kind: "installed", of: Some(place), ..Self::default() }
            }
            Origin::Option => Self { kind: "option", ..Self::default() },
            Origin::Assumed => Self { kind: "assumed", ..Self::default() },
        }
    }
}
