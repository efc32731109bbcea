//! Writes `docs/field-study.md`; with `--check` says whether it is what would be written; with
//! `--draw COUNT SEED` names findings to be read by hand.
//!
//! `ZEROPILOT_CORPUS` is the directory of public configs.
//!
//! After `jobs`, the same for `docs/job-study.md`: `ZEROPILOT_JOBS` is a directory with a checkout of every repository in
//! `knowledge/findings/jobs.jsonl`, as `owner/name`, at the commit that stands there.
//!
//! `second-sample` writes the last section of that page from data alone; if `ZEROPILOT_JOBS` is a directory of the same
//! kind for `knowledge/findings/second_jobs.jsonl`, it first compares the data with what is found now.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that says what it did")]

#[cfg(test)]
mod asked;
mod draw;
mod job_study_page;
mod jobs;
mod jobs_page;
mod labels;
mod report;
mod second_sample;
mod shipped;
mod shipped_page;
mod study;

use std::path::Path;
use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "jobs") {
        return jobs_page::run(&arguments.split_off(1));
    }
    if arguments.first().is_some_and(|first| first == "second-sample") {
        return second_sample::run(&arguments.split_off(1));
    }
    let Some(corpus) = std::env::var_os("ZEROPILOT_CORPUS") else {
        eprintln!(
            "set ZEROPILOT_CORPUS to a directory of DeepSpeed configs: `oracle/fetch_corpus.sh DIRECTORY` downloads them"
        );
        return Ok(ExitCode::from(2));
    };
    let corpus = Path::new(&corpus);
    let study = study::Study::of(corpus)?;
    let labels = labels::labels();
    if let [verb, count, seed] = arguments.as_slice()
        && verb == "--draw"
        && let Ok(count) = count.parse()
    {
        for finding in draw::draw(study.findings.iter(), &labels, count, seed) {
            println!("{} {} {}", finding.file, finding.rule, finding.key);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let text = report::report(&study, &labels, &shipped::shipped(corpus)?);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/field-study.md");
    if arguments.iter().any(|argument| argument == "--check") {
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
