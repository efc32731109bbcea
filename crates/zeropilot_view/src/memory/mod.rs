//! What a job needs of its GPUs and hosts, as words, tables and machine-readable data.

pub(crate) mod bars;
pub(crate) mod compare;
mod html;
mod human;
pub(crate) mod json;
mod part;
pub(crate) mod phase;
mod relief;
pub(crate) mod svg;
pub(crate) mod task;
mod timeline;
mod verdict;

use zeropilot_ask::{Compared, Memory, NumberFormat, Provenance, TaskName};
use zeropilot_step::memory::{Answer, Question, Relief};
use zeropilot_text::Language;

pub use compare::{ComparisonWords, compare, compare_html, compare_json, compare_words};
pub use html::html;
pub(crate) use human::{own_bounds, precision as precision_name};
pub use json::{Frame, MemoryWords, film, json, words};
pub(crate) use part::term_words;
pub use part::terms;
pub use svg::{legend, svg};
pub use timeline::timeline;
pub use verdict::{Fit, fit, fit_of};

use crate::Layout;

/// A question about memory with its answer.
#[derive(Debug, Clone, Copy)]
pub struct MemoryReport<'a> {
    /// The model as the user named it.
    pub name: &'a str,
    /// What was asked.
    pub question: Question<'a>,
    /// What was found.
    pub answer: &'a Answer,
    /// What would lower it, the most effective first.
    pub reliefs: &'a [Relief],
    /// What would lower that of a host, where it is short.
    pub host_reliefs: &'a [Relief],
    /// The number format that was taken because the config leaves it to the script.
    pub assumed: Option<NumberFormat>,
    /// What the answer rests on.
    pub provenance: &'a Provenance,
    /// What the model is trained for.
    pub task: TaskName,
}

impl<'a> From<&'a Memory> for MemoryReport<'a> {
    fn from(memory: &'a Memory) -> Self {
        Self {
            name: &memory.job.name,
            question: memory.job.question(),
            answer: &memory.answer,
            reliefs: &memory.reliefs,
            host_reliefs: &memory.host_reliefs,
            assumed: memory.job.assumed,
            provenance: &memory.job.provenance,
            task: memory.job.task(),
        }
    }
}

/// What stands above a comparison: the model, how it is trained and on what.
pub fn comparison_head(name: &str, compared: &Compared, language: Language) -> String {
    human::common(name, compared, language)
}

/// The report for people.
pub fn human(report: &MemoryReport<'_>, layout: &Layout) -> String {
    human::report(report, layout)
}

/// A sentence of what was asked, for heads of tables and pictures.
pub(crate) fn headline(name: &str, question: &Question<'_>, language: Language) -> String {
    human::headline(name, question, language)
}

/// A sentence about the micro batch.
pub(crate) fn batch(question: &Question<'_>, language: Language) -> String {
    human::batch(question, language)
}
