//! Commands in documents.
//!
//! A block ```` ```json title=NAME ````, ```` ```sh title=NAME ```` or ```` ```text title=NAME ```` is a file; a block ```` ```console ```` has `$ command` lines,
//! each followed by its standard output; commands in tables are run for their exit code alone; of other commands
//! (```` ```sh ````) every flag must exist.

use std::path::{Path, PathBuf};
use std::process::Command;

use zeropilot_text::Language;

use crate::pages::Page;

/// The program: the one that was built with this test, or one that somebody installed.
fn program() -> PathBuf {
    let installed = std::env::var_os("ZEROPILOT_BIN").map(PathBuf::from);
    installed.unwrap_or_else(|| env!("CARGO_BIN_EXE_zeropilot").into())
}

/// Runs a command line; gives its standard output and exit code.
pub(crate) fn run(command: &str, directory: &Path, locale: &str) -> (String, Option<i32>) {
    let words = shlex::split(command).unwrap_or_else(|| panic!("{command}: quotes"));
    assert_eq!(words.first().map(String::as_str), Some("zeropilot"), "{command}");
    let output = Command::new(program())
        .args(&words[1..])
        .current_dir(directory)
        .env_remove("VIRTUAL_ENV")
        .env("PATH", "/nonexistent")
        .env("HF_HUB_OFFLINE", "1")
        .env("ZEROPILOT_RUNS", directory)
        .env("LC_ALL", locale)
        .output()
        .expect("zeropilot runs");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.code())
}

/// What a command prints that must succeed.
pub(crate) fn output(command: &str, language: Language) -> String {
    let locale = if language == Language::Chinese { "zh_CN.UTF-8" } else { "C.UTF-8" };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (stdout, code) = run(command, directory.path(), locale);
    assert!(matches!(code, Some(0 | 1)), "{command}: {code:?}");
    stdout
}

fn locale(page: &Page) -> &'static str {
    if page.is_chinese() { "zh_CN.UTF-8" } else { "C.UTF-8" }
}

/// The text with every console block's output replaced by what its commands print.
pub(crate) fn with_real_output(page: &Page, directory: &Path) -> String {
    let mut out = Vec::new();
    let mut lines = page.text.lines();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let titled = ["```json title=", "```sh title=", "```python title=", "```text title="];
        if let Some(name) = titled.iter().find_map(|fence| line.strip_prefix(fence)) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            std::fs::write(directory.join(name), body.join("\n") + "\n")
                .expect("a writable directory");
            out.extend(body.into_iter().map(str::to_owned));
            out.push("```".to_owned());
        } else if line == "```console" {
            let body = lines.by_ref().take_while(|line| *line != "```");
            for line in body.filter(|line| line.starts_with("$ ")) {
                out.push(line.to_owned());
                let (stdout, code) = run(&line[2..], directory, locale(page));
                assert!(matches!(code, Some(0 | 1)), "{}: {line}: {code:?}", page.path);
                out.extend(stdout.trim_end().lines().map(str::to_owned));
            }
            out.push("```".to_owned());
        }
    }
    out.join("\n") + "\n"
}

/// Runs the commands in tables.
pub(crate) fn run_tables(page: &Page, directory: &Path) {
    let rows = page.text.lines().filter(|line| line.starts_with("| "));
    let commands =
        rows.filter_map(|line| line.split('`').find(|part| part.starts_with("zeropilot ")));
    for command in commands.filter(|command| !command.contains('<')) {
        let (_, code) = run(command, directory, locale(page));
        assert!(matches!(code, Some(0 | 1)), "{}: {command}: {code:?}", page.path);
    }
}

/// Looks up verbs and flags of commands that are not run here.
pub(crate) fn flags_exist(page: &Page) {
    let shell = page.text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in shell.flat_map(str::lines).filter(|line| line.starts_with("zeropilot ")) {
        let own = line.split(" -- ").next().unwrap_or(line).split(" #").next().unwrap_or(line);
        let mut words = own.split_whitespace().skip(1);
        let verb = words.next().expect("a verb");
        let (help, code) = run(&format!("zeropilot {verb} --help"), Path::new("."), "C.UTF-8");
        assert_eq!(code, Some(0), "{}: {line}", page.path);
        for flag in words.filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            let known = help.split([' ', ',', '[', '=', '\n']).any(|word| word == flag);
            assert!(known, "{}: {verb} has no {flag}", page.path);
        }
    }
}
