//! Writes `docs/field-study.md`; with `--check` says whether it is what would be written.
//!
//! `ZEROPILOT_CORPUS` is the directory of public configs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that says what it did")]

mod labels;
mod report;
mod study;

use std::path::Path;
use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let Some(corpus) = std::env::var_os("ZEROPILOT_CORPUS") else {
        eprintln!("set ZEROPILOT_CORPUS to a directory of DeepSpeed configs (see CONTRIBUTING.md)");
        return Ok(ExitCode::from(2));
    };
    let study = study::Study::of(Path::new(&corpus))?;
    let text = report::report(&study, &labels::labels());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/field-study.md");
    if std::env::args().any(|argument| argument == "--check") {
        let is_current = std::fs::read_to_string(&path)? == text;
        if !is_current {
            eprintln!(
                "docs/field-study.md is not what the rules find now: run `cargo run -p zeropilot_field_study`"
            );
        }
        return Ok(if is_current { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    std::fs::write(&path, text)?;
    println!("docs/field-study.md is written");
    Ok(ExitCode::SUCCESS)
}
