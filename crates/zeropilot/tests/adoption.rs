//! Checks in a repository that has findings already: what fails, what a baseline leaves out, and the hook and the
//! action that projects check with.

#[path = "adoption/action.rs"]
mod action;
#[path = "adoption/hook.rs"]
mod hook;

mod command;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use command::directory;

/// One error, one warning and one note for 8 ranks.
const CONFIG: &str = r#"{
  "train_batch_size": 12,
  "nobody": 1,
  "zero_optimization": {"stage": 2, "sub_group_size": 1000000000}
}
"#;

fn check(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory)
        .env_clear()
        .args(["check", "--lang", "en", "--deepspeed-version", "0.19.8"])
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn codes(output: &Output) -> Vec<String> {
    let lines = told(output);
    let code = |line: &str| {
        let words: Vec<&str> = line.split(": ").nth(1).unwrap_or("").split(' ').collect();
        words.iter().take(2).copied().collect::<Vec<_>>().join(" ")
    };
    lines.lines().map(code).collect()
}

#[test]
fn a_severity_decides_what_fails_and_every_finding_is_told() {
    let directory = directory(&[("ds.json", CONFIG)]);
    let failing = |limit: &str, ranks: &str| {
        let arguments =
            ["ds.json", "--output-format", "concise", "--world-size", ranks, "--fail-on", limit];
        let output = check(directory.path(), &arguments);
        (output.status.code(), codes(&output))
    };
    let all = ["error B01", "warning K01", "note G05"].map(str::to_owned).to_vec();
    let one = [("error", 1), ("warning", 1), ("note", 1), ("never", 0)];
    for (limit, code) in one {
        assert_eq!(failing(limit, "8"), (Some(code), all.clone()), "{limit}");
    }
    let milder = [("error", 0), ("warning", 1), ("note", 1), ("never", 0)];
    for (limit, code) in milder {
        assert_eq!(failing(limit, "4"), (Some(code), all[1..].to_vec()), "{limit}");
    }
    let output = check(directory.path(), &["ds.json", "--fail-on", "all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("error, warning, note or never"), "{}", said(&output));
}

#[test]
fn a_baseline_leaves_out_what_was_there_and_tells_what_is_new() {
    let directory = directory(&[("conf/ds.json", CONFIG)]);
    let root = directory.path();
    let written = check(root, &[".", "--world-size", "8", "--write-baseline", "known.json"]);
    assert_eq!((written.status.code(), told(&written)), (Some(0), String::new()));
    assert!(
        said(&written).contains("wrote 3 findings in 1 file to known.json"),
        "{}",
        said(&written)
    );
    let again = ["conf/ds.json", "--world-size", "8", "--baseline", "known.json"];
    let output = check(root, &again);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    for piece in ["rejected", "3 findings are in the baseline", "nothing found, 3 in the baseline"]
    {
        assert!(told(&output).contains(piece), "{piece}: {}", told(&output));
    }
    // Lines move, values change, another key is misspelt.
    let moved =
        CONFIG.replace("{\n  \"train", "{\n\n\n  \"other\": 1,\n  \"train").replace("12", "13");
    fs::write(root.join("conf/ds.json"), moved).expect("a file");
    let concise = [&again[..], &["--output-format", "concise"]].concat();
    let output = check(
        &root.join("conf"),
        &[
            "ds.json",
            "--world-size",
            "8",
            "--baseline",
            "../known.json",
            "--output-format",
            "concise",
        ],
    );
    assert_eq!((output.status.code(), codes(&output)), (Some(1), vec!["warning K01".to_owned()]));
    assert!(told(&output).contains("`other`"), "{}", told(&output));
    let output = check(root, &[&again[..], &["--json"]].concat());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&answer[0]["in_baseline"], &answer[0]["verdict"]), (&3.into(), &"reject".into()));
    // What is gone is said, so that the file shrinks.
    fs::write(root.join("conf/ds.json"), "{\"train_batch_size\": 8}").expect("a file");
    assert_eq!(check(root, &concise).status.code(), Some(0));
    let output = check(root, &again);
    assert!(
        said(&output).contains("3 findings are in known.json and no longer"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_baseline_holds_for_configs_that_scripts_name() {
    let directory = directory(&[
        (
            "run.sh",
            "export CUDA_VISIBLE_DEVICES=2,3\ndeepspeed --num_gpus 2 train.py --deepspeed_config conf/ds.json\n",
        ),
        ("conf/ds.json", CONFIG),
    ]);
    let root = directory.path();
    check(root, &["--job", ".", "--write-baseline", "known.json"]);
    let known = fs::read_to_string(root.join("known.json")).expect("a baseline");
    for piece in [
        "\"file\":\"run.sh\",\"rule\":\"L02\"",
        "\"file\":\"conf/ds.json\",\"rule\":\"K01\",\"key\":\"nobody\"",
    ] {
        assert!(known.contains(piece), "{piece}: {known}");
    }
    let output = check(root, &["run.sh", "--baseline", "known.json", "--output-format", "concise"]);
    assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
    let text = fs::read_to_string(root.join("run.sh")).expect("a script");
    fs::write(root.join("run.sh"), format!("# moved\n\n{text}")).expect("a script");
    let output = check(root, &["run.sh", "--baseline", "known.json", "--output-format", "concise"]);
    assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
}

#[test]
fn a_project_settles_it_once() {
    let settings = "world-size = 8\nbaseline = \"known.json\"\nfail-on = \"error\"\nexclude = [\"vendor\"]\n[paths.\"four/*\"]\nworld-size = 4\n[per-file-ignores]\n\"conf/**\" = [\"G05\"]\n";
    let directory = directory(&[
        ("zeropilot.toml", settings),
        ("ds.json", CONFIG),
        ("four/ds.json", CONFIG),
        ("vendor/deep/ds.json", CONFIG),
        ("run.sh", "deepspeed --num_gpus 4 train.py --deepspeed_config conf/ds.json\n"),
        ("conf/ds.json", CONFIG),
    ]);
    let root = directory.path();
    let output = check(root, &["ds.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--write-baseline"), "{}", said(&output));
    check(root, &["ds.json", "--write-baseline", "known.json"]);
    let output =
        check(root, &["ds.json", "four", "vendor/deep/ds.json", "--output-format", "concise"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let lines = told(&output);
    assert!(
        !lines.contains("\nds.json") && lines.contains("four/ds.json:3:3: warning K01"),
        "{lines}"
    );
    assert!(!lines.contains("four/ds.json:2"), "{lines}");
    assert!(lines.contains("vendor/deep/ds.json:2"), "a file that is named is checked: {lines}");
    let output = check(root, &[".", "--output-format", "concise"]);
    assert!(!told(&output).contains("vendor"), "{}", told(&output));
    let output = check(root, &["four", "--world-size", "8", "--output-format", "concise"]);
    assert!(told(&output).contains("error B01"), "flags win: {}", told(&output));
    let output = check(root, &["run.sh", "--output-format", "concise"]);
    assert!(told(&output).contains("conf/ds.json:3:3: warning K01"), "{}", told(&output));
    assert!(!told(&output).contains("G05"), "a config that a script names: {}", told(&output));
}

#[test]
fn what_is_no_baseline_is_refused() {
    let directory = directory(&[("ds.json", CONFIG), ("known.json", "[]")]);
    let output = check(directory.path(), &["ds.json", "--baseline", "known.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("`known.json` is not a baseline"), "{}", said(&output));
    let output = check(directory.path(), &["ds.json", "--write-baseline", "none/known.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("cannot write the baseline"), "{}", said(&output));
    let output = check(directory.path(), &["ds.json", "--write-baseline", "ds.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("it is not overwritten"), "{}", said(&output));
    let kept = fs::read_to_string(directory.path().join("ds.json")).expect("the config");
    assert_eq!(kept, CONFIG);
}
