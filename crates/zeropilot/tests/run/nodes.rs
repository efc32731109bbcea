//! Two machines: network namespaces with a cable between them, each with a launcher and a zeropilot of its own.

use std::ffi::OsString;
use std::process::Command;

use zeropilot_record::RunEvent;

use crate::job::{Job, program};
use crate::supervised::{Supervised, or_skipped, signal};

const STEPS: u64 = 40;

/// Two namespaces, taken down with their value.
struct Nodes {
    names: [String; 2],
    cables: [String; 2],
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split(' ')).output();
    let done = done.map_err(|error| format!("ip cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    if done.status.success() { Ok(()) } else { Err(format!("ip {words}: {said}")) }
}

impl Nodes {
    /// # Errors
    /// Why this machine does not allow it.
    fn new() -> Result<Self, String> {
        let id = std::process::id() % 100_000;
        let nodes = Self {
            names: ["a", "b"].map(|side| format!("zeropilot-{id}{side}")),
            cables: ["a", "b"].map(|side| format!("zp{id}{side}")),
        };
        let ([a, b], [to_b, to_a]) = (&nodes.names, &nodes.cables);
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add {to_b} netns {a} type veth peer name {to_a} netns {b}"))?;
        for (node, (cable, address)) in
            nodes.names.iter().zip(nodes.cables.iter().zip(["10.213.7.1/24", "10.213.7.2/24"]))
        {
            ip(&format!("-n {node} addr add {address} dev {cable}"))?;
            ip(&format!("-n {node} link set lo up"))?;
            ip(&format!("-n {node} link set {cable} up"))?;
        }
        Ok(nodes)
    }

    fn cable(&self, state: &str) {
        ip(&format!("-n {} link set {} {state}", self.names[0], self.cables[0])).expect("a cable");
    }

    fn job(&self, home: &std::path::Path, node: usize) -> Job {
        Job::new(home, 1)
            .wrapped(&["ip", "netns", "exec", &self.names[node]])
            .with("GLOO_SOCKET_IFNAME", &self.cables[node])
            .with("TP_SOCKET_IFNAME", &self.cables[node])
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// Starts one side; checkpoints go to a directory that both see.
fn start(job: &Job, node: usize, checkpoints: &str, steps: u64) -> Supervised {
    let words = format!(
        "torchrun --nnodes 2 --node-rank {node} --nproc-per-node 1 --master-addr 10.213.7.1 \
         --master-port 29500 {} --deepspeed ds.json --steps {steps} --timeout 12 --save {checkpoints} --save-every 10",
        program().display()
    );
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    job.start_command(&["--max-restarts", "1", "--resume-with", "--resume {}"], &words)
}

fn ended_first_with(run: &Supervised) -> Option<String> {
    run.events().into_iter().find_map(|event| match event {
        RunEvent::AttemptEnded { cause, .. } => Some(cause.name().to_owned()),
        _ => None,
    })
}

#[test]
fn two_machines_that_lose_each_other_know_it_and_go_on_when_the_cable_is_back() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(nodes) = or_skipped("no two machines here", Nodes::new()) else { return };
    let jobs = [nodes.job(&home, 0), nodes.job(&home, 1)];
    let checkpoints = jobs[0].path("ckpt").display().to_string();
    let mut runs = [0, 1].map(|node| start(&jobs[node], node, &checkpoints, STEPS));
    let latest = jobs[0].path("ckpt/latest");
    runs[0].wait_until("a checkpoint", |_| latest.is_file());
    nodes.cable("down");
    for run in &mut runs {
        run.wait_until("the end of the first attempt", |run| ended_first_with(run).is_some());
        assert_eq!(ended_first_with(run).as_deref(), Some("collective_timeout"));
    }
    nodes.cable("up");
    for (run, job) in runs.into_iter().zip(&jobs) {
        let (code, verdict) = run.end();
        assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
        let attempts = verdict["attempts"].as_array().expect("attempts");
        let resumed = attempts[1]["resumed_from"].as_str().expect("a checkpoint");
        assert!(resumed.contains("ckpt/global_step"), "{resumed}");
    }
    let steps: Vec<u64> = jobs[0].losses().iter().map(|(step, _)| *step).collect();
    assert_eq!(steps.iter().filter(|step| **step == 1).count(), 1, "it did not begin anew");
    assert_eq!(steps.last(), Some(&STEPS));
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_rank_that_is_killed_on_one_machine_is_a_lost_peer_on_the_other() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(nodes) = or_skipped("no two machines here", Nodes::new()) else { return };
    let jobs = [nodes.job(&home, 0), nodes.job(&home, 1)];
    let checkpoints = jobs[0].path("ckpt").display().to_string();
    let mut runs = [0, 1].map(|node| start(&jobs[node], node, &checkpoints, STEPS));
    let latest = jobs[0].path("ckpt/latest");
    runs[0].wait_until("a checkpoint", |_| latest.is_file());
    signal("KILL", runs[1].rank(1));
    for (run, cause) in runs.iter_mut().zip(["peer_lost", "rank_killed"]) {
        run.wait_until("the end of the first attempt", |run| ended_first_with(run).is_some());
        assert_eq!(ended_first_with(run).as_deref(), Some(cause));
    }
    for (run, job) in runs.into_iter().zip(&jobs) {
        let (code, verdict) = run.end();
        assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    }
}

/// Two supervisors whose records are found in one directory, as on a shared disk.
#[test]
fn of_a_job_the_node_that_failed_first_is_named() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let shared = tempfile::tempdir().expect("a directory");
    let port = crate::job::free_port();
    let jobs = [0, 1].map(|_| {
        Job::new(&home, 1).running(program()).with("ZEROPILOT_RUNS", shared.path().as_os_str())
    });
    let mut runs = [0, 1].map(|node: usize| {
        let launcher = format!(
            "torchrun --nnodes 2 --node-rank {node} --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {port}"
        );
        jobs[node].start(&["--max-restarts", "0"], &launcher, "--steps 100000 --timeout 60")
    });
    runs[0].wait_for_step(2);
    let ask = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .args(arguments)
            .env("ZEROPILOT_RUNS", shared.path())
            .output()
            .expect("zeropilot runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let head = format!("job 127.0.0.1:{port}: 2 of 2 nodes");
    let listed = ask(&["runs"]);
    assert_eq!(listed.lines().nth(1), Some(head.as_str()), "{listed}");
    let watched = ask(&["watch", "--once"]);
    assert!(watched.contains(&head) && watched.matches(": running").count() == 2, "{watched}");

    signal("KILL", runs[1].rank(1));
    let codes = runs.map(|run| run.end().0);
    assert_eq!(codes, [Some(13), Some(12)]);
    let listed = ask(&["runs"]);
    let line = listed.lines().nth(1).unwrap_or_default();
    assert!(line.contains("; node 1 (") && line.ends_with("failed first"), "{listed}");
    let listed: serde_json::Value = serde_json::from_str(&ask(&["runs", "--json"])).expect("JSON");
    let members = &listed[0]["job"]["members"];
    assert_eq!(
        (&members[0]["failed_first"], &members[1]["failed_first"]),
        (&false.into(), &true.into())
    );
    assert!(ask(&["watch", "--once"]).contains("failed first"));
}

/// The other machine never comes: whoever waits for it is told, and can end it.
#[test]
fn a_node_that_waits_for_another_says_so() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let launcher = format!(
        "torchrun --nnodes 2 --node-rank 0 --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {}",
        crate::job::free_port()
    );
    let mut run = job.start(&["--hang-after", "10s"], &launcher, "--steps 3");
    run.wait_until("the word", |run| {
        run.events().iter().any(|event| matches!(event, RunEvent::NoRanksYet { .. }))
    });
    signal("TERM", run.child.id());
    let (code, _) = run.end();
    assert_eq!(code, Some(143));
    assert!(job.printed().contains("it is probably waiting for other nodes"), "{}", job.printed());
}
