//! Everything about each file, for programs. The shape is a contract: keys are added, never
//! changed.

use serde::Serialize;
use zeropilot_config::python::PyValue;
use zeropilot_lint::{Diagnostic, ResolvedValues};
use zeropilot_text::Language;

use crate::FileResult;
use crate::place::{Place, Places};

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    verdict: &'static str,
    resolved: Option<Resolved<'a>>,
    diagnostics: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mended: Vec<Mended>,
    deepspeed_version: &'static str,
    front_end: FrontEnd,
    world_size: usize,
    world_size_source: &'static str,
    pending: Vec<Pending<'a>>,
}

#[derive(Serialize)]
struct Resolved<'a> {
    train_batch_size: Option<&'a PyValue>,
    train_micro_batch_size_per_gpu: Option<&'a PyValue>,
    gradient_accumulation_steps: Option<&'a PyValue>,
    zero_optimization: &'a PyValue,
}

impl<'a> From<&'a ResolvedValues> for Resolved<'a> {
    fn from(values: &'a ResolvedValues) -> Self {
        Self {
            train_batch_size: values.train_batch_size.as_ref(),
            train_micro_batch_size_per_gpu: values.micro_batch_size.as_ref(),
            gradient_accumulation_steps: values.gradient_accumulation_steps.as_ref(),
            zero_optimization: &values.zero_optimization,
        }
    }
}

#[derive(Serialize)]
struct FrontEnd {
    name: &'static str,
    guessed: bool,
}

#[derive(Serialize)]
struct Pending<'a> {
    path: &'a str,
    filled_from: &'static str,
}

#[derive(Serialize)]
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

/// A finding that is no longer there; its place was in the text before.
#[derive(Serialize)]
struct Mended {
    code: &'static str,
    message: String,
    path: String,
    title: String,
    safety: &'static str,
}

#[derive(Serialize)]
struct Related {
    span: Place,
    message: &'static str,
}

#[derive(Serialize)]
struct Fix {
    title: String,
    safety: &'static str,
    edits: Vec<Edit>,
}

#[derive(Serialize)]
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
    let value = File {
        file: file.name,
        verdict: report.verdict.name(),
        resolved: report.resolved.as_ref().map(Resolved::from),
        diagnostics,
        mended: report.fixed.iter().filter_map(|found| mended(found, language)).collect(),
        deepspeed_version: report.version.name(),
        front_end: FrontEnd { name: report.front_end.name(), guessed: report.front_end_guessed },
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
pub(crate) fn written(value: &impl Serialize) -> String {
    /// What a file with its resolved section takes, so that the text rarely has to move.
    const USUAL: usize = 4096;
    let mut text = Vec::with_capacity(USUAL);
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => String::from_utf8(text).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

fn mended(diagnostic: &Diagnostic, language: Language) -> Option<Mended> {
    Some(Mended {
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
