//! The words of a plan in pieces, for pages that lay them out themselves; they stand beside [`json`](super::json), row by row.

use serde::Serialize;
use serde_json::Value;
use zeropilot_plan::Fitting;
use zeropilot_text::Language;

use super::{
    PlanReport, by_hand, choice_words, nothing_words, rejected_row, remedy, row, way_words,
};

/// What is said of the recommended strategy, of every alternative, of what does not fit and of every fallback.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanWords {
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

/// That nothing fits, and what would help.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NothingWords {
    headline: Vec<String>,
    remedy: Vec<String>,
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
    let notes = crate::provenance::notes(&report.provenance.notes, language);
    let rejected = report.plan.rejected.iter().map(|one| said(rejected_row(one, language)));
    PlanWords {
        recommended: choice.map(|choice| RecommendedWords {
            strategy: way_words(choice.way, language),
            lines: lines(&(choice_words(report, choice, language) + &notes)).split_off(1),
            config: format!("{:#}\n", Value::Object(choice.recipe.config())),
            by_hand: lines(&by_hand(choice, language)),
        }),
        nothing: choice.is_none().then(|| NothingWords {
            headline: lines(&nothing_words(report, language)),
            remedy: lines(&remedy(report, language)),
        }),
        alternatives: rows(report.plan.fitting.get(1..).unwrap_or_default()),
        rejected: rejected.collect(),
        fallbacks: rows(&report.plan.fallbacks),
    }
}
