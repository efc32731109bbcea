//! Every command the READMEs show runs, and every output they show is what it prints.
//!
//! A block ```` ```json title=NAME ```` or ```` ```sh title=NAME ```` is a file; a block ```` ```console ```` has `$ command` lines, each
//! followed by its standard output; commands in the table are run for their exit code alone. Run with
//! `ZEROPILOT_UPDATE_READMES=1` to write the outputs, then read them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command line of words without quoting; gives its standard output and exit code.
fn run(command: &str, directory: &Path) -> (String, Option<i32>) {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("zeropilot"), "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(words)
        .current_dir(directory)
        .env_remove("VIRTUAL_ENV")
        .env("PATH", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("zeropilot runs");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.code())
}

/// The text with every console block's output replaced by what its commands print.
fn with_real_output(text: &str, directory: &Path) -> String {
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let titled = ["```json title=", "```sh title="];
        if let Some(name) = titled.iter().find_map(|fence| line.strip_prefix(fence)) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            std::fs::write(directory.join(name), body.join("\n") + "\n")
                .expect("a writable directory");
            out.extend(body.into_iter().map(str::to_owned));
            out.push("```".to_owned());
        } else if line == "```console" {
            for line in lines.by_ref().take_while(|line| *line != "```") {
                if let Some(command) = line.strip_prefix("$ ") {
                    out.push(line.to_owned());
                    let (stdout, code) = run(command, directory);
                    assert!(matches!(code, Some(0 | 1)), "{command}: {code:?}");
                    out.extend(stdout.trim_end().lines().map(str::to_owned));
                }
            }
            out.push("```".to_owned());
        }
    }
    out.join("\n") + "\n"
}

fn check(name: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = root().join(name);
    let text = std::fs::read_to_string(&path).expect("the README");
    let real = with_real_output(&text, directory.path());
    if std::env::var_os("ZEROPILOT_UPDATE_READMES").is_some() {
        std::fs::write(&path, &real).expect("the README can be written");
    }
    assert_eq!(
        text, real,
        "{name} shows another output; ZEROPILOT_UPDATE_READMES=1 writes the real one"
    );
    let tables = text.lines().filter(|line| line.starts_with("| "));
    for command in
        tables.filter_map(|line| line.split('`').find(|part| part.starts_with("zeropilot ")))
    {
        let (_, code) = run(command, directory.path());
        assert!(matches!(code, Some(0 | 1)), "{command}: {code:?}");
    }
}

#[test]
fn the_english_readme_shows_what_happens() {
    check("README.md");
}

#[test]
fn the_chinese_readme_shows_what_happens() {
    check("README.zh-CN.md");
}
