//! Everything about each file, for programs. The shape is a contract: keys are added, never
//! changed.

use serde::Serialize;
use zeropilot_config::python::PyValue;
use zeropilot_lint::{Diagnostic, Outcome, ResolvedValues};
use zeropilot_text::Language;

use crate::FileResult;
use crate::place::{Place, Places};

/// Whether DeepSpeed accepts a config, and everything found in it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Check<'a> {
    file: &'a str,
    verdict: RunVerdict,
    resolved: Option<ResolvedBatch<'a>>,
    diagnostics: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Fixed>,
    /// Findings that are left out, since the baseline has them.
    #[serde(skip_serializing_if = "is_zero")]
    in_baseline: usize,
    deepspeed_version: &'static str,
    front_end: FrontEndName,
    world_size: usize,
    world_size_source: &'static str,
    pending: Vec<Pending<'a>>,
}

/// `reject`: the config does not load. `fail`: it loads, and an error says that the run does not start or ends at once.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunVerdict {
    Accept,
    Fail,
    Reject,
}

impl From<Outcome> for RunVerdict {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Runs => Self::Accept,
            Outcome::Fails => Self::Fail,
            Outcome::Rejected => Self::Reject,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The batch and the ZeRO section after loading.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ResolvedBatch<'a> {
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    train_batch_size: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    train_micro_batch_size_per_gpu: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    gradient_accumulation_steps: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    zero_optimization: &'a PyValue,
}

impl<'a> From<&'a ResolvedValues> for ResolvedBatch<'a> {
    fn from(values: &'a ResolvedValues) -> Self {
        Self {
            train_batch_size: values.train_batch_size.as_ref(),
            train_micro_batch_size_per_gpu: values.micro_batch_size.as_ref(),
            gradient_accumulation_steps: values.gradient_accumulation_steps.as_ref(),
            zero_optimization: &values.zero_optimization,
        }
    }
}

/// What reads the config.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FrontEndName {
    name: &'static str,
    guessed: bool,
}

/// A key that gets its value only when the script runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Pending<'a> {
    pub(crate) path: &'a str,
    pub(crate) filled_from: &'static str,
}

/// A finding with its reason and its remedy.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Finding {
    code: &'static str,
    name: &'static str,
    severity: &'static str,
    message: String,
    why: String,
    help: String,
    path: String,
    span: Place,
    related: Vec<Related>,
    fix: Option<Fix>,
}

/// A finding that a fix removed; its place refers to the text before the fix.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fixed {
    code: &'static str,
    message: String,
    path: String,
    title: String,
    safety: &'static str,
}

/// Another place that belongs to a finding.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Related {
    span: Place,
    message: &'static str,
}

/// How a finding can be fixed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fix {
    title: String,
    safety: &'static str,
    edits: Vec<Edit>,
}

/// A replacement of bytes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The object of a file.
pub(crate) fn file(language: Language, file: &FileResult<'_>) -> String {
    let report = file.report;
    let diagnostics = if report.diagnostics.is_empty() {
        Vec::new()
    } else {
        let places = Places::new(file.bytes);
        report.diagnostics.iter().map(|diagnostic| finding(diagnostic, &places, language)).collect()
    };
    let value = Check {
        file: file.name,
        verdict: report.outcome().into(),
        resolved: report.resolved.as_ref().map(ResolvedBatch::from),
        diagnostics,
        fixed: report.fixed.iter().filter_map(|found| fixed(found, language)).collect(),
        in_baseline: report.known.len(),
        deepspeed_version: report.version.name(),
        front_end: FrontEndName {
            name: report.front_end.name(),
            guessed: report.front_end_guessed,
        },
        world_size: report.world.size,
        world_size_source: report.world.source.name(),
        pending: report
            .pending
            .iter()
            .map(|pending| Pending { path: &pending.path, filled_from: pending.argument })
            .collect(),
    };
    written(&value)
}

/// Text and numbers always serialize.
pub(crate) fn value(shape: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(shape).unwrap_or_default()
}

/// Text and numbers always serialize.
pub(crate) fn written(value: &impl Serialize) -> String {
    /// What a file with its resolved section takes, so that the text rarely has to move.
    const USUAL: usize = 4096;
    let mut text = Vec::with_capacity(USUAL);
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => String::from_utf8(text).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

fn fixed(diagnostic: &Diagnostic, language: Language) -> Option<Fixed> {
    Some(Fixed {
        code: diagnostic.rule.code,
        message: diagnostic.message(language),
        path: diagnostic.path.to_string(),
        title: diagnostic.fix_title(language)?,
        safety: diagnostic.fix.as_ref()?.safety.name(),
    })
}

fn finding(diagnostic: &Diagnostic, places: &Places, language: Language) -> Finding {
    Finding {
        code: diagnostic.rule.code,
        name: diagnostic.rule.name,
        severity: diagnostic.severity.name(),
        message: diagnostic.message(language),
        why: diagnostic.why(language),
        help: diagnostic.help(language),
        path: diagnostic.path.to_string(),
        span: places.place(diagnostic.span),
        related: diagnostic
            .related
            .iter()
            .map(|related| Related {
                span: places.place(related.span),
                message: related.label.get(language),
            })
            .collect(),
        fix: diagnostic.fix.as_ref().map(|fix| Fix {
            title: diagnostic.fix_title(language).unwrap_or_default(),
            safety: fix.safety.name(),
            edits: fix
                .edits
                .iter()
                .map(|edit| Edit {
                    start: edit.span.start,
                    end: edit.span.end,
                    text: edit.text.clone(),
                })
                .collect(),
        }),
    }
}
