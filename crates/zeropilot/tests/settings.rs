//! `zeropilot.toml` and `[tool.zeropilot]`, as a user has them.

mod command;

use std::process::{Command, Output};

use command::directory;
use tempfile::TempDir;

const CONFIG: &str = r#"{"train_batch_size": 8, "gradient_accumulation_steps": 2, "nobody": 1}"#;

fn run(directory: &TempDir, within: &str, arguments: &[&str]) -> Output {
    check(directory, within, "concise", arguments)
}

fn check(directory: &TempDir, within: &str, format: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path().join(within))
        .env_clear()
        .args(["check", "--output-format", format])
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn the_nearest_settings_hold_and_flags_win() {
    let directory = directory(&[
        ("zeropilot.toml", "world-size = 3\nlanguage = \"zh\"\nignore = [\"K01\"]\n"),
        ("deep/er/ds.json", CONFIG),
    ]);
    let output = run(&directory, "deep/er", &["ds.json"]);
    assert!(told(&output).contains("3"), "{}", told(&output));
    assert!(told(&output).contains("B01") && !told(&output).contains("K01"), "{}", told(&output));
    let output = run(&directory, "deep/er", &["ds.json", "--world-size", "2", "--lang", "en"]);
    assert_eq!((output.status.code(), told(&output).as_str()), (Some(0), ""));
    let output = run(&directory, "deep/er", &["ds.json", "--no-settings", "--world-size", "2"]);
    assert!(
        told(&output).contains("K01 DeepSpeed does not read the key `nobody`"),
        "{}",
        told(&output)
    );
}

#[test]
fn a_pyproject_without_our_table_is_passed_over() {
    let directory = directory(&[
        ("pyproject.toml", "[tool.zeropilot]\nselect = [\"K\"]\nworld-size = 3\n"),
        ("sub/pyproject.toml", "[project]\nname = \"x\"\n"),
        ("sub/ds.json", CONFIG),
    ]);
    let output = run(&directory, "sub", &["ds.json"]);
    assert!(told(&output).contains("K01") && !told(&output).contains("B01"), "{}", told(&output));
}

#[test]
fn rules_are_ignored_in_some_files() {
    let settings = "world-size = 2\n[per-file-ignores]\n\"tests/**\" = [\"K\"]\n";
    let directory = directory(&[
        ("zeropilot.toml", settings),
        ("tests/a/ds.json", CONFIG),
        ("src/ds.json", CONFIG),
    ]);
    let output = run(&directory, "", &["."]);
    assert_eq!(told(&output).lines().count(), 1, "{}", told(&output));
    assert!(told(&output).contains("src/ds.json"), "{}", told(&output));
}

#[test]
fn findings_are_rated_and_verdicts_stay() {
    let settings = "world-size = 2\n[severity]\nK = \"note\"\n[paths.\"strict/**\".severity]\nK01 = \"error\"\n[paths.\"old/**\"]\nseverity = { K01 = \"off\" }\n";
    let directory = directory(&[
        ("zeropilot.toml", settings),
        ("ds.json", CONFIG),
        ("strict/ds.json", CONFIG),
        ("old/ds.json", CONFIG),
    ]);
    let output = run(&directory, "", &["ds.json"]);
    assert!(told(&output).contains("note K01"), "{}", told(&output));
    assert_eq!(output.status.code(), Some(0), "a note does not fail a check");
    let output = run(&directory, "", &["ds.json", "--no-settings", "--world-size", "2"]);
    assert!(told(&output).contains("warning K01"), "{}", told(&output));
    assert_eq!(output.status.code(), Some(1));
    let output = run(&directory, "", &["strict/ds.json", "--fail-on", "error"]);
    assert!(told(&output).contains("error K01"), "{}", told(&output));
    assert_eq!(output.status.code(), Some(1));
    let output = check(&directory, "", "json", &["strict/ds.json"]);
    let answer: serde_json::Value = serde_json::from_str(&told(&output)).expect("JSON");
    assert_eq!(answer[0]["verdict"], "accept", "it trains: {answer:#}");
    let output = run(&directory, "", &["old/ds.json"]);
    assert_eq!((output.status.code(), told(&output).as_str()), (Some(0), ""));
}

#[test]
fn what_is_refused_fails_however_it_is_rated() {
    let settings = "world-size = 3\n[severity]\nB01 = \"note\"\nK01 = \"off\"\n";
    let directory = directory(&[("zeropilot.toml", settings), ("ds.json", CONFIG)]);
    for arguments in [&["ds.json"][..], &["ds.json", "--fail-on", "error"]] {
        let output = run(&directory, "", arguments);
        assert!(told(&output).contains("note B01"), "{}", told(&output));
        assert_eq!((output.status.code(), told(&output).lines().count()), (Some(1), 1));
    }
    let output = run(&directory, "", &["ds.json", "--fail-on", "never"]);
    assert_eq!(output.status.code(), Some(0));
    // A file with a wrong rating is not half used.
    let wrong = "[severity]\nB01 = \"warn\"\n";
    std::fs::write(directory.path().join("zeropilot.toml"), wrong).expect("a file");
    let output = run(&directory, "", &["ds.json"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("`error`, `warning`, `note`, `off`"), "{said}");
    assert!(said.contains("zeropilot.toml:2:7"), "{said}");
}

#[test]
fn a_mistake_is_shown_where_it_stands() {
    let directory =
        directory(&[("zeropilot.toml", "world-size = 8\nworld_sise = 8\n"), ("ds.json", CONFIG)]);
    let output = run(&directory, "", &["ds.json"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for piece in [
        "there is no setting `world_sise`; did you mean `world-size`?",
        "zeropilot.toml:2:1",
        "^^^^^^^^^^",
    ] {
        assert!(said.contains(piece), "{said}");
    }
    let output = run(&directory, "", &["ds.json", "--lang", "zh"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("是不是想写 `world-size`"));
}
