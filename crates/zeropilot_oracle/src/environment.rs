//! What a machine may or may not have, and how a run is set up.
//!
//! `ZEROPILOT_ORACLE_HOME` is where `oracle/setup.sh` put the engines, `ZEROPILOT_CORPUS` a directory of `*.json`
//! configs, and `ZEROPILOT_THOROUGH=1` asks for every variant.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// A config out of the corpus.
pub struct ConfigFile {
    /// The file's name.
    pub name: String,
    /// What is in it.
    pub data: Vec<u8>,
}

/// Where the engines are; `None` with a message where there are none.
pub fn home() -> Option<PathBuf> {
    let home = std::env::var_os("ZEROPILOT_ORACLE_HOME").map(PathBuf::from);
    if home.is_none() {
        missing("ZEROPILOT_ORACLE_HOME");
    }
    home
}

/// The source code of the newest engine, as it is installed.
pub fn engine_code() -> Option<PathBuf> {
    let library = std::fs::read_dir(home()?.join("engine/lib")).expect("a virtual environment");
    let packages = library.map(|entry| entry.expect("an entry").path().join("site-packages"));
    let engine = packages.map(|packages| packages.join("deepspeed")).find(|code| code.is_dir());
    Some(engine.expect("the engine is installed"))
}

/// Where the programs are that ask the engine.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle")
}

/// The variables of a process that uses the newest engine on CPUs, with what is installed beside it.
pub fn surroundings(home: &Path) -> [(&'static str, OsString); 3] {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(home.join("engine/bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).expect("a path");
    [("PATH", path), ("DS_ACCELERATOR", "cpu".into()), ("OMP_NUM_THREADS", "1".into())]
}

/// The engine's Python.
pub fn python(home: &Path) -> Command {
    let mut command = Command::new(home.join("engine/bin/python"));
    command.envs(surroundings(home));
    command
}

/// The corpus of public configs in the order of their names, if this machine has it.
pub fn corpus() -> Option<Vec<ConfigFile>> {
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
pub fn missing(variable: &str) {
    assert!(std::env::var_os("CI").is_none(), "{variable} must be set in CI");
    eprintln!("skipped: set {variable} to run this test (see CONTRIBUTING.md)");
}

/// Whether there is time for every variant.
pub fn is_thorough() -> bool {
    setting::<u8>("ZEROPILOT_THOROUGH") == Some(1)
}

/// A number from the environment.
pub fn setting<T: FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
