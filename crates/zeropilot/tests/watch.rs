//! `zeropilot check --watch`, as a user runs it.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Ends the program whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines(reader: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// CPU time of a process so far, in clock ticks: fields 14 and 15 of its `stat`.
fn ticks(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("a running process");
    let after_name = stat.rsplit(')').next().expect("fields");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    [fields[11], fields[12]].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

#[test]
fn a_change_is_checked_and_waiting_costs_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("ds.json");
    fs::write(&file, "{\"train_batch_size\": 8, \"nobody\": 1}").expect("a file");
    let child = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env_clear()
        .args(["check", "ds.json", "--watch", "--output-format", "concise"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let mut running = Running(child);
    let told = lines(running.0.stdout.take().expect("standard output is piped"));
    let next = || told.recv_timeout(Duration::from_secs(60)).expect("a line in time");
    assert!(next().contains("K01 DeepSpeed does not read the key `nobody`"));
    let before = ticks(running.0.id());
    thread::sleep(Duration::from_millis(1500));
    assert!(ticks(running.0.id()) - before <= 2, "it is busy while nothing changes");
    // As editors save: a new file takes the name of the old one.
    fs::write(directory.path().join("new"), "{\"train_batch_size\": 8, \"other\": 1}")
        .expect("a file");
    fs::rename(directory.path().join("new"), &file).expect("a rename");
    assert!(next().contains("`other`"));
    let interrupted = Command::new("kill")
        .args(["-INT", &running.0.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(interrupted.success());
    let status = running.0.wait().expect("it ends");
    assert!(!status.success());
}
