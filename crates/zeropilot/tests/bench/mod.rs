//! The real binary, run as a user runs it: in a directory of files, with its streams and exit code.

#![allow(dead_code, reason = "every test program uses its own part")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with files, and the binary run inside it.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bench = Self { directory };
        for (name, text) in files {
            bench.write(name, text.as_bytes());
        }
        bench
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, bytes).expect("a file");
    }

    /// The command in an environment of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
        command.current_dir(self.path()).env_clear().args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::from(self.command(arguments).output().expect("the binary runs"))
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        child.stdin.take().expect("a pipe").write_all(input).expect("input is taken");
        Run::from(child.wait_with_output().expect("the binary ends"))
    }
}

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Run {
    pub(crate) fn shown(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }

    pub(crate) fn json(&self) -> Vec<Value> {
        serde_json::from_str(&self.stdout).expect("one JSON array")
    }
}
