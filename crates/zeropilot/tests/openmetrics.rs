//! `zeropilot watch` for programs: OpenMetrics over a real socket, and lines of JSON.
#![cfg(target_os = "linux")]

#[path = "watched/mod.rs"]
mod watched;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use watched::Watched;

/// Ends the program whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn watch(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
    command.arg("watch").args(arguments).env("ZEROPILOT_RUNS", home).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server on a free port, and its address.
fn serving(home: &Path) -> (Running, String) {
    let mut server = watch(home, &["--openmetrics", "127.0.0.1:0"]).spawn().expect("it starts");
    let talk = server.stderr.take().expect("a pipe");
    let server = Running(server);
    let mut line = String::new();
    BufReader::new(talk).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("zeropilot: http://").expect("an address");
    let address = address.strip_suffix("/metrics").expect("the page").to_owned();
    (server, address)
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_scraper_reads_the_run_as_it_goes_on() {
    let watched = Watched::running("run-a");
    let (_server, address) = serving(watched.home());
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let answer = ask(&address, &request);
    let (head, page) = answer.split_once("\r\n\r\n").expect("head and page");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", page.len())), "{head}");
    for line in [
        "zeropilot_run_info{id=\"run-a\",strategy=\"\",host=\"\",training_job=\"\"} 1",
        "zeropilot_run_running 1",
        "zeropilot_run_step 3",
        "zeropilot_run_total_steps 10",
        "zeropilot_run_loss 2.5",
        "zeropilot_run_predicted_memory_bytes 4294967296",
        "zeropilot_rank_resident_memory_bytes{rank=\"1\"} 2147483648",
        "# UNIT zeropilot_host_memory_bytes bytes",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}:\n{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
    watched.step(4, 1.5);
    assert!(ask(&address, &request).contains("\nzeropilot_run_step 4\n"));
}

#[test]
fn other_requests_and_silent_ones_are_answered_and_do_not_block() {
    let watched = Watched::running("run-b");
    let (_server, address) = serving(watched.home());
    let _silent = TcpStream::connect(&address).expect("it listens");
    assert!(ask(&address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(&address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    let head = ask(&address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn addresses_of_the_network_are_refused_with_the_reason() {
    let home = tempfile::tempdir().expect("a directory");
    let output = watch(home.path(), &["--openmetrics", "0.0.0.0:9400"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("only loopback") && said.contains("why:"), "{said}");
}

#[test]
fn json_is_a_line_every_second_while_the_run_goes_on() {
    let watched = Watched::running("run-c");
    let once = watch(watched.home(), &["--json", "--once"]).output().expect("it runs");
    let text = String::from_utf8(once.stdout).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    let look: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&look["step"], &look["total_steps"]), (&3.into(), &10.into()));
    assert_eq!(look["ranks"][1]["rss"], 2_u64 << 30);

    let mut lines = watch(watched.home(), &["--json"]).spawn().expect("it starts");
    let out = BufReader::new(lines.stdout.take().expect("a pipe"));
    let _lines = Running(lines);
    let mut out = out.lines();
    let mut next = || -> Value {
        serde_json::from_str(&out.next().expect("a line").expect("text")).expect("JSON")
    };
    assert_eq!(next()["step"], 3);
    watched.step(4, 1.5);
    assert!((0..5).any(|_| next()["step"] == 4));
}

#[test]
fn the_machine_is_told_without_a_run() {
    let home = tempfile::tempdir().expect("a directory");
    let output = watch(home.path(), &["--json", "--once"]).output().expect("it runs");
    let look: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(look["memory"]["total"].as_u64() > look["memory"]["available"].as_u64(), "{look}");
    assert!(look["processes"].is_array(), "{look}");
}

/// A free port of loopback.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Prometheus itself scrapes the page; Debian's package is `prometheus`.
#[test]
fn prometheus_scrapes_the_run() {
    if let Err(error) = Command::new("prometheus").arg("--version").output() {
        assert!(std::env::var_os("CI").is_none(), "prometheus is missing: see .ci/run");
        eprintln!("SKIPPED: no prometheus here: {error}");
        return;
    }
    let watched = Watched::running("run-a");
    let (_server, address) = serving(watched.home());
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: zeropilot\n  static_configs:\n  - targets: ['{address}']\n"
    );
    std::fs::write(&config, text).expect("a config");
    let own = format!("127.0.0.1:{}", free_port());
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
        .arg(format!("--web.listen-address={own}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let _prometheus = Running(prometheus);
    let value = |query: &str| {
        let mut stream = TcpStream::connect(&own).ok()?;
        let request = format!("GET /api/v1/query?query={query} HTTP/1.0\r\nHost: {own}\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        answer["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
    };
    let wait = |query: &str, wanted: &str| {
        let found = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(200));
            value(query).as_deref() == Some(wanted)
        });
        assert!(found, "{query} is {:?}, not {wanted}", value(query));
    };
    wait("zeropilot_run_step", "3");
    assert_eq!(value("up").as_deref(), Some("1"));
    watched.step(4, 1.5);
    wait("zeropilot_run_step", "4");
}
