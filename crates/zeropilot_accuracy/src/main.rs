//! Writes `docs/accuracy.md`.

#![allow(clippy::print_stdout, reason = "a tool that says what it wrote")]

use std::path::Path;

use zeropilot_accuracy::{Statistics, judge, prediction, report, rows};

fn main() -> std::io::Result<()> {
    let judgement = judge(rows(), &prediction::predict);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/accuracy.md");
    std::fs::write(&path, report(&judgement))?;
    println!("{:?}", Statistics::of(judgement.rows.iter()));
    Ok(())
}
