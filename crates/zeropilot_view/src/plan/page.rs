//! The words of a plan in pieces, for pages that lay them out themselves; they stand beside [`json`](super::json), row by row.

use serde_json::{Value, json};
use zeropilot_plan::Fitting;
use zeropilot_text::Language;

use super::{
    PlanReport, by_hand, choice_words, nothing_words, rejected_row, remedy, row, way_words,
};

/// What is said of the choice, of every alternative, of what does not fit and of every rung of the ladder.
pub fn words(report: &PlanReport<'_>, language: Language) -> Value {
    let pair = |(way, said): (String, String)| json!({"way": way, "said": said});
    let rows = |rows: &[Fitting]| -> Vec<Value> {
        rows.iter().map(|one| pair(row(one, report, language))).collect()
    };
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let choice = report.plan.fitting.first();
    let notes = crate::provenance::notes(&report.provenance.notes, language);
    let rejected = report.plan.rejected.iter().map(|one| pair(rejected_row(one, language)));
    json!({
        "choice": choice.map(|choice| json!({
            "way": way_words(choice.way, language),
            "lines": lines(&(choice_words(report, choice, language) + &notes)).split_off(1),
            "config": format!("{:#}\n", Value::Object(choice.recipe.config())),
            "by_hand": lines(&by_hand(choice, language)),
        })),
        "nothing": choice.is_none().then(|| json!({
            "headline": lines(&nothing_words(report, language)),
            "remedy": lines(&remedy(report, language)),
        })),
        "alternatives": rows(report.plan.fitting.get(1..).unwrap_or_default()),
        "rejected": rejected.collect::<Vec<_>>(),
        "ladder": rows(&report.plan.ladder),
    })
}
