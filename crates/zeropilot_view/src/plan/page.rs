//! The words of a plan in pieces, for pages that lay them out themselves; they stand beside [`json`](super::json), row by row.

use serde::Serialize;
use serde_json::Value;
use zeropilot_ask::Note;
use zeropilot_plan::Fitting;
use zeropilot_text::Language;

use super::headline::HeadlineWords;
use super::shortage::{Remedy, limit_words, methods, remedies, useless};
use super::{PlanReport, by_hand, choice_words, nothing_words, rejected_row, row, way_words};
use crate::provenance::note_words;

/// What is said of the recommended strategy, of every alternative, of what does not fit and of every fallback.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanWords {
    headline: HeadlineWords,
    /// What makes the answer one that nobody would run.
    warnings: Vec<String>,
    recommended: Option<RecommendedWords>,
    nothing: Option<NothingWords>,
    alternatives: Vec<Said>,
    rejected: Vec<Said>,
    fallbacks: Vec<Said>,
}

/// The recommended strategy in words, its config, and what the script must do itself.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RecommendedWords {
    strategy: String,
    lines: Vec<String>,
    config: String,
    by_hand: Vec<String>,
}

/// That nothing fits, which memory is short, and what would help.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NothingWords {
    headline: Vec<String>,
    limit: Vec<String>,
    /// Each of these alone would do.
    remedies: Vec<Remedy>,
    /// Methods that need less.
    methods: Vec<Remedy>,
}

/// A strategy, and what is said of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Said {
    strategy: String,
    said: String,
}

/// The words of a plan.
pub fn words(report: &PlanReport<'_>, language: Language) -> PlanWords {
    let said = |(strategy, said): (String, String)| Said { strategy, said };
    let rows = |rows: &[Fitting]| -> Vec<Said> {
        rows.iter().map(|one| said(row(one, report, language))).collect()
    };
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let choice = report.plan.fitting.first();
    let (warnings, others): (Vec<Note>, Vec<Note>) =
        report.provenance.notes.iter().partition(|note| note.is_warning());
    let notes = crate::provenance::notes(&others, language);
    let shortage = report.plan.shortage.as_ref();
    let first = |text: String| {
        let mut letters = text.chars();
        letters.next().map_or(text.clone(), |letter| letter.to_uppercase().chain(letters).collect())
    };
    let rejected = report.plan.rejected.iter().map(|one| said(rejected_row(one, language)));
    PlanWords {
        headline: HeadlineWords::of(report, language),
        warnings: warnings.into_iter().map(|note| first(note_words(note, language))).collect(),
        recommended: choice.map(|choice| RecommendedWords {
            strategy: way_words(choice.way, language),
            lines: lines(&(choice_words(report, choice, language) + &notes)).split_off(1),
            config: format!("{:#}\n", Value::Object(choice.recipe.config())),
            by_hand: lines(&by_hand(choice, None, language)),
        }),
        nothing: choice.is_none().then(|| NothingWords {
            headline: lines(&nothing_words(report, language)),
            limit: shortage.map_or_else(Vec::new, |shortage| {
                lines(&format!(
                    "{}\n{}",
                    limit_words(shortage, language),
                    useless(shortage, language)
                ))
            }),
            remedies: shortage.map_or_else(Vec::new, |shortage| remedies(shortage, language)),
            methods: shortage
                .map_or_else(Vec::new, |shortage| methods(report.method, shortage, language)),
        }),
        alternatives: rows(report.plan.fitting.get(1..).unwrap_or_default()),
        rejected: rejected.collect(),
        fallbacks: rows(&report.plan.fallbacks),
    }
}
