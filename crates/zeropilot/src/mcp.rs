//! `zeropilot mcp`: verbs as tools of the Model Context Protocol, over standard input and output.
//!
//! A tool is a verb, its parameters are the options of the verb, and a call starts this program with `--json`: an agent
//! gets the answers that people get, and nothing is said twice. Options that write files are no parameters.

mod tool;

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use zeropilot_text::Language;
use zeropilot_view::{agent, system};

use self::tool::{Arguments, Tool};
use crate::exit_status::ExitStatus;
use crate::parse;

/// The newest version of the protocol that was read; older ones have the same messages.
const NEWEST: &str = "2025-11-25";
const KNOWN: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Serves until the client closes standard input.
pub(crate) fn run(language: Language) -> ExitStatus {
    let server = Server { tools: Tool::all(parse::definition(language)), language };
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    for line in input.lines() {
        let written = line.and_then(|line| match server.answer(&line) {
            Some(answer) => writeln!(output, "{answer}").and_then(|()| output.flush()),
            None => Ok(()),
        });
        if let Err(error) = written {
            // A client that is gone has nobody to be told.
            let _ = writeln!(io::stderr(), "{}", agent::client_gone(&error, language));
            return ExitStatus::Failure;
        }
    }
    ExitStatus::Clean
}

struct Server {
    tools: Vec<Tool>,
    language: Language,
}

/// A code of JSON-RPC with what is wrong.
type Failure = (i64, String);

impl Server {
    /// The answer to a message; a notification has none.
    fn answer(&self, line: &str) -> Option<Value> {
        if line.trim().is_empty() {
            return None;
        }
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => return Some(failed(&Value::Null, (PARSE_ERROR, error.to_string()))),
        };
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer to a question that was never put.
            let is_answer = message.get("result").or(message.get("error")).is_some();
            let failure = (INVALID_REQUEST, agent::no_method(self.language).to_owned());
            return (!is_answer).then(|| failed(&Value::Null, failure));
        };
        let id = message.get("id")?;
        let parameters = message.get("params").unwrap_or(&Value::Null);
        Some(match self.result(method, parameters) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(failure) => failed(id, failure),
        })
    }

    fn result(&self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        match method {
            "initialize" => Ok(self.greeting(parameters)),
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools: Vec<Value> = self.tools.iter().map(Tool::description).collect();
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => self.call(parameters),
            _ => Err((METHOD_NOT_FOUND, agent::unknown_method(method, self.language))),
        }
    }

    fn greeting(&self, parameters: &Value) -> Value {
        let wanted = parameters.get("protocolVersion").and_then(Value::as_str);
        let version = wanted.filter(|wanted| KNOWN.contains(wanted)).unwrap_or(NEWEST);
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "zeropilot", "version": env!("CARGO_PKG_VERSION")},
            "instructions": agent::instructions(self.language),
        })
    }

    fn call(&self, parameters: &Value) -> Result<Value, Failure> {
        let name = parameters.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            let known: Vec<&str> = self.tools.iter().map(Tool::name).collect();
            return Err((INVALID_PARAMS, agent::unknown_tool(name, &known, self.language)));
        };
        let nothing = Arguments::new();
        let arguments = parameters.get("arguments").and_then(Value::as_object).unwrap_or(&nothing);
        // What is wrong with a question goes to the model, which can put it right.
        Ok(match tool.command_line(arguments, self.language) {
            Ok(words) => match start(&words) {
                Ok(output) => answered(&output),
                Err(error) => refused(&system::failure(&error, self.language)),
            },
            Err(problem) => refused(&problem),
        })
    }
}

/// What another process of this program answers. Its standard input is not that of the server, where the client speaks.
fn start(words: &[OsString]) -> io::Result<Output> {
    Command::new(std::env::current_exe()?).args(words).stdin(Stdio::null()).output()
}

fn answered(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stdout);
    let beside = String::from_utf8_lossy(&output.stderr);
    let texts = [said.trim_end(), beside.trim_end()].into_iter().filter(|text| !text.is_empty());
    let content: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
    let is_failure = output.status.code() != Some(0) && said.trim().is_empty();
    let mut result = json!({"content": content, "isError": is_failure});
    if let Ok(structured @ Value::Object(_)) = serde_json::from_str(&said) {
        result["structuredContent"] = structured;
    }
    result
}

fn refused(problem: &str) -> Value {
    json!({"content": [{"type": "text", "text": problem}], "isError": true})
}

fn failed(id: &Value, (code, message): Failure) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
