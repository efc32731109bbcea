//! Real hangs on the real engine: the rank and the line that are at fault are named, and why.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::job::{Job, here};

/// A hang that was judged.
struct Hang {
    job: Job,
    verdict: Value,
}

fn program() -> PathBuf {
    here("tests/run/hangs.py")
}

/// The line of the program with a mark.
fn line(mark: &str) -> usize {
    let text = fs::read_to_string(program()).expect("the program");
    let end = format!("# HERE {mark}");
    1 + text.lines().position(|line| line.ends_with(&end)).expect("a line with this mark")
}

fn place(mark: &str) -> String {
    format!("hangs.py:{}", line(mark))
}

impl Hang {
    /// Lets so many ranks hang in one of the ways, in a stage.
    fn of(home: &Path, kind: &str, stage: u64, ranks: usize) -> Self {
        let job = Job::with_config(home, &config(stage)).running(program());
        Self::in_job(job, kind, ranks, &["--no-preflight"])
    }

    fn in_job(job: Job, kind: &str, ranks: usize, options: &[&str]) -> Self {
        let launcher =
            format!("torchrun --nproc-per-node {ranks} --master-port {}", crate::job::free_port());
        let options = [&["--step-timeout", "4s"], options].concat();
        let (code, verdict) = job.start(&options, &launcher, &format!("--hang {kind}")).end();
        assert_eq!((code, &verdict["cause"]), (Some(14), &json!("hang")), "{}", job.printed());
        Self { job, verdict }
    }

    fn evidence(&self, name: &str) -> Vec<&Value> {
        let evidence = self.verdict["attempts"][0]["evidence"].as_array().expect("evidence");
        evidence.iter().filter_map(|one| one.get(name)).collect()
    }

    /// Where a rank stood.
    fn rank(&self, rank: u64) -> &Value {
        let at = self.evidence("ranks_at");
        let has =
            |at: &&&Value| at["ranks"].as_array().is_some_and(|all| all.contains(&json!(rank)));
        at.iter().find(has).unwrap_or_else(|| panic!("rank {rank}: {:#}", self.verdict))
    }

    fn assert_rank(&self, rank: u64, mark: &str, collective: Option<&str>) {
        let at = self.rank(rank);
        let stood = at["place"].as_str().unwrap_or_default();
        assert!(stood.ends_with(&place(mark)), "{} in {:#}", place(mark), self.verdict);
        assert_eq!(at["collective"].as_str(), collective, "{at:#}");
        // The terminal says the same.
        let printed = self.job.printed();
        assert!(printed.contains(&place(mark)), "{printed}");
    }

    fn assert_reason(&self, odd: &[u64], reason: &str) -> &Value {
        let found = self.evidence("hang");
        let found = found.first().unwrap_or_else(|| panic!("a reason: {:#}", self.verdict));
        assert_eq!(
            (&found["reason"], &self.verdict["ranks"]),
            (&json!(reason), &json!(odd)),
            "{:#}",
            self.verdict
        );
        found
    }
}

fn config(stage: u64) -> Value {
    let mut config = crate::job::config(stage);
    config["gradient_accumulation_steps"] = json!(1);
    config.as_object_mut().expect("an object").remove("train_batch_size");
    config["zero_optimization"]["stage3_param_persistence_threshold"] = json!(0);
    config["optimizer"]["params"]["torch_adam"] = json!(true);
    config
}

#[test]
fn saving_on_one_rank() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "save", 2, 2);
    hang.assert_rank(0, "save", Some("barrier"));
    let reason = hang.assert_reason(&[0], "one_rank");
    assert_eq!(reason["condition"], "step == WRONG and self.rank == 0");
    assert_eq!(reason["rule"], "H08");
    assert_eq!(hang.rank(1)["collective"], "all_reduce");
    assert_eq!(hang.rank(1)["activity"], "backward");
    assert!(hang.job.printed().contains("zeropilot rule H08"), "{}", hang.job.printed());
    // What the ranks wrote is kept in the record, and nothing else of it is.
    let stack = fs::read_to_string(hang.job.path("record/stacks-1/rank-0.txt")).expect("a stack");
    assert!(stack.contains("in save_checkpoint"), "{stack}");
    assert!(!hang.job.path("record/.python").exists() && !hang.job.path("record/.stacks").exists());
}

#[test]
fn evaluating_on_one_rank_in_stage_3() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "evaluate", 3, 2);
    let reason = hang.assert_reason(&[0], "one_rank");
    assert_eq!(reason["rule"], "H10");
    assert_eq!(reason["condition"], "dist.get_rank() == 0 and step == WRONG");
    let condition = format!("hangs.py:{}", line("one rank") - 1);
    assert!(reason["place"].as_str().is_some_and(|place| place.ends_with(&condition)), "{reason}");
}

#[test]
fn a_batch_without_an_image_on_one_of_three_ranks_in_stage_3() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "text", 3, 3);
    let reason = hang.assert_reason(&[2], "other_path");
    assert_eq!(reason["rule"], "H09");
    assert_eq!(hang.rank(2)["activity"], "forward");
}

#[test]
fn fewer_batches_on_one_rank() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "uneven", 2, 2);
    hang.assert_rank(1, "uneven", Some("barrier"));
    let reason = hang.assert_reason(&[1], "left_loop");
    assert!(reason["place"].as_str().is_some_and(|at| at.ends_with(&place("loop"))), "{reason}");
    assert_eq!(reason.get("skip"), None);
}

#[test]
fn a_step_that_one_rank_skips() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "skip", 1, 2);
    hang.assert_rank(1, "skip", Some("barrier"));
    let reason = hang.assert_reason(&[1], "left_loop");
    assert!(reason["skip"].as_str().is_some_and(|at| at.ends_with(&place("continue"))), "{reason}");
}

/// The line is that of the data worker, a process of its own.
#[test]
fn a_sample_that_is_never_read() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "data", 2, 2);
    hang.assert_rank(1, "data", None);
    hang.assert_reason(&[1], "data");
}

/// Without the handler: by py-spy where it is, else by what the kernel knows.
#[test]
fn a_rank_that_sleeps_with_and_without_the_handler() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "sleep", 2, 4);
    hang.assert_rank(3, "sleep", None);
    hang.assert_reason(&[3], "elsewhere");

    let job = Job::with_config(&home, &config(2)).running(program());
    let hang = Hang::in_job(job, "sleep", 2, &["--no-preflight", "--no-stack-handler"]);
    if home.join("engine/bin/py-spy").is_file() && hang.rank(1)["no_stack"] != "refused" {
        hang.assert_rank(1, "sleep", None);
    } else {
        println!("SKIPPED: py-spy is not beside the engine, or may not trace");
        assert!(hang.rank(1)["kernel"].is_string(), "{:#}", hang.verdict);
    }
}

#[test]
fn a_collective_that_only_the_flight_recorder_shows() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "ahead", 2, 3);
    hang.assert_rank(0, "ahead", None);
    assert_eq!(hang.rank(0)["pending"], "all_reduce");
    hang.assert_reason(&[2], "elsewhere");
    let printed = hang.job.printed();
    assert!(printed.contains("ranks 0, 1 wait for all_reduce to finish"), "{printed}");
}

#[test]
fn the_same_collective_in_another_process_group() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let hang = Hang::of(&home, "group", 2, 3);
    hang.assert_rank(2, "group", Some("all_reduce"));
    let reason = hang.assert_reason(&[2], "not_called");
    assert_eq!(
        (&reason["group"], &reason["operation"]),
        (&json!("default_pg"), &json!("all_reduce"))
    );
}

#[test]
fn a_lock_that_a_killed_build_left() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::with_config(&home, &config(2)).running(program());
    let cache = job.path("extensions");
    let lock = cache.join("one/lock");
    fs::create_dir_all(cache.join("one")).expect("a directory");
    fs::write(&lock, "").expect("a lock");
    let job = job.with("TORCH_EXTENSIONS_DIR", &cache);
    let hang = Hang::in_job(job, "build", 2, &[]);
    hang.assert_rank(1, "build", None);
    let reason = hang.assert_reason(&[], "extension_lock");
    assert_eq!(reason["path"], json!(lock), "{reason}");
    assert!(hang.job.printed().contains(&format!("rm {}", lock.display())));
    // It was said before the start, too.
    let printed = hang.job.printed();
    let warned = printed.find("warning[stale-lock]");
    assert!(
        warned.is_some_and(|at| at < printed.find("no progress for").unwrap_or(0)),
        "{printed}"
    );
}
