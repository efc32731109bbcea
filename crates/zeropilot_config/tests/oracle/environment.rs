//! What a machine may or may not have, and how a run is set up.
//!
//! `ZEROPILOT_ORACLE_HOME` is where `oracle/setup.sh` put the engines, `ZEROPILOT_CORPUS` a directory
//! of `*.json` configs, `ZEROPILOT_SEED` repeats a run.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A config out of the corpus.
pub(crate) struct ConfigFile {
    /// The file's name.
    pub(crate) name: String,
    /// What is in it.
    pub(crate) data: Vec<u8>,
}

/// Where the engines are; `None` with a message where there are none.
pub(crate) fn home() -> Option<PathBuf> {
    let home = std::env::var_os("ZEROPILOT_ORACLE_HOME").map(PathBuf::from);
    if home.is_none() {
        missing("ZEROPILOT_ORACLE_HOME");
    }
    home
}

/// The corpus of public configs in the order of their names, if this machine has it.
pub(crate) fn corpus() -> Option<Vec<ConfigFile>> {
    let directory = std::env::var_os("ZEROPILOT_CORPUS")?;
    let entries = std::fs::read_dir(directory).expect("ZEROPILOT_CORPUS is a readable directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| ConfigFile {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        data: std::fs::read(&path).expect("a readable corpus file"),
    };
    Some(paths.into_iter().map(read).collect())
}

/// Tests that need what a machine may lack fail in CI and are skipped elsewhere.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn missing(variable: &str) {
    assert!(std::env::var_os("CI").is_none(), "{variable} must be set in CI");
    eprintln!("skipped: set {variable} to run this test (see CONTRIBUTING.md)");
}

/// A number from the environment.
pub(crate) fn setting<T: FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// The seed to repeat, or a fresh one.
pub(crate) fn seed() -> u64 {
    setting("ZEROPILOT_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        now.as_nanos() as u64
    })
}
