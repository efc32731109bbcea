//! `zeropilot lsp` as an editor runs it: the real binary, spoken to over its streams.

mod bench;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use bench::Bench;
use serde_json::{Value, json};

/// An editor, scripted.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
    versions: i64,
}

impl Editor {
    fn start(options: Value) -> Self {
        let bench = Bench::new(&[]);
        let mut command = bench.command(&["lsp", "--stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the binary starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut editor = Self { child, input, output, requests: 0, versions: 1 };
        let snippets = json!({"completion": {"completionItem": {"snippetSupport": true}}});
        let answer = editor.ask(
            "initialize",
            json!({
                "processId": null, "rootUri": null, "locale": "en",
                "capabilities": {"textDocument": snippets},
                "initializationOptions": options,
            }),
        );
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())
            .expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a header") > 0, "the server ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a length"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The findings that the server shows next.
    fn findings(&mut self) -> (String, Vec<Value>) {
        let message = self.receive();
        assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
        let found = message["params"]["diagnostics"].as_array().expect("a list").clone();
        (message["params"]["uri"].as_str().expect("a uri").to_owned(), found)
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "json", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        let (about, found) = self.findings();
        assert_eq!(about, uri);
        found
    }

    fn change(&mut self, uri: &str, changes: Value) -> Vec<Value> {
        self.versions += 1;
        let document = json!({"uri": uri, "version": self.versions});
        self.tell(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": changes}),
        );
        self.findings().1
    }

    fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        self.ask(method, json!({"textDocument": {"uri": uri}, "position": position}))
    }

    fn labels(&mut self, uri: &str, line: u32, character: u32) -> Vec<String> {
        let items = self.at("textDocument/completion", uri, line, character);
        let label = |item: &Value| item["label"].as_str().expect("a label").to_owned();
        items.as_array().expect("a list").iter().map(label).collect()
    }

    fn end(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.child.wait().expect("an end").success());
    }
}

const URI: &str = "file:///job/ds_config.json";

const CONFIG: &str = "{
  \"train_batch_size\": 64,
  \"gradient_accumulation_steps\": 32,
  \"zero_optimization\": { \"stage\": 3, \"reduce_bucket_size\": 5e8 },
  \"memory_efficient_linear\": true
}
";

fn codes(found: &[Value]) -> Vec<&str> {
    found.iter().map(|found| found["code"].as_str().expect("a code")).collect()
}

#[test]
fn findings_follow_the_keystrokes_and_go_with_the_file() {
    let mut editor = Editor::start(json!({"worldSize": 4, "deepspeedVersion": "0.19.8"}));
    let found = editor.open(URI, CONFIG);
    assert_eq!(codes(&found), ["B03", "K02"]);
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(found[0]["range"]["start"], json!({"line": 1, "character": 22}));
    assert!(found[0]["message"].as_str().expect("a message").contains("4 ranks"));
    // 64 becomes 256, which 4 ranks × 32 steps divide.
    let range = json!({"start": {"line": 1, "character": 22}, "end": {"line": 1, "character": 24}});
    let found = editor.change(URI, json!([{"range": range, "text": "256"}]));
    assert_eq!(codes(&found), ["K02"]);
    editor.tell("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
    assert!(editor.findings().1.is_empty());
    editor.end();
}

#[test]
fn several_files_are_open_and_others_are_left_alone() {
    let mut editor = Editor::start(json!({"worldSize": 4}));
    assert_eq!(codes(&editor.open(URI, CONFIG)), ["B03", "K02"]);
    let package = "file:///job/package.json";
    assert!(editor.open(package, "{\"name\": \"deepspeed\", \"train\": }").is_empty());
    assert!(editor.labels(package, 0, 1).is_empty());
    let other = "file:///job/other.json";
    let found =
        editor.open(other, "{\"zero_optimization\": {\"stage\": 4}, \"train_batch_size\": 4}");
    assert_eq!(codes(&found), ["K15"]);
    let found = editor.change(URI, json!([{"text": "{\"train_batch_size\": 8}"}]));
    assert!(found.is_empty(), "{found:?}");
    editor.end();
}

#[test]
fn a_hover_explains_the_key_in_chinese() {
    let mut editor = Editor::start(json!({"language": "zh", "worldSize": 4}));
    let found = editor.open(URI, CONFIG);
    assert!(found[0]["message"].as_str().expect("a message").contains("梯度累积"));
    let hover = editor.at("textDocument/hover", URI, 3, 45);
    let text = hover["contents"]["value"].as_str().expect("Markdown");
    assert!(text.starts_with("`zero_optimization.reduce_bucket_size`"), "{text}");
    assert!(text.contains("**单位**：张量的元素个数，不是字节"), "{text}");
    assert_eq!(hover["range"]["start"], json!({"line": 3, "character": 37}));
    // Its value says the same.
    let of_value = editor.at("textDocument/hover", URI, 3, 60);
    assert_eq!(of_value["contents"], hover["contents"]);
    assert!(editor.at("textDocument/hover", URI, 0, 0).is_null());
    editor.end();
}

#[test]
fn keys_and_values_are_completed_in_a_broken_file() {
    let mut editor = Editor::start(json!({}));
    let broken = "{\n  \"名😀\": 1,\n  \"zero_optimization\": {\n    \"stage\": 3,\n    \"red\n    \"overlap_comm\": \n  },\n  \"bf\n";
    editor.open(URI, broken);
    let keys = editor.labels(URI, 4, 8);
    assert!(keys.iter().any(|key| key == "reduce_bucket_size"), "{keys:?}");
    assert!(!keys.iter().any(|key| key == "stage" || key == "overlap_comm"), "{keys:?}");
    assert!(!keys.iter().any(|key| key == "train_batch_size"), "{keys:?}");
    assert_eq!(editor.labels(URI, 5, 20), ["true", "false"]);
    let items = editor.at("textDocument/completion", URI, 4, 8);
    let bucket =
        items.as_array().expect("a list").iter().find(|item| item["label"] == "reduce_bucket_size");
    let bucket = bucket.expect("the key");
    assert_eq!(bucket["textEdit"]["newText"], "\"reduce_bucket_size\": ${1|500000000,\"auto\"|},");
    assert_eq!(bucket["textEdit"]["range"]["start"], json!({"line": 4, "character": 4}));
    assert!(bucket["documentation"]["value"].as_str().expect("Markdown").contains("elements"));
    let top = editor.labels(URI, 7, 5);
    assert!(top.contains(&"bf16".to_owned()) && !top.contains(&"zero_optimization".to_owned()));
    editor.end();
}

#[test]
fn a_quick_fix_makes_the_finding_go_away() {
    let mut editor = Editor::start(json!({"worldSize": 4}));
    let found = editor.open(URI, CONFIG);
    let range = &found[0]["range"];
    let actions = editor.ask(
        "textDocument/codeAction",
        json!({"textDocument": {"uri": URI}, "range": range, "context": {"diagnostics": [found[0]]}}),
    );
    let actions = actions.as_array().expect("a list");
    assert_eq!(actions.len(), 1);
    assert_eq!(actions[0]["kind"], "quickfix");
    assert!(actions[0]["title"].as_str().expect("a title").contains("256"));
    let edits = actions[0]["edit"]["changes"][URI].as_array().expect("edits").clone();
    let changes: Vec<Value> = edits
        .iter()
        .rev()
        .map(|edit| json!({"range": edit["range"], "text": edit["newText"]}))
        .collect();
    let found = editor.change(URI, changes.into());
    assert_eq!(codes(&found), ["K02"]);
    editor.end();
}
