//! Writes `docs/accuracy.md` and `knowledge/field/interval.json`; with `--check` says whether they are what would be written, with `--memory` prints the part
//! about memory.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that says what it did")]

use std::path::Path;
use std::process::ExitCode;

use zeropilot_accuracy::{interval, judge, prediction, report, rows, throughput};

fn main() -> std::io::Result<ExitCode> {
    let judgement = judge(rows(), &prediction::predict);
    let memory = report(&judgement);
    if std::env::args().any(|argument| argument == "--memory") {
        print!("{memory}");
        return Ok(ExitCode::SUCCESS);
    }
    let (runs, unasked) = throughput::runs(rows());
    let text = format!("{memory}{}", throughput::report(&runs, &unasked));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = [
        ("docs/accuracy.md", text),
        ("knowledge/field/interval.json", interval::file(&judgement.groups)),
    ];
    let only_checks = std::env::args().any(|argument| argument == "--check");
    let mut is_current = true;
    for (name, text) in files {
        let path = root.join(name);
        if !only_checks {
            std::fs::write(&path, text)?;
            println!("{name} is written");
        } else if std::fs::read_to_string(&path)? != text {
            is_current = false;
            eprintln!(
                "{name} is not what predictions say now: run `cargo run -p zeropilot_accuracy`"
            );
        }
    }
    Ok(if is_current { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
