//! The list of public configs (`oracle/corpus.jsonl`) is the corpus, and `oracle/fetch_corpus.sh` downloads what is on
//! it, from a server on loopback. Whether the repositories are still on their own server is not tried.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What a server has, by the path of a request.
type Files = BTreeMap<String, Vec<u8>>;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

/// A server on loopback, by its address.
fn serve(files: Files) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let files = Arc::new(files);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let files = Arc::clone(&files);
            std::thread::spawn(move || answer(stream, &files));
        }
    });
    url
}

fn answer(mut stream: TcpStream, files: &Files) {
    let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
    let head: Vec<String> =
        lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let (status, body) = files
        .get(path)
        .map_or(("404 Not Found", &b"404: Not Found"[..]), |body| ("200 OK", body.as_slice()));
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    // One that asks no longer is not answered.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// An address at which nothing answers.
fn nowhere() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

fn fetch(script: &Path, url: &str, arguments: &[&str]) -> Output {
    Command::new("bash")
        .arg(script)
        .args(arguments)
        .env("ZEROPILOT_CORPUS_URL", url)
        .env("no_proxy", "127.0.0.1")
        .output()
        .expect("bash runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The script beside a list of 40 files, and a server's paths of them. One has a path that a URL must encode.
struct Small {
    directory: TempDir,
    files: Files,
}

impl Small {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let script = zeropilot_oracle::programs().join("fetch_corpus.sh");
        fs::copy(script, directory.path().join("fetch_corpus.sh")).expect("a copy");
        let (mut files, mut list) = (Files::new(), String::new());
        for number in 1..=40 {
            let (path, encoded) = match number {
                1 => ("a b+c/é#?.json".to_owned(), "a%20b%2Bc/%C3%A9%23%3F.json".to_owned()),
                _ => (format!("{number}.json"), format!("{number}.json")),
            };
            let body = Self::body(number);
            writeln!(
                list,
                r#"{{"file": "{number:04}.json", "repo": "owner/name", "path": "{path}", "commit": "{COMMIT}", "sha256": "{}"}}"#,
                sha256(&body)
            )
            .expect("a string");
            files.insert(format!("/owner/name/{COMMIT}/{encoded}"), body);
        }
        fs::write(directory.path().join("corpus.jsonl"), list).expect("a list");
        Self { directory, files }
    }

    fn body(number: usize) -> Vec<u8> {
        format!("{{\"train_batch_size\": {number}}}\r\n").into_bytes()
    }

    /// The server's files without some of them.
    fn without(&self, numbers: &[usize]) -> Files {
        let is_gone =
            |path: &str| numbers.iter().any(|number| path.ends_with(&format!("/{number}.json")));
        let left = self.files.iter().filter(|(path, _)| !is_gone(path));
        left.map(|(path, body)| (path.clone(), body.clone())).collect()
    }

    fn corpus(&self) -> PathBuf {
        self.directory.path().join("corpus")
    }

    fn file(&self, number: usize) -> PathBuf {
        self.corpus().join(format!("{number:04}.json"))
    }

    fn fetch(&self, url: &str, options: &[&str]) -> Output {
        let script = self.directory.path().join("fetch_corpus.sh");
        let corpus = self.corpus();
        let arguments = [options, &[corpus.to_str().expect("UTF-8")]].concat();
        fetch(&script, url, &arguments)
    }

    /// The numbers of the files that the index names.
    fn indexed(&self) -> Vec<usize> {
        let index = fs::read_to_string(self.corpus().join("index.jsonl")).expect("an index");
        let number = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&line["repo"], &line["commit"]), (&json!("owner/name"), &json!(COMMIT)));
            assert_eq!(line.as_object().map(serde_json::Map::len), Some(4), "{line}");
            line["file"].as_str().and_then(|name| name[..4].parse().ok()).expect("a number")
        };
        index.lines().map(number).collect()
    }
}

#[test]
fn files_are_downloaded_once() {
    let small = Small::new();
    let output = small.fetch(&serve(small.files.clone()), &["--all"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for number in 1..=40 {
        assert_eq!(fs::read(small.file(number)).expect("a file"), Small::body(number));
    }
    assert_eq!(small.indexed(), (1..=40).collect::<Vec<_>>());
    let again = small.fetch(&nowhere(), &["--all"]);
    assert_eq!((again.status.code(), said(&again)), (Some(0), String::new()));
    assert_eq!(small.indexed().len(), 40);
}

#[test]
fn files_that_are_gone_or_changed_are_named_and_few_of_them_do_not_fail() {
    let small = Small::new();
    let mut files = small.without(&[2]);
    files.insert(format!("/owner/name/{COMMIT}/3.json"), b"{}".to_vec());
    let url = serve(files);
    for (options, code) in [(&[][..], 0), (&["--all"][..], 1)] {
        let output = small.fetch(&url, options);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let said = said(&output);
        assert!(said.contains("missing: 0002.json: HTTP 404: http://127.0.0.1:"), "{said}");
        assert!(said.contains("missing: 0003.json: its SHA-256 is not "), "{said}");
        assert!(!small.file(2).exists() && !small.file(3).exists());
        assert_eq!(small.indexed().len(), 38);
    }
    // 3 of 40 are more than 5%.
    let fewer = Small::new();
    let output = fewer.fetch(&serve(fewer.without(&[2, 3, 4])), &[]);
    assert_eq!((output.status.code(), fewer.indexed().len()), (Some(1), 37), "{}", said(&output));
    let none = Small::new();
    let output = none.fetch(&nowhere(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("missing: 0040.json: no answer: "), "{}", said(&output));
}

#[test]
fn another_file_of_the_same_name_is_replaced_or_reported() {
    let small = Small::new();
    fs::create_dir(small.corpus()).expect("a directory");
    for number in [2, 3] {
        fs::write(small.file(number), "{}").expect("a file");
    }
    let output = small.fetch(&serve(small.without(&[2])), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("0002.json is another file: delete it"), "{}", said(&output));
    assert_eq!(fs::read(small.file(2)).expect("a file"), b"{}");
    assert_eq!(fs::read(small.file(3)).expect("a file"), Small::body(3));
    assert!(!small.indexed().contains(&2));
}

#[test]
fn wrong_arguments_download_nothing() {
    let script = zeropilot_oracle::programs().join("fetch_corpus.sh");
    for arguments in [&[][..], &["--every", "x"], &["a", "b"], &["--all"]] {
        let output = fetch(&script, &nowhere(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).starts_with("usage: "), "{}", said(&output));
    }
}

/// The lines of `oracle/corpus.jsonl`.
fn list() -> Vec<Value> {
    let text =
        fs::read_to_string(zeropilot_oracle::programs().join("corpus.jsonl")).expect("a list");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn word<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_else(|| panic!("{key} in {line}"))
}

#[test]
fn the_list_is_sorted_and_names_each_file_once() {
    let list = list();
    for two in list.windows(2) {
        assert!(word(&two[0], "file") < word(&two[1], "file"), "{}", two[1]);
    }
    let mut sums: Vec<&str> = list.iter().map(|line| word(line, "sha256")).collect();
    sums.sort_unstable();
    sums.dedup();
    assert_eq!(sums.len(), list.len(), "two files are the same");
}

/// Where the corpus is, if it is the one of the study or what is left of it.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn corpus() -> Option<PathBuf> {
    let Some(corpus) = std::env::var_os("ZEROPILOT_CORPUS").map(PathBuf::from) else {
        zeropilot_oracle::missing("ZEROPILOT_CORPUS");
        return None;
    };
    if is_another() && !corpus.join("index.jsonl").exists() {
        eprintln!("skipped: ZEROPILOT_CORPUS is not the corpus of the field study");
        return None;
    }
    Some(corpus)
}

fn is_another() -> bool {
    zeropilot_oracle::setting::<u8>("ZEROPILOT_FIELD_STUDY") == Some(0)
}

#[test]
fn the_list_is_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let index = fs::read_to_string(corpus.join("index.jsonl")).expect("an index");
    let index: Vec<Value> =
        index.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let list = list();
    for source in &index {
        let line = list.iter().find(|line| line["file"] == source["file"]);
        let line = line.unwrap_or_else(|| panic!("not on the list: {source}"));
        for key in ["repo", "path", "commit"] {
            assert_eq!(line[key], source[key], "{source}");
        }
        let bytes = fs::read(corpus.join(word(line, "file"))).expect("a file");
        assert_eq!(word(line, "sha256"), sha256(&bytes), "{source}");
    }
    // Some of it may have disappeared where the study is not repeated.
    assert!(is_another() || index.len() == list.len(), "{} of {}", index.len(), list.len());
}

#[test]
fn the_whole_corpus_can_be_downloaded() {
    let Some(corpus) = corpus() else { return };
    let served = list().into_iter().filter_map(|line| {
        let [repository, commit, path] = ["repo", "commit", "path"].map(|key| word(&line, key));
        // No other character needs it.
        let path = path.replace('+', "%2B");
        let body = fs::read(corpus.join(word(&line, "file"))).ok()?;
        Some((format!("/{repository}/{commit}/{path}"), body))
    });
    let url = serve(served.collect());
    let directory = tempfile::tempdir().expect("a directory");
    let script = zeropilot_oracle::programs().join("fetch_corpus.sh");
    let target = directory.path().to_str().expect("UTF-8");
    let options: &[&str] = if is_another() { &[] } else { &["--all"] };
    let output = fetch(&script, &url, &[options, &[target]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // The field study reads the index, and names what it says.
    let index = |directory: &Path| fs::read(directory.join("index.jsonl")).expect("an index");
    assert_eq!(index(directory.path()), index(&corpus));
}
