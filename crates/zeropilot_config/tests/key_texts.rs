//! The texts about keys are complete, name nothing that does not exist, and cite places that the
//! engine has.

use serde::Deserialize;
use serde_json::Value;
use zeropilot_config::keys::{self, Claim, KeyText, NoCost, Presence, Takes, Unit, Words};
use zeropilot_config::schema::{EngineVersion, FieldType};
use zeropilot_oracle::engine_code;

#[test]
fn no_key_of_the_newest_engine_is_without_its_text() {
    let schema = EngineVersion::NEWEST.schema();
    let without: Vec<String> = schema
        .paths()
        .into_iter()
        .filter(|path| keys::canonical(path).and_then(|path| keys::text(&path)).is_none())
        .collect();
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn no_text_is_about_a_key_that_does_not_exist() {
    let schema = EngineVersion::NEWEST.schema();
    let extra: Vec<&str> =
        keys::all().map(|(path, _)| path).filter(|path| schema.locate(path).is_none()).collect();
    assert!(extra.is_empty(), "{extra:#?}");
}

#[test]
fn every_text_says_what_it_costs_in_both_languages() {
    for (path, text) in keys::all() {
        let costs = text.memory.is_some() || text.speed.is_some();
        assert_ne!(text.no_cost.is_some(), costs, "{path}: either a cost or none");
        assert!(!text.source.is_empty(), "{path}: no source");
        for words in all_words(text) {
            assert!(is_sentence(&words.en), "{path}: {}", words.en);
            assert!(is_chinese_sentence(&words.zh), "{path}: {}", words.zh);
            assert_eq!(code(&words.en), code(&words.zh), "{path}: both name the same keys");
        }
    }
}

fn all_words(text: &KeyText) -> impl Iterator<Item = &Words> {
    [Some(&text.what), text.memory.as_ref(), text.speed.as_ref(), text.mistake.as_ref()]
        .into_iter()
        .flatten()
}

fn is_sentence(text: &str) -> bool {
    text.ends_with('.') && !text.chars().any(is_han)
}

fn is_chinese_sentence(text: &str) -> bool {
    text.ends_with('。') && text.chars().any(is_han)
}

fn is_han(character: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&character)
}

/// What stands in backticks, sorted: names are the same in every language.
fn code(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A unit is more than a type, but must not contradict it.
#[test]
fn units_agree_with_the_types_in_the_schema() {
    let schema = EngineVersion::NEWEST.schema();
    for (path, text) in keys::all() {
        let Presence::Read(facts) = keys::presence(schema, path) else { continue };
        let Takes::Typed(kind, _) = facts.takes else { continue };
        let kind = match kind {
            FieldType::Optional(inner) => inner.as_ref(),
            kind => kind,
        };
        let fits = match kind {
            FieldType::Bool => text.unit == Unit::Boolean,
            FieldType::Path => text.unit == Unit::Path,
            FieldType::IntEnum(_) | FieldType::StrEnum(_) | FieldType::Literal(_) => {
                text.unit == Unit::Choice
            }
            FieldType::List(_) | FieldType::Tuple => text.unit == Unit::List,
            FieldType::Str => matches!(text.unit, Unit::Text | Unit::Choice | Unit::Path),
            FieldType::Int | FieldType::Float => !matches!(
                text.unit,
                Unit::Boolean | Unit::Choice | Unit::Path | Unit::Text | Unit::List | Unit::Section
            ),
            _ => true,
        };
        assert!(fits, "{path}: {:?} for {kind:?}", text.unit);
    }
}

/// A key that is needed exists, and takes each value that is named.
#[test]
fn every_need_is_a_value_that_the_schema_allows() {
    let schema = EngineVersion::NEWEST.schema();
    for (path, text) in keys::all() {
        for (key, values) in &text.needs {
            let Presence::Read(facts) = keys::presence(schema, key) else {
                panic!("{path} needs {key}, which DeepSpeed does not read")
            };
            assert_ne!(key, path);
            assert!(!values.is_empty(), "{path}: no value of {key}");
            let Takes::Typed(kind, _) = facts.takes else { continue };
            let kind = match kind {
                FieldType::Optional(inner) => inner.as_ref(),
                kind => kind,
            };
            let fits = |value: &Value| match (kind, value) {
                (FieldType::Bool, value) => value.is_boolean(),
                (FieldType::IntEnum(all), value) => all.iter().any(|one| value == one),
                (FieldType::StrEnum(all) | FieldType::Literal(all), Value::String(value)) => {
                    all.contains(value)
                }
                (FieldType::Int | FieldType::Float, value) => value.is_number(),
                (FieldType::Str, value) => value.is_string(),
                _ => false,
            };
            assert!(values.iter().all(fits), "{path} needs {key} {values:?}, a {kind:?}");
        }
    }
}

/// `knowledge/effects/measured.json`, as far as it is compared with the texts.
#[derive(Deserialize)]
struct Measured {
    baselines: Vec<Baseline>,
    cases: Vec<Case>,
    without_needs: Vec<Case>,
}

#[derive(Deserialize)]
struct Baseline {
    name: String,
    config: Value,
}

#[derive(Deserialize)]
struct Case {
    on: String,
    key: String,
    #[serde(default)]
    same: bool,
    refused: Option<String>,
}

impl Measured {
    fn read() -> Measured {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/effects/measured.json");
        let text = std::fs::read_to_string(path).expect("a file");
        serde_json::from_str(&text).expect("measured runs")
    }

    /// The needs of a case's key that its baseline lacks.
    fn lacking(&self, case: &Case) -> Vec<&'static str> {
        let Some(text) = keys::text(&case.key) else { return Vec::new() };
        let on = self.baselines.iter().find(|baseline| baseline.name == case.on).expect("named");
        let lacks =
            |(key, values): &(&String, &Vec<Value>)| !values.contains(&value_of(&on.config, key));
        text.needs.iter().filter(lacks).map(|(key, _)| key.as_str()).collect()
    }
}

/// The value of a key in a config, or its default.
fn value_of(config: &Value, path: &str) -> Value {
    match config.pointer(&format!("/{}", path.replace('.', "/"))) {
        Some(value) => value.clone(),
        None => match keys::presence(EngineVersion::NEWEST.schema(), path) {
            Presence::Read(facts) => serde_json::to_value(&facts.default).expect("a default"),
            _ => Value::Null,
        },
    }
}

/// On real ranks, a key without what it needs leaves every byte and every call as they were.
#[test]
fn a_key_without_what_it_needs_changes_nothing() {
    let measured = Measured::read();
    for case in measured.cases.iter().chain(&measured.without_needs) {
        let lacking = measured.lacking(case);
        let where_it_ran = format!("{} on {}: lacks {lacking:?}", case.key, case.on);
        assert!(lacking.is_empty() || case.same, "{where_it_ran}: {:?}", case.refused);
    }
    for case in &measured.without_needs {
        assert!(!measured.lacking(case).is_empty(), "{} on {} lacks nothing", case.key, case.on);
    }
}

/// A text says "read in source" of exactly what no recorded run shows.
#[test]
fn what_no_run_shows_is_called_unmeasured() {
    let measured = Measured::read();
    let is_about = |case: &Case, path: &str| {
        let inside = case.key.strip_prefix(path);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut wrong = Vec::new();
    for (path, text) in keys::all() {
        let is_run = |case: &&Case| {
            is_about(case, path) && case.refused.is_none() && measured.lacking(case).is_empty()
        };
        let mut runs = measured.cases.iter().filter(is_run).peekable();
        // Two ranks of one machine show nothing of what happens between nodes.
        let has_run = runs.peek().is_some() && !text.several_nodes;
        let unchanged = has_run && runs.all(|case| case.same);
        if unchanged != text.unchanged {
            wrong.push(format!("{path}: unchanged {unchanged}"));
        }
        let is_shown = |need: &String| {
            let mut cases = measured.cases.iter().chain(&measured.without_needs);
            cases
                .any(|case| is_about(case, path) && measured.lacking(case).contains(&need.as_str()))
        };
        let mut unmeasured = Vec::new();
        if !has_run {
            unmeasured.push(Claim::Effect);
        }
        if !text.needs.keys().all(is_shown) {
            unmeasured.push(Claim::Needs);
        }
        if unmeasured != text.unmeasured {
            wrong.push(format!("{path}: {unmeasured:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A key that replaced another must not be called unread, and one that goes nowhere must be.
#[test]
fn a_deprecated_key_whose_value_is_dropped_is_called_unread() {
    let schema = EngineVersion::NEWEST.schema();
    for (path, text) in keys::all() {
        let Presence::Read(facts) = keys::presence(schema, path) else { continue };
        if let Some(deprecation) = facts.deprecated {
            assert_eq!(deprecation.moves, text.no_cost != Some(NoCost::Unread), "{path}");
        }
    }
}

#[test]
fn every_source_is_there_in_the_engine() {
    let Some(engine) = engine_code() else { return };
    for (path, text) in keys::all() {
        for source in text.source.iter().filter(|source| !source.starts_with("https://")) {
            let (file, symbol) = source.split_once(": ").expect("file: symbol");
            let code = std::fs::read(engine.join(file))
                .unwrap_or_else(|error| panic!("{path}: {file}: {error}"));
            let code = String::from_utf8_lossy(&code);
            assert!(code.contains(symbol), "{path}: no `{symbol}` in {file}");
        }
    }
}
