//! Writes `docs/accuracy.md`; with `--check` says whether it is what would be written.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that says what it did")]

use std::path::Path;
use std::process::ExitCode;

use zeropilot_accuracy::{judge, prediction, report, rows, throughput};

fn main() -> std::io::Result<ExitCode> {
    let (runs, unasked) = throughput::runs(rows());
    let memory = report(&judge(rows(), &prediction::predict));
    let text = format!("{memory}{}", throughput::report(&runs, &unasked));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/accuracy.md");
    if std::env::args().any(|argument| argument == "--check") {
        let is_current = std::fs::read_to_string(&path)? == text;
        if !is_current {
            eprintln!(
                "docs/accuracy.md is not what predictions say now: run `cargo run -p zeropilot_accuracy`"
            );
        }
        return Ok(if is_current { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    std::fs::write(&path, text)?;
    println!("docs/accuracy.md is written");
    Ok(ExitCode::SUCCESS)
}
