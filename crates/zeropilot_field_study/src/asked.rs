//! Every error in what projects ship, asked of the real engine: with the other errors of its file
//! taken out the engine refuses the file, and without this one too it takes it.
//!
//! Placeholders are taken out, since a front end fills them before the engine sees them, and batch
//! sizes are those of one rank. An error about an optimizer shows when the engine is built, so that
//! is done with its section alone.

use std::path::PathBuf;

use serde_json::{Value, json};
use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::PyValue;
use zeropilot_config::syntax::parse_hjson;
use zeropilot_lint::Severity;

use crate::shipped::{Preset, shipped};
use zeropilot_oracle::Oracle;

const BATCH_KEYS: [&str; 3] =
    ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"];

/// A config for one rank, without placeholders.
fn for_one_rank(text: &str) -> Value {
    // Some of them have commas at the end or no quotes, which the engine reads.
    let document = parse_hjson(text).expect("a config");
    let mut config = serde_json::to_value(PyValue::from(document.root())).expect("a value");
    drop_placeholders(&mut config);
    let members = config.as_object_mut().expect("an object");
    members.retain(|key, _| !BATCH_KEYS.contains(&key.as_str()));
    members.insert(BATCH_KEYS[1].to_owned(), json!(1));
    config
}

fn drop_placeholders(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| *member != "auto");
        members.values_mut().for_each(drop_placeholders);
    }
}

fn without(mut config: Value, path: &KeyPath) -> Value {
    // An optimizer without a type is no optimizer.
    let parts: &[String] = if path.key() == "type" { &path.0[..1] } else { &path.0 };
    let (key, parents) = parts.split_last().expect("a key");
    let object = parents.iter().try_fold(&mut config, |node, part| node.get_mut(part));
    let removed = object.and_then(Value::as_object_mut).and_then(|members| members.remove(key));
    assert!(removed.is_some(), "{path} in {config}");
    config
}

/// What to ask about each error of a file: with it and without it, and whether the engine must be
/// built for that.
fn questions(preset: &Preset, text: &str) -> Vec<(String, bool, [Value; 2])> {
    let is_error = |severity| severity == Severity::Error;
    let errors: Vec<&KeyPath> = preset
        .found
        .iter()
        .filter(|found| is_error(found.severity))
        .map(|found| &found.path)
        .collect();
    let whole = || for_one_rank(text);
    let ask = |path: &&KeyPath| {
        let others = errors.iter().filter(|other| *other != path);
        let alone = others.fold(whole(), |config, other| without(config, other));
        let is_built = path.0[0] == "optimizer";
        let alone = if is_built {
            json!({"train_micro_batch_size_per_gpu": 1, "optimizer": alone["optimizer"]})
        } else {
            alone
        };
        let fixed = without(alone.clone(), path);
        (format!("{} {path}", preset.source.path), is_built, [alone, fixed])
    };
    errors.iter().map(ask).collect()
}

#[test]
fn the_engine_refuses_every_error_in_what_projects_ship_and_nothing_else() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(corpus) = std::env::var_os("ZEROPILOT_CORPUS").map(PathBuf::from) else {
        return zeropilot_oracle::missing("ZEROPILOT_CORPUS");
    };
    let is_another = zeropilot_oracle::setting::<u8>("ZEROPILOT_FIELD_STUDY") == Some(0);
    if is_another && !corpus.join("index.jsonl").exists() {
        eprintln!("skipped: ZEROPILOT_CORPUS is not the corpus of the field study");
        return;
    }
    let mut asked = Vec::new();
    for preset in shipped(&corpus).expect("a corpus with an index").iter().flat_map(|(_, all)| all)
    {
        let text = std::fs::read_to_string(corpus.join(&preset.source.file)).expect("a file");
        asked.extend(questions(preset, &text));
    }
    assert!(asked.len() >= 10, "only {}", asked.len());
    for (server, is_built, yes) in
        [("verdict_server.py", false, "accept"), ("start_server.py", true, "runs")]
    {
        let pairs: Vec<_> = asked.iter().filter(|(_, built, _)| *built == is_built).collect();
        let texts = pairs.iter().flat_map(|(_, _, configs)| configs);
        let questions =
            texts.map(|config| json!({"text": config.to_string(), "world_size": 1})).collect();
        let answers = Oracle::start(&home, server).answers(questions);
        for ((what, _, _), answer) in pairs.iter().zip(answers.chunks(2)) {
            assert_eq!(answer[0][yes], false, "{what} is accepted");
            assert_eq!(answer[1][yes], true, "{what} is not all: {}", answer[1]["message"]);
        }
    }
}
