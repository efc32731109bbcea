//! The texts about keys are complete, name nothing that does not exist, and cite places that the
//! engine has.

use std::path::{Path, PathBuf};

use zeropilot_config::keys::{self, KeyText, NoCost, Presence, Takes, Unit, Words};
use zeropilot_config::schema::{EngineVersion, FieldType};
use zeropilot_oracle::home;

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
    let Some(home) = home() else { return };
    let engine = package(&home.join("engine"));
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

/// The engine's package in a virtual environment.
fn package(environment: &Path) -> PathBuf {
    let library = std::fs::read_dir(environment.join("lib")).expect("a virtual environment");
    library
        .map(|entry| entry.expect("an entry").path().join("site-packages/deepspeed"))
        .find(|package| package.is_dir())
        .expect("the engine is installed")
}
