//! The steps of `action.yml`, run as a runner runs them: `bash -e` with the inputs as variables. The runner itself and the
//! installation from PyPI are not tried.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{CONFIG, directory, told};

const ACTION: &str = include_str!("../../../../action.yml");

/// The script of a step.
fn script(step: &str) -> String {
    let (_, rest) = ACTION.split_once(&format!("- name: {step}\n")).expect("a step");
    let (_, rest) = rest.split_once("run: |\n").expect("a script");
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("        "));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

/// The variables that a step gets from inputs.
fn variables(step: &str) -> Vec<(&'static str, &'static str)> {
    let (_, rest) = ACTION.split_once(&format!("- name: {step}\n")).expect("a step");
    let (env, _) = rest.split_once("run: |\n").expect("a script");
    let input = |line: &'static str| {
        let (name, value) = line.trim().split_once(": ${{ inputs.")?;
        Some((name, value.trim_end_matches(" }}")))
    };
    env.lines().filter_map(input).collect()
}

/// Runs a step, with this command on the path.
fn run(step: &str, root: &Path, inputs: &[(&str, &str)]) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_zeropilot")).parent().expect("a directory");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let given = variables(step).into_iter().map(|(variable, input)| {
        let value = inputs.iter().find(|(name, _)| *name == input);
        (variable, value.map_or("", |(_, value)| value))
    });
    Command::new("bash")
        .current_dir(root)
        .env_clear()
        .env("PATH", path)
        .envs(given)
        .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &script(step)])
        .output()
        .expect("bash runs")
}

#[test]
fn the_action_annotates_and_fails() {
    let directory = directory(&[("conf/ds.json", CONFIG)]);
    let root = directory.path();
    let install = run("Install zeropilot", root, &[]);
    assert!(install.status.success(), "the command on the path is taken: {install:?}");
    let options = "--world-size 8 --lang en --deepspeed-version 0.19.8";
    let output = run("Check", root, &[("paths", "conf"), ("args", options)]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let annotation = "::error file=conf/ds.json,line=2,";
    assert!(told(&output).starts_with(annotation), "{}", told(&output));
    let milder = format!("{options} --fail-on never");
    let output = run("Check", root, &[("paths", "conf"), ("args", &milder)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    fs::write(root.join("conf/ds.json"), "{\"train_batch_size\": 8}").expect("a file");
    let output = run("Check", root, &[("paths", "."), ("args", options)]);
    assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
}

#[test]
fn every_input_is_described_and_used() {
    let (_, inputs) = ACTION.split_once("inputs:\n").expect("inputs");
    let (inputs, _) = inputs.split_once("runs:\n").expect("steps");
    let named = inputs.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let used: Vec<&str> = ["Install zeropilot", "Check"]
        .iter()
        .flat_map(|step| variables(step))
        .map(|(_, input)| input)
        .collect();
    let mut named: Vec<&str> = named.filter(|name| !name.starts_with(' ')).collect();
    let mut sorted = used.clone();
    named.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(named, sorted);
    // An input within a script could run commands.
    assert!(!script("Check").contains("${{") && !script("Install zeropilot").contains("${{"));
}
