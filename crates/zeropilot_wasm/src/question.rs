//! A question as JSON, and its answer.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use zeropilot_text::Language;
use zeropilot_view::problem;

/// The words of a problem.
pub(crate) type Problem = String;

/// An answer: what the command line prints with `--json`, and words beside it.
#[derive(Debug)]
pub(crate) struct Answer {
    json: Value,
    words: Value,
}

impl Answer {
    /// Text and numbers always serialize.
    pub(crate) fn new(json: impl Serialize, words: impl Serialize) -> Self {
        Self {
            json: serde_json::to_value(json).unwrap_or_default(),
            words: serde_json::to_value(words).unwrap_or_default(),
        }
    }
}

/// Reads a question, has it answered and writes the answer.
pub(crate) fn put<Q: DeserializeOwned>(
    text: &str,
    answer: fn(Q, Language) -> Result<Answer, Problem>,
) -> String {
    let answered = read(text).and_then(|(language, question)| answer(question, language));
    let value = match answered {
        Ok(Answer { json, words }) => json!({"json": json, "words": words}),
        Err(problem) => json!({"problem": problem.trim_end()}),
    };
    value.to_string()
}

/// The language is said beside every question.
fn read<Q: DeserializeOwned>(text: &str) -> Result<(Language, Q), Problem> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| format!("error: {error}"))?;
    let name = value.as_object_mut().and_then(|question| question.remove("language"));
    let language = name.as_ref().and_then(Value::as_str).and_then(Language::from_name);
    let language = language.unwrap_or_default();
    let question = serde_path_to_error::deserialize(value).map_err(|error| {
        let place = error.path().to_string();
        let why = error.into_inner().to_string();
        match place.rsplit('.').next() {
            // The only text of a form that is read here.
            Some(name @ "host_ram") => problem::value(name, &why, language),
            _ => format!("error: {place}: {why}"),
        }
    })?;
    Ok((language, question))
}
