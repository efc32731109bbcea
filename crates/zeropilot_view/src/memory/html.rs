//! The report for notebooks and pages.

use zeropilot_step::memory::Stretch;
use zeropilot_text::{Language, Text};

use super::MemoryReport;
use super::human::{
    assumption, batch, device_line, device_rows, fidelity, headline, host_line, moment,
};
use super::relief::change;
use super::svg::svg;
use crate::Layout;
use crate::html::Html;

/// The report with a picture of its step, in as many stretches as are given.
pub fn html(report: &MemoryReport<'_>, stretches: &[Stretch], language: Language) -> String {
    let layout = Layout { language, ..Layout::default() };
    let mut html = Html::new();
    let (name, question) = (report.name, &report.question);
    html.title(&headline(name, question, language)).lines(&batch(question, language));
    if let Some(note) = assumption(report, language) {
        html.lines(&note);
    }
    html.lines(&device_line(report, &layout)).picture(&svg(report, stretches, language));
    let rows: Vec<Vec<String>> = device_rows(report.answer)
        .into_iter()
        .map(|(part, bytes)| vec![part.words(language).to_owned(), bytes.to_string()])
        .collect();
    html.table("", &rows)
        .lines(&host_line(report, &layout))
        .lines(&moment(report.answer, language));
    let reliefs: Vec<Vec<String>> = report
        .reliefs
        .iter()
        .map(|relief| vec![format!("−{}", relief.saved), change(relief.lever, language).to_owned()])
        .collect();
    html.table(
        Text::new("Changes that lower GPU memory:", "降低显存的改动：").get(language),
        &reliefs,
    );
    if let Some(note) = fidelity(report.answer, language) {
        html.lines(&note);
    }
    html.finish()
}
