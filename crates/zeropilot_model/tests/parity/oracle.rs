//! transformers and PEFT as a process that answers questions, one JSON line each.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use zeropilot_model::Model;

/// A running oracle program.
pub(crate) struct Oracle {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What transformers and PEFT know about families.
pub(crate) fn facts() -> Value {
    let path = repository().join("knowledge/models/families.json");
    serde_json::from_slice(&std::fs::read(path).expect("the facts")).expect("JSON")
}

/// The same, extracted anew, if this machine has them.
pub(crate) fn extracted_facts() -> Option<Value> {
    let mut command = Command::new(home()?.join("engine/bin/python"));
    command.arg(repository().join("oracle/extract_model_facts.py")).env("DS_ACCELERATOR", "cpu");
    let output = command.stderr(Stdio::null()).output().expect("the program runs");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Where `oracle/setup.sh` put transformers; `None` with a message where it is missing.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn home() -> Option<PathBuf> {
    let home = std::env::var_os("ZEROPILOT_ORACLE_HOME").map(PathBuf::from);
    if home.is_none() {
        assert!(std::env::var_os("CI").is_none(), "ZEROPILOT_ORACLE_HOME must be set in CI");
        eprintln!("skipped: set ZEROPILOT_ORACLE_HOME to run this test (see CONTRIBUTING.md)");
    }
    home
}

/// A number from the environment.
pub(crate) fn setting(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// A fresh seed, or the one to repeat; printed, so that a failure can be repeated.
#[expect(clippy::print_stderr, reason = "a failure must be repeatable")]
pub(crate) fn seed() -> u64 {
    let fresh = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_nanos() as u64
    };
    let given = std::env::var("ZEROPILOT_SEED").ok();
    let seed = given.map_or_else(fresh, |text| text.parse().expect("a seed"));
    eprintln!("ZEROPILOT_SEED={seed}");
    seed
}

impl Oracle {
    /// Starts the program, if this machine has it.
    pub(crate) fn start() -> Option<Self> {
        let mut command = Command::new(home()?.join("engine/bin/python"));
        command.arg(repository().join("oracle/model_inventory.py")).env("DS_ACCELERATOR", "cpu");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the oracle starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).expect("a greeting");
        let greeting: Value = serde_json::from_str(&greeting).expect("a greeting");
        let facts = facts();
        assert_eq!(
            greeting["transformers"], facts["transformers"],
            "the facts are of another version"
        );
        assert_eq!(greeting["peft"], facts["peft"], "the facts are of another version");
        Some(Self { child, stdin, stdout })
    }

    /// Asks many questions at once; answers come in the same order.
    pub(crate) fn ask(&mut self, requests: &[Value]) -> Vec<Value> {
        let mut stdin = self.stdin.take().expect("one batch at a time");
        let lines: Vec<String> = (0..)
            .zip(requests)
            .map(|(id, request)| {
                let mut request = request.clone();
                request["id"] = Value::from(id);
                request.to_string()
            })
            .collect();
        let writer = thread::spawn(move || {
            for line in lines {
                writeln!(stdin, "{line}").expect("the oracle reads");
            }
            stdin.flush().expect("the oracle reads");
            stdin
        });
        let answers = requests
            .iter()
            .map(|_| {
                let mut line = String::new();
                self.stdout.read_line(&mut line).expect("an answer");
                serde_json::from_str(&line).expect("JSON")
            })
            .collect();
        self.stdin = Some(writer.join().expect("the writer ends"));
        answers
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Where a model differs from what the oracle built, or `None`.
pub(crate) fn difference(model: &Model, real: &Value) -> Option<String> {
    let modules: Vec<Value> = model
        .modules()
        .filter(|entry| entry.module.all_names().next().is_some())
        .map(|entry| json!([entry.name, entry.module.class]))
        .collect();
    parameter_difference(model, real)
        .or_else(|| first_difference("module", &modules, real["modules"].as_array()?))
}

/// As [`difference`], without the modules.
pub(crate) fn parameter_difference(model: &Model, real: &Value) -> Option<String> {
    let ours: Vec<Value> = model
        .parameters()
        .map(|entry| json!([entry.name, entry.parameter.shape, entry.parameter.trainable]))
        .collect();
    let ties: Vec<Value> = model.ties().into_iter().map(Value::from).collect();
    let real_ties: Vec<Value> = real["tied"]
        .as_object()?
        .iter()
        .map(|(first, others)| {
            let others = others.as_array().into_iter().flatten().cloned();
            [Value::from(first.as_str())].into_iter().chain(others).collect()
        })
        .collect();
    let total: u64 = model.parameters().filter_map(|entry| entry.parameter.elements()).sum();
    let sum = || {
        (total != model.elements().0)
            .then(|| format!("the list has {total} elements, the count {}", model.elements()))
    };
    first_difference("parameter", &ours, real["parameters"].as_array()?)
        .or_else(|| first_difference("tie", &ties, &real_ties))
        .or_else(sum)
}

fn first_difference(what: &str, ours: &[Value], real: &[Value]) -> Option<String> {
    let longest = ours.len().max(real.len());
    let index = (0..longest).find(|index| ours.get(*index) != real.get(*index))?;
    Some(format!("{what} {index}: ours {:?}, real {:?}", ours.get(index), real.get(index)))
}
