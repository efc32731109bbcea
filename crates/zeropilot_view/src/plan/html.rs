//! A plan for notebooks and pages.

use serde_json::Value;
use zeropilot_plan::Fitting;
use zeropilot_text::{Language, Text};

use super::shortage::remedy;
use super::{PlanReport, choice_words, nothing_words, offers, rejected_row, row};
use crate::html::Html;

/// The plan for notebooks and pages.
pub fn html(report: &PlanReport<'_>, language: Language) -> String {
    let mut html = Html::new();
    let pair = |(left, right): (String, String)| vec![left, right];
    let table = |rows: &[Fitting]| -> Vec<Vec<String>> {
        rows.iter().map(|one| pair(row(one, report, language))).collect()
    };
    let words = |english, chinese| Text::new(english, chinese).get(language);
    let choice = report.plan.fitting.first();
    match choice {
        Some(choice) => html.lines(&choice_words(report, choice, language)),
        None => html.lines(&nothing_words(report, language)),
    };
    let pairs: Vec<Vec<String>> = offers::lines(report, language).into_iter().map(pair).collect();
    html.table(&offers::head(report, language), &pairs);
    html.table(
        words("Alternatives that fit:", "也放得下的方案："),
        &table(report.plan.fitting.get(1..).unwrap_or_default()),
    );
    let rejected: Vec<Vec<String>> =
        report.plan.rejected.iter().map(|one| pair(rejected_row(one, language))).collect();
    html.table(
        words(
            "Not guaranteed to fit, even with the smallest settings:",
            "即使用最小设置，也不能保证放得下：",
        ),
        &rejected,
    );
    html.table(
        words(
            "If the run still runs out of GPU memory, try these fallbacks in order:",
            "如果仍然显存不足，依次尝试以下降级方案：",
        ),
        &table(&report.plan.fallbacks),
    );
    let Some(choice) = choice else { return html.lines(&remedy(report, language)).finish() };
    let commands: Vec<&str> = report.commands.iter().map(|(_, line)| line.as_str()).collect();
    let config = format!("{:#}", Value::Object(choice.recipe.config()));
    html.folded(words("DeepSpeed config", "DeepSpeed 配置"), &config)
        .folded(
            words("Start the training with one of these commands", "启动命令（任选其一）"),
            &commands.join("\n"),
        )
        .finish()
}
