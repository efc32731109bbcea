//! Texts as people paste them.

use serde::Deserialize;
use zeropilot_job::{Pasted, PastedKind};
use zeropilot_text::Language;
use zeropilot_view::diagnose::{self as diagnose_view, LogReport};
use zeropilot_view::page::CheckWords;
use zeropilot_view::pasted::{PastedText, words};
use zeropilot_view::{Format, Layout};

use crate::question::{Answer, Problem};

/// A text, with the name of its file if it has one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    #[serde(default)]
    name: Option<String>,
    text: String,
}

pub(crate) fn recognize(content: Content, language: Language) -> Result<Answer, Problem> {
    let mut pasted = Pasted::of(content.name.as_deref(), &content.text);
    if pasted.kind == PastedKind::Other && zeropilot_diagnose::diagnose(&content.text).is_some() {
        pasted.kind = PastedKind::Log;
    }
    Ok(Answer::new(PastedText::from(&pasted), words(&pasted, language)))
}

pub(crate) fn diagnose(content: Content, language: Language) -> Result<Answer, Problem> {
    let diagnosis = zeropilot_diagnose::diagnose(&content.text);
    let name = content.name.as_deref().unwrap_or("train.log");
    let report = LogReport { name, diagnosis: diagnosis.as_ref(), predicted: None };
    let layout = Layout { format: Format::Human, language, ..Layout::default() };
    let words = CheckWords { text: diagnose_view::human(&report, &layout) };
    Ok(Answer::new(diagnose_view::json(&report, language), words))
}
