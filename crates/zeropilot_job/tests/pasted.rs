//! Texts as people paste them: each is recognized, and the config in it can be read.

#![cfg(feature = "yaml")]

use std::fs;

use zeropilot_config::syntax::{Value, parse_hjson, parse_json};
use zeropilot_job::{Change, Pasted, PastedKind};

/// Texts as people paste them; each file is named after what its text is.
fn texts() -> Vec<(String, String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pasted");
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("the texts") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (kind, what) = stem.split_once('.').expect("kind and content");
        let text = fs::read_to_string(&path).expect("a text");
        found.push((kind.to_owned(), what.to_owned(), text));
    }
    found.sort();
    assert!(found.len() >= 30);
    found
}

fn pasted(what: &str) -> Pasted {
    let (_, _, text) = texts()
        .into_iter()
        .find(|(kind, name, _)| format!("{kind}.{name}") == what)
        .expect("the text");
    Pasted::of(None, &text)
}

#[test]
fn every_text_is_recognized_and_every_config_is_read() {
    for (kind, what, text) in texts() {
        let pasted = Pasted::of(None, &text);
        assert_eq!(pasted.kind.name(), kind, "{what}: {pasted:?}");
        if pasted.kind != PastedKind::Config {
            continue;
        }
        let config = pasted.config.as_deref().expect("a config");
        if what == "python_expression" {
            continue;
        }
        let document =
            parse_hjson(config).unwrap_or_else(|wrong| panic!("{what}: {wrong:?}\n{config}"));
        let Value::Object(members) = &document.root().value else { panic!("{what}: {config}") };
        let keys: Vec<&str> = members.iter().map(|member| &*member.key).collect();
        assert!(keys.contains(&"zero_optimization") || what == "small", "{what}: {keys:?}");
        if !matches!(what.as_str(), "hjson" | "python_assignment") {
            assert!(parse_json(config).is_ok(), "{what}: {config}");
        }
        let again = Pasted::of(None, config);
        assert_eq!(again.config.as_deref(), Some(config), "{what}");
        assert_eq!(again.changes, [], "{what}");
    }
}

#[test]
fn changes_are_listed() {
    for (what, changes) in [
        ("config.plain", vec![]),
        ("config.hjson", vec![]),
        ("config.fence", vec![Change::Fence]),
        ("config.curly_quotes", vec![Change::Quotes(6)]),
        ("config.full_width", vec![Change::Quotes(3), Change::Punctuation(8)]),
        ("config.hard_spaces", vec![Change::Invisible(4)]),
        ("config.python_dict", vec![Change::Quotes(8), Change::Python(4)]),
        ("config.python_assignment", vec![Change::Around, Change::Python(1)]),
        (
            "config.python_expression",
            vec![
                Change::Around,
                Change::Python(1),
                Change::Expression("args.batch_size".to_owned()),
                Change::Expression("args.stage".to_owned()),
            ],
        ),
        ("config.mail_quote", vec![Change::LinePrefix]),
        ("config.line_numbers", vec![Change::LinePrefix]),
        ("config.escaped", vec![Change::Escapes]),
        ("config.entities", vec![Change::Entities]),
        ("config.cut_off", vec![Change::Closed(2)]),
        ("config.no_braces", vec![Change::Braces]),
        ("config.yaml", vec![Change::Yaml]),
        ("accelerate.fields", vec![Change::Built]),
    ] {
        assert_eq!(pasted(what).changes, changes, "{what}");
    }
}

#[test]
fn guesses_wait_for_a_yes() {
    assert!(pasted("config.fence").is_certain());
    for what in [
        "config.cut_off",
        "config.no_braces",
        "config.python_expression",
        "launch_script.here_document",
    ] {
        assert!(!pasted(what).is_certain(), "{what}");
    }
}

#[test]
fn files_of_frameworks_say_which_config_and_which_arguments() {
    let factory = pasted("llamafactory.sft");
    assert_eq!(factory.named_config.as_deref(), Some("examples/deepspeed/ds_z3_config.json"));
    assert!(
        factory.arguments.contains(&("per_device_train_batch_size".to_owned(), "1".to_owned()))
    );
    let axolotl = pasted("axolotl.full");
    assert!(
        axolotl.arguments.contains(&("per_device_train_batch_size".to_owned(), "2".to_owned()))
    );
    let accelerate = pasted("accelerate.fields");
    let config: serde_json::Value =
        serde_json::from_str(accelerate.config.as_deref().expect("what accelerate builds"))
            .expect("JSON");
    assert_eq!(config["zero_optimization"]["stage"], 3);
    assert_eq!(config["zero_optimization"]["offload_optimizer"]["device"], "cpu");
    assert_eq!(pasted("accelerate.names_config").config, None);
    assert_eq!(
        pasted("accelerate.names_config").named_config.as_deref(),
        Some("configs/zero3.json")
    );
}

#[test]
fn programs_show_the_config_in_them_and_the_file_they_name() {
    assert_eq!(
        pasted("launch_script.one_line").named_config.as_deref(),
        Some("configs/ds_z2.json")
    );
    assert_eq!(pasted("launch_script.slurm").named_config.as_deref(), Some("zero.json"));
    assert!(pasted("launch_script.here_document").config.is_some());
    let config = pasted("training_script.initialize").config.expect("the dictionary");
    assert!(parse_json(&config).is_ok(), "{config}");
}

#[test]
fn the_name_of_a_file_counts() {
    assert_eq!(Pasted::of(Some("train.py"), "x = 1").kind, PastedKind::TrainingScript);
    assert_eq!(Pasted::of(Some("run.sh"), "echo").kind, PastedKind::LaunchScript);
    assert_eq!(Pasted::of(Some("train.log"), "step 1").kind, PastedKind::Log);
    assert_eq!(Pasted::of(Some("ds.json"), "{}").kind, PastedKind::Config);
}

#[test]
fn broken_texts_end() {
    for text in [
        "{",
        "“",
        "{'",
        "{\"zero_optimization\": '",
        "```",
        "```\n```",
        "{'''",
        "{/*",
        "1\n2\n",
        "\u{feff}",
    ] {
        let _ = Pasted::of(None, text);
    }
    let nested = "{".repeat(20_000);
    let _ = Pasted::of(None, &nested);
}
