//! The real engine, readers and front ends as processes that answer questions, one JSON line each.
//!
//! The servers are the programs in `oracle/` at the root of the repository; what they share is
//! described in `oracle/json_lines.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::Value as Json;

use crate::environment::{programs, python};

/// A running server.
pub struct Oracle {
    script: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Option<BufReader<ChildStdout>>,
    greeting: Json,
}

impl Oracle {
    /// Starts a server by its name in `oracle/`, with the newest engine.
    pub fn start(home: &Path, script: &str) -> Self {
        Self::run(script, &mut Self::command(home, script))
    }

    /// Starts a server with one of the engines in `home`.
    pub fn start_with_engine(home: &Path, script: &str, version: &str) -> Self {
        let mut command = Self::command(home, script);
        let older = home.join("versions").join(version);
        if older.is_dir() {
            command.env("PYTHONPATH", older);
        }
        let oracle = Self::run(script, &mut command);
        assert_eq!(oracle.greeting["deepspeed"], version, "the engine asked for answers");
        oracle
    }

    fn command(home: &Path, script: &str) -> Command {
        let mut command = python(home);
        command
            .arg(programs().join(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The engine talks a lot; a server that dies is run again with this variable set.
            .stderr(if std::env::var_os("ZEROPILOT_ORACLE_VERBOSE").is_some() {
                Stdio::inherit()
            } else {
                Stdio::null()
            });
        command
    }

    fn run(script: &str, command: &mut Command) -> Self {
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let requests = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut greeting = String::new();
        answers.read_line(&mut greeting).expect("a greeting");
        let greeting = serde_json::from_str(&greeting)
            .unwrap_or_else(|_| panic!("no greeting; run {command:?} by hand to see why"));
        Self { script: script.to_owned(), child, requests, answers: Some(answers), greeting }
    }

    /// What the server said of itself when it started.
    pub fn greeting(&self) -> &Json {
        &self.greeting
    }

    /// Asks many questions at once; the answers, a line of JSON each, come in the same order.
    pub fn ask(&mut self, questions: Vec<Json>) -> Vec<String> {
        let requests = self.requests.as_mut().expect("the server runs");
        let answers = self.answers.as_mut().expect("the server runs");
        let mut batch = String::new();
        let count = questions.len();
        for (id, mut question) in questions.into_iter().enumerate() {
            question["id"] = id.into();
            batch.push_str(&format!("{question}\n"));
        }
        let lines: Vec<String> = thread::scope(|scope| {
            // From a second thread: both pipes fill up long before a batch is through.
            scope.spawn(|| requests.write_all(batch.as_bytes()));
            answers.lines().take(count).map(|line| line.expect("an answer")).collect()
        });
        for (id, line) in lines.iter().enumerate() {
            let start = format!("{{\"id\": {id}, ");
            assert!(line.starts_with(&start), "no answer to question {id}: {line}");
        }
        if lines.len() < count {
            let question = batch.lines().nth(lines.len()).unwrap_or_default();
            panic!(
                "{} ended without an answer to {question} or a question after it; \
                 set ZEROPILOT_ORACLE_VERBOSE to see why",
                self.script
            );
        }
        lines
    }

    /// As [`Oracle::ask`], with the answers read.
    pub fn answers(&mut self, questions: Vec<Json>) -> Vec<Json> {
        let lines = self.ask(questions);
        lines.iter().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // A server that still writes answers nobody reads ends by itself once its pipes are gone.
        self.requests = None;
        self.answers = None;
        let _ = self.child.wait();
    }
}
