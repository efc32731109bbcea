//! Results as words and layouts, in English and Chinese.
//!
//! A [`Layout`] turns the [`FileResult`]s of a check into one of five formats, piece by piece, so
//! that any number of files can be written without being held: [`Layout::opening`], then
//! [`Layout::file`] for each, then [`Layout::closing`]. [`creation`] words what was written and why not.
//! What a result means was decided elsewhere.

pub mod accuracy;
pub mod advisory;
pub mod agent;
#[cfg(feature = "schema")]
pub mod answers;
pub mod calibrate;
pub mod completion;
mod concise;
mod cost;
pub mod creation;
pub mod diagnose;
pub mod doctor;
mod escape;
mod estimate;
pub mod explain;
mod github;
pub mod gpus;
mod html;
mod human;
#[cfg(feature = "scripts")]
pub mod job;
mod json;
mod json_schema;
pub mod listing;
pub mod manual;
pub mod memory;
pub mod model;
mod model_config;
mod notebook;
mod objection;
pub mod page;
pub mod pasted;
mod place;
pub mod plan;
pub mod problem;
pub mod provenance;
mod resolved;
pub mod run;
mod sarif;
#[cfg(feature = "project")]
pub mod settings;
pub mod simulate;
mod strategy;
mod summary;
pub mod system;
pub mod talk;
mod wrap;

pub use escape::escaped;
pub use json_schema::json_schema;
pub use notebook::{file_html, text_html, topic_html};
pub use resolved::resolved;
pub use strategy::strategy_words;
pub use summary::Summary;

use zeropilot_lint::Report;
use zeropilot_text::Language;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// For people: each finding with its place in the file, why it matters and what to do.
    #[default]
    Human,
    /// One line per finding.
    Concise,
    /// One array with everything that is known about each file.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations for GitHub workflows.
    Github,
}

/// A format with what it needs to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    /// The format.
    pub format: Format,
    /// The language of sentences.
    pub language: Language,
    /// Whether to use colours, in formats for people.
    pub color: bool,
    /// Columns of the terminal, if there is one.
    pub width: Option<usize>,
    /// Whether to leave out what is no finding.
    pub quiet: bool,
}

/// A checked file.
#[derive(Debug, Clone, Copy)]
pub struct FileResult<'a> {
    /// Its path as the user named it.
    pub name: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
    /// What was found.
    pub report: &'a Report,
    /// Whether the user named this very file, rather than a directory that holds it.
    pub is_named: bool,
    /// What is said of it instead of a verdict, where it is no config.
    pub headline: Option<&'a str>,
}

impl Layout {
    /// What stands before all files.
    pub fn opening(&self) -> String {
        match self.format {
            Format::Json => "[".to_owned(),
            Format::Sarif => sarif::opening(self.language),
            _ => String::new(),
        }
    }

    /// What is to be said about a file; may be empty.
    pub fn file(&self, file: &FileResult<'_>) -> String {
        match self.format {
            Format::Human => human::file(self, file),
            Format::Concise => concise::file(self.language, file),
            Format::Json => json::file(self.language, file),
            Format::Sarif => sarif::file(self.language, file),
            Format::Github => github::file(self.language, file),
        }
    }

    /// What is to be said about a file with the findings that it had before, under other circumstances.
    pub fn repeated(&self, file: &FileResult<'_>) -> String {
        match self.format {
            Format::Human => human::repeated(self, file),
            _ => self.file(file),
        }
    }

    /// What stands between two files that both have something to say.
    pub fn separator(&self) -> &'static str {
        match self.format {
            Format::Json | Format::Sarif => ",\n",
            _ => "",
        }
    }

    /// What stands after all files.
    pub fn closing(&self, summary: &Summary) -> String {
        match self.format {
            Format::Human if !self.quiet && summary.files > 0 => summary.words(self.language),
            Format::Json => "]\n".to_owned(),
            Format::Sarif => sarif::CLOSING.to_owned(),
            _ => String::new(),
        }
    }
}
