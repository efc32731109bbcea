//! Questions about a config and its keys.

use serde::Deserialize;
use serde_json::Value;
use zeropilot_ask::Judging;
use zeropilot_config::completion::Completion;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::Settings;
use zeropilot_text::Language;
use zeropilot_view::completion::Completions;
use zeropilot_view::explain::{Asked, Topic, markdown, unknown};
use zeropilot_view::page::{CheckWords, FixWords, TopicWords};
use zeropilot_view::{FileResult, Format, Layout};

use crate::question::{Answer, Problem};

/// A config, and how it is judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// What it is called.
    name: String,
    /// Its content.
    text: String,
    /// The engine; otherwise the newest.
    #[serde(default)]
    deepspeed_version: Option<String>,
    /// What beside it decides.
    #[serde(default)]
    judging: Judging,
}

/// A key or a concept, for an engine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    topic: String,
    #[serde(default)]
    deepspeed_version: Option<String>,
}

fn engine(given: Option<&str>) -> Result<EngineVersion, Problem> {
    let known = given.map_or(Ok(EngineVersion::NEWEST), EngineVersion::nearest);
    known.map_err(|error| format!("error: {error}"))
}

fn layout(format: Format, language: Language) -> Layout {
    Layout { format, language, ..Layout::default() }
}

/// What views write is JSON.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

impl Config {
    fn settings(&self) -> Result<Settings, Problem> {
        let version = engine(self.deepspeed_version.as_deref())?;
        self.judging.settings(version).map_err(|wrong| format!("error: {wrong}"))
    }
}

pub(crate) fn check(config: Config, language: Language) -> Result<Answer, Problem> {
    let settings = config.settings()?;
    let bytes = config.text.as_bytes();
    let report = zeropilot_lint::check(bytes, &settings);
    let file =
        FileResult { name: &config.name, bytes, report: &report, is_named: true, headline: None };
    let words = CheckWords { text: layout(Format::Human, language).file(&file) };
    Ok(Answer::new(value(&layout(Format::Json, language).file(&file)), words))
}

/// A config, and whether fixes may guess.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mended {
    config: Config,
    unsafe_fixes: bool,
}

/// The config with all its fixes, judged again; its own text where there is nothing to fix.
pub(crate) fn fix(asked: Mended, language: Language) -> Result<Answer, Problem> {
    let Config { name, text, .. } = &asked.config;
    let settings = asked.config.settings()?;
    let fixed = zeropilot_lint::fix(text.as_bytes(), &settings, asked.unsafe_fixes);
    let (after, report) = match fixed {
        Some(fixed) => (fixed.text, fixed.report),
        None => (text.clone(), zeropilot_lint::check(text.as_bytes(), &settings)),
    };
    let bytes = after.as_bytes();
    let file = FileResult { name, bytes, report: &report, is_named: true, headline: None };
    let json = value(&layout(Format::Json, language).file(&file));
    let diff = similar::TextDiff::from_lines(text.as_str(), after.as_str());
    let diff = diff.unified_diff().context_radius(3).header(name, name).to_string();
    Ok(Answer::new(json, FixWords { text: after, diff }))
}

pub(crate) fn explain(name: Name, language: Language) -> Result<Answer, Problem> {
    let version = engine(name.deepspeed_version.as_deref())?;
    let asked = Asked::find(&name.topic);
    let topic = match &asked {
        Asked::Concept(concept) => Topic::Concept(concept),
        Asked::Key(found) => Topic::Key(found),
        Asked::Unknown => return Err(unknown(&name.topic, language)),
    };
    let words = TopicWords {
        text: layout(Format::Human, language).topic(&topic),
        markdown: markdown(&name.topic, version, language),
    };
    Ok(Answer::new(value(&layout(Format::Json, language).topic(&topic)), words))
}

/// A place in a config, as a byte offset.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    text: String,
    offset: usize,
    #[serde(default)]
    deepspeed_version: Option<String>,
}

pub(crate) fn complete(place: Place, language: Language) -> Result<Answer, Problem> {
    let version = engine(place.deepspeed_version.as_deref())?;
    let found = Completion::at(&place.text, place.offset, version);
    Ok(Answer::new(Completions::of(&found, version, language), ()))
}
