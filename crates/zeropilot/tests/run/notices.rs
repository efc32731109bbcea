//! Messages about a run, as a command and as a webhook get them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::healthy::alone;
use crate::job::{Job, stand_in};

/// A receiver on loopback: its URL, and what is posted to it.
fn receiver() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/hook/secret", listener.local_addr().expect("an address"));
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a header");
                let header = line.trim().to_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if header.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("answered");
            let _ = sender.send(serde_json::from_slice(&body).expect("JSON"));
        }
    });
    (url, received)
}

#[test]
fn a_webhook_and_a_command_are_told_of_a_restart_and_of_the_end() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let (url, received) = receiver();
    let words = alone("--steps 8 --pause 0.2 --fault SIGKILL --fault-step 4 --once fired");
    let options = [
        "--no-preflight",
        "--max-restarts",
        "1",
        "--notify",
        &url,
        "--notify",
        "cat >> told.jsonl; echo \"$ZEROPILOT_EVENT $ZEROPILOT_TEXT\" >> told.txt",
        "--notify",
        "exit 3",
    ];
    let (code, verdict) = job.start_command(&options, &words).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let first = received.recv_timeout(Duration::from_secs(60)).expect("a message");
    let last = received.recv_timeout(Duration::from_secs(60)).expect("a message");
    assert_eq!((&first["event"]["event"], &first["shape"]), (&json!("restarting"), &json!(1)));
    let text = first["text"].as_str().expect("a text");
    assert!(text.contains("signal 9") && text.contains("starting again in 5 s"), "{text}");
    let end = (&last["event"]["event"], &last["event"]["exit_code"], &last["run"]);
    assert_eq!(end, (&json!("run_ended"), &json!(0), &verdict["id"]));
    let told = fs::read_to_string(job.path("told.jsonl")).expect("a file");
    let told: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(told, [first, last]);
    let told = fs::read_to_string(job.path("told.txt")).expect("a file");
    assert!(told.starts_with("restarting run ") && told.contains("\nrun_ended run "), "{told}");
    let printed = job.printed();
    assert!(printed.contains("could not send a notification: `exit 3`"), "{printed}");
    assert!(!printed.contains("secret"), "{printed}");
}
