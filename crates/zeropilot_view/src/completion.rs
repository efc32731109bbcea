//! What can be written at a place in a config, with a note about each key.

use serde::Serialize;
use zeropilot_config::completion::{Choice, Completion, Start, facts};
use zeropilot_config::schema::EngineVersion;
use zeropilot_text::Language;

use crate::explain::{deprecation, value_words};

/// A short note about a key.
#[derive(Debug, Default)]
pub struct Note {
    /// That the key is deprecated, or its default.
    pub words: Option<String>,
    /// Whether it is deprecated.
    pub is_deprecated: bool,
}

impl Note {
    /// About the key of a choice; a value has none.
    pub fn of(choice: &Choice, version: EngineVersion, language: Language) -> Self {
        let facts = choice.path.as_deref().and_then(|path| facts(path, version));
        let Some(facts) = facts else { return Self::default() };
        match deprecation(&facts, language) {
            Some(words) => Self { words: Some(words), is_deprecated: true },
            None => Self { words: facts.default.as_ref().map(value_words), is_deprecated: false },
        }
    }
}

/// What can be written at a place.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completions {
    /// The first byte of the text that is replaced.
    start: usize,
    /// The byte after it.
    end: usize,
    /// Where a comma is missing before it.
    comma: Option<usize>,
    /// Keys or values.
    choices: Vec<CompletionChoice>,
}

/// A key or a value.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletionChoice {
    /// The name of the key, or the value as it is written.
    label: String,
    /// The path of the key.
    path: Option<String>,
    /// That the key is deprecated, or its default.
    note: Option<String>,
    deprecated: bool,
    /// What is written: the key with its colon, or the value.
    head: String,
    /// A value to begin with, if the colon is written here.
    value: Option<String>,
    /// Whether other values can be chosen.
    several: bool,
    /// What follows the value.
    tail: &'static str,
}

impl Completions {
    /// In words of a language.
    pub fn of(completion: &Completion, version: EngineVersion, language: Language) -> Self {
        let choices = completion.choices.iter();
        Self {
            start: completion.span.start,
            end: completion.span.end,
            comma: completion.comma,
            choices: choices.map(|choice| shape(choice, version, language)).collect(),
        }
    }
}

fn shape(choice: &Choice, version: EngineVersion, language: Language) -> CompletionChoice {
    let note = Note::of(choice, version, language);
    CompletionChoice {
        label: choice.label.clone(),
        path: choice.path.clone(),
        note: note.words,
        deprecated: note.is_deprecated,
        head: choice.head.clone(),
        value: choice.value.as_ref().map(|start| start.plain().to_owned()),
        several: matches!(&choice.value, Some(Start::OneOf(values)) if values.len() > 1),
        tail: choice.tail,
    }
}
