//! Which checkpoint a run goes on from, and which it leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zeropilot_record::RunEvent;

use crate::job::{Job, stand_in};
use crate::supervised::events;

fn job(stage: u64) -> Option<Job> {
    Some(Job::new(&zeropilot_oracle::home()?, stage).running(stand_in()))
}

/// A complete checkpoint of two ranks, as somebody else wrote it.
fn write_checkpoint(root: &Path, tag: &str) {
    let parts = root.join(tag);
    fs::create_dir_all(&parts).expect("a directory");
    let whole = [b"PK\x05\x06".as_slice(), &[0; 18]].concat();
    for name in [
        "mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    ] {
        fs::write(parts.join(name), &whole).expect("a file");
    }
    fs::write(root.join("latest"), tag).expect("a file");
}

/// Every file below a directory with what is in it.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).expect("a file"))),
        }
    }
    found
}

fn steps(job: &Job) -> Vec<u64> {
    let out = fs::read_to_string(job.path("out.log")).expect("output");
    let step = |line: &str| line.strip_prefix("step ")?.split('/').next()?.parse().ok();
    out.lines().filter_map(step).collect()
}

fn resumed(verdict: &Value, attempt: usize) -> String {
    let from = &verdict["attempts"][attempt]["resumed_from"];
    from.as_str().unwrap_or_else(|| panic!("{verdict:#}")).to_owned()
}

const OTHERS: &str = "already contains checkpoints of another run";
const RESUME: [&str; 2] = ["--resume-with", "--resume {}"];
const SCRATCH: &str = "--allow-restart-from-scratch";
const KILLED: &str = "--fault SIGKILL --once fired --fault-rank 0";

/// A fallback to stage 3 cannot read what stage 2 wrote. However the user spells the directory, it is left as it was.
#[test]
fn a_fallback_never_writes_over_checkpoints_of_another_stage() {
    let Some(home) = zeropilot_oracle::home() else { return };
    // Nothing is left below but stage 3.
    let mut config = crate::job::config(2);
    config["zero_optimization"]["offload_optimizer"] = json!({"device": "cpu"});
    let job = Job::with_config(&home, &config).running(stand_in());
    let root = job.path("ckpt");
    let options = ["--fallback", "--checkpoints", root.to_str().expect("a path"), SCRATCH];
    let arguments =
        "--steps 6 --save ./ckpt/ --save-every 2 --fault oom --once fired --fault-step 5";
    let run = job.start(&[&options[..], &RESUME].concat(), "torchrun", arguments);
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let old = content(&root);
    assert!(old.values().all(|bytes| !bytes.starts_with(b"stage 3")), "written over");
    let fresh = content(&job.path("ckpt.attempt-2"));
    assert!(fresh.values().any(|bytes| bytes.starts_with(b"stage 3")), "{fresh:?}");
}

/// Nothing is left below but stage 3, which cannot load what stage 2 wrote: days of training are not thrown away unasked.
#[test]
fn a_fallback_that_would_lose_the_progress_is_not_taken_unasked() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut config = crate::job::config(2);
    config["zero_optimization"]["offload_optimizer"] = json!({"device": "cpu"});
    let job = || Job::with_config(&home, &config).running(stand_in());
    let arguments = "--steps 6 --save ckpt --save-every 2 --fault oom --once fired --fault-step 5";
    for options in [&["--fallback"][..], &[&["--fallback"][..], &RESUME].concat()] {
        let job = job();
        let (code, verdict) = job.start(options, "torchrun", arguments).end();
        let attempts = verdict["attempts"].as_array().map(Vec::len);
        assert_eq!((code, attempts), (Some(10), Some(1)), "{verdict:#}\n{}", job.printed());
        let printed = job.printed();
        assert!(printed.contains(SCRATCH) && printed.contains("up to step 4"), "{printed}");
    }
}

/// Whoever restarts a program that cannot resume keeps its checkpoints too.
#[test]
fn a_restart_that_would_lose_the_progress_is_not_made_unasked() {
    let arguments = format!("--steps 12 --save ckpt --save-every 5 {KILLED} --fault-step 7");
    for (allowed, ends, attempts) in [(&[][..], 12, 1), (&[SCRATCH][..], 0, 2)] {
        let Some(job) = job(2) else { return };
        let options = [&["--max-restarts", "1"][..], allowed].concat();
        let (code, verdict) = job.start(&options, "torchrun", &arguments).end();
        let ended = (code, verdict["attempts"].as_array().map(Vec::len));
        assert_eq!(ended, (Some(ends), Some(attempts)), "{verdict:#}\n{}", job.printed());
        assert_eq!(job.printed().contains("lose the progress"), ends == 12, "{}", job.printed());
    }
}

/// Where the directory is in no word of the command, it cannot be exchanged: the run ends, and says why.
#[test]
fn a_fallback_that_cannot_be_told_of_another_directory_is_not_started() {
    let Some(job) = job(2) else { return };
    let hidden = job.path("hidden");
    write_checkpoint(&hidden, "global_step1");
    let old = content(&hidden);
    let options = ["--fallback", "--checkpoints", "hidden"];
    let arguments = "--steps 3 --fault oom --fault-step 2";
    let run = job.start(&[&options[..], &RESUME].concat(), "torchrun", arguments);
    let (code, verdict) = run.end();
    assert_eq!((code, verdict["attempts"].as_array().map(Vec::len)), (Some(10), Some(1)));
    assert_eq!(content(&hidden), old);
    let printed = job.printed();
    assert!(printed.contains("not restarting") && printed.contains("hidden"), "{printed}");
}

/// A run of 15 steps in a directory that still has step 20 of another one.
#[test]
fn checkpoints_of_another_run_are_not_gone_on_from() {
    let Some(job) = job(2) else { return };
    write_checkpoint(&job.path("ckpt"), "global_step20");
    let arguments = format!("--steps 15 --save ckpt --save-every 5 {KILLED} --fault-step 7");
    let (code, verdict) = job.start(&RESUME, "torchrun", &arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert!(resumed(&verdict, 1).ends_with("ckpt/global_step5"), "{verdict:#}");
    assert_eq!(steps(&job).iter().filter(|step| **step == 15).count(), 1);
    // It is said before anything is written over.
    let printed = job.printed();
    assert!(printed.contains(OTHERS) && printed.contains("up to step 20"), "{printed}");
    let found = |event: &RunEvent| matches!(event, RunEvent::CheckpointsFound { step: 20, .. });
    let started = |event: &RunEvent| matches!(event, RunEvent::AttemptStarted { .. });
    let events = events(job.directory.path());
    assert!(events.iter().position(found) < events.iter().position(started), "{events:?}");
}

/// What the user resumes from counts, though another run wrote it.
#[test]
fn a_checkpoint_that_the_user_resumes_from_is_the_runs_own() {
    let Some(job) = job(2) else { return };
    write_checkpoint(&job.path("ckpt"), "global_step4");
    let arguments =
        format!("--steps 8 --save ckpt --save-every 100 --resume ckpt {KILLED} --fault-step 6");
    let (code, verdict) = job.start(&RESUME, "torchrun", &arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert!(resumed(&verdict, 1).ends_with("ckpt/global_step4"), "{verdict:#}");
    assert!(!steps(&job).contains(&1));
    assert!(!job.printed().contains(OTHERS), "{}", job.printed());
}

/// A script changes its directory, and the tags are the program's own.
#[test]
fn checkpoints_are_found_where_the_program_runs_and_under_its_own_tags() {
    let Some(job) = job(2) else { return };
    fs::create_dir(job.path("sub")).expect("a directory");
    let launch = format!(
        "cd sub; torchrun --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 {} \
         --deepspeed {} --steps 12 --save ckpt --save-every 5 --tag step_{{}} --pause 0.3 {KILLED} --fault-step 11",
        stand_in().display(),
        job.path("ds.json").display()
    );
    fs::write(job.path("train.sh"), launch).expect("a script");
    let words = ["bash".into(), "train.sh".into()];
    let (code, verdict) = job.start_command(&RESUME, &words).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert!(resumed(&verdict, 1).ends_with("sub/ckpt/step_10"), "{verdict:#}");
}

/// A checkpoint that looks whole and cannot be read: the one before it is as good as it was.
#[test]
fn a_checkpoint_that_proves_unreadable_is_left_for_the_one_before() {
    let Some(job) = job(2) else { return };
    let arguments = format!(
        "--steps 12 --save ckpt --save-every 5 --unreadable global_step10 {KILLED} --fault-step 11"
    );
    let (code, verdict) = job.start(&RESUME, "torchrun", &arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert_eq!(verdict["attempts"][1]["cause"], "checkpoint_unreadable", "{verdict:#}");
    assert!(resumed(&verdict, 2).ends_with("ckpt/global_step5"), "{verdict:#}");
}

/// A program of its own with an `--output_dir` is not the HF Trainer: its argument is not added.
#[test]
fn a_program_is_not_given_an_option_that_it_may_not_have() {
    let Some(job) = job(2) else { return };
    let arguments =
        format!("--steps 12 --save out --output_dir out --save-every 5 {KILLED} --fault-step 11");
    let (code, verdict) = job.start(&[], "torchrun", &arguments).end();
    assert_eq!((code, &verdict["cause"]), (Some(12), &json!("rank_killed")), "{}", job.printed());
}

/// With a checkpoint of stage 2, memory that runs out is first answered by what can go on from it.
#[test]
fn a_fallback_that_keeps_the_progress_comes_first() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut config = crate::job::config(2);
    config["train_micro_batch_size_per_gpu"] = json!(2);
    config["gradient_accumulation_steps"] = json!(1);
    let job = Job::with_config(&home, &config).running(stand_in());
    let options = [&["--fallback"][..], &RESUME].concat();
    let arguments = "--steps 12 --save ckpt --fault oom --once fired --fault-step 11";
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert!(resumed(&verdict, 1).ends_with("ckpt/global_step10"), "{verdict:#}");
    assert_eq!(verdict["attempts"][1]["strategy"]["stage"], 2);
    let anew = |event: &RunEvent| matches!(event, RunEvent::BeginningAnew { .. });
    assert!(!events(job.directory.path()).iter().any(anew));
}
