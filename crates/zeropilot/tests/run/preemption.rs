//! Schedulers that take a job's nodes away and start it again: it saves, ends with the code that was asked for, and goes on.

use std::path::PathBuf;

use serde_json::{Value, json};
use zeropilot_record::RunEvent;

use crate::healthy::alone;
use crate::job::{Job, here, program, stand_in};
use crate::supervised::{events, signal};

const CONTINUE: [&str; 3] = ["--continue", "--resume-with", "--resume {}"];

/// Where Python finds the package, and the examples.
fn packages() -> String {
    format!("{}:{}", here("../../python").display(), here("../../examples").display())
}

fn steps(job: &Job) -> Vec<u64> {
    job.losses().iter().map(|(step, _)| *step).collect()
}

fn resumable(verdict: &Value) -> Option<PathBuf> {
    let evidence = verdict["attempts"].as_array()?.last()?["evidence"].as_array()?.clone();
    let found = evidence.iter().find_map(|one| one["resumable_from"]["checkpoint"].as_str());
    found.map(PathBuf::from)
}

/// The engine's own loop with the hook of the package: SIGUSR1 as Slurm sends it, a second start, and a third one that has
/// nothing to do.
#[test]
fn a_warned_job_saves_and_its_next_start_goes_on_from_there() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(program()).with("PYTHONPATH", packages());
    let arguments = "--steps 30 --pause 0.2 --save ckpt --save-every 1000 --preemptible";
    let mut run = job.start(&CONTINUE, "torchrun", arguments);
    run.wait_for_step(3);
    signal("USR1", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!((code, &verdict["signal"]), (Some(138), &json!(10)), "{}", job.printed());
    assert!(resumable(&verdict).is_some_and(|path| path.is_dir()), "{verdict:#}");
    let mut made = steps(&job);
    assert!(made.len() < 30, "{made:?}");
    let (code, verdict) = job.start(&CONTINUE, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    made.extend(steps(&job));
    assert_eq!(made, (1..=30).collect::<Vec<u64>>(), "each step is made once");
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!((attempts.len(), &attempts[1]["number"]), (2, &json!(2)), "{verdict:#}");
    let happened = events(job.directory.path());
    let count = |is: fn(&RunEvent) -> bool| happened.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, RunEvent::RunStarted { .. })), 1);
    assert_eq!(count(|event| matches!(event, RunEvent::Continued { attempts: 1 })), 1);
    let (code, verdict) = job.start(&CONTINUE, "torchrun", arguments).end();
    assert_eq!((code, verdict["attempts"].as_array().map(Vec::len)), (Some(0), Some(2)));
    assert!(job.printed().contains("is already completed"), "{}", job.printed());
}

#[test]
fn the_hf_trainer_saves_when_it_is_asked_to_end() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let trainer = here("tests/run/preemptible_trainer.py");
    let job = Job::new(&home, 2).running(trainer).with("PYTHONPATH", packages());
    let arguments = "--bf16 --use_cpu --per_device_train_batch_size 1 --gradient_accumulation_steps 2 \
        --learning_rate 0.001 --max_steps 30 --save_steps 1000 --logging_steps 1 --output_dir out";
    let options = ["--continue", "--grace", "120s", "--requeue-exit-code", "75"];
    let mut run = job.start(&options, "torchrun", arguments);
    run.wait_for_step(3);
    signal("TERM", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!((code, &verdict["cause"]), (Some(75), &json!("interrupted")), "{}", job.printed());
    assert!(resumable(&verdict).is_some(), "{verdict:#}");
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let resumed = verdict["attempts"][1]["resumed_from"].as_str().expect("a checkpoint");
    assert!(resumed.contains("out/checkpoint-"), "{resumed}");
}

/// Launchers kill their ranks 30 seconds after SIGTERM, so that ranks which save get it first, and alone.
#[test]
fn ranks_that_handle_the_signal_are_asked_before_their_launcher() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let arguments = "--steps 100000 --pause 0.1 --save ckpt --save-every 100000 --save-on-term 2";
    let options = ["--grace", "60s"];
    let mut run = job.start(&options, "torchrun", arguments);
    run.wait_for_step(3);
    signal("TERM", run.child.id());
    signal("TERM", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!(code, Some(143), "{verdict:#}");
    assert!(resumable(&verdict).is_some_and(|path| path.ends_with("global_step1000")));
    let printed = job.printed();
    assert!(printed.contains("forwarded signal 15 to 2 process(es)"), "{printed}");
    assert!(printed.contains("checkpoint to resume from: step 1000"), "{printed}");
}

/// The machine went down, and nobody could say anything: the record is enough to go on.
#[test]
fn a_run_whose_supervisor_was_killed_can_be_continued() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let arguments = "--steps 40 --pause 0.2 --save ckpt --save-every 5";
    let mut run = job.start(&CONTINUE, "torchrun", arguments);
    let latest = job.path("ckpt/latest");
    run.wait_until("a checkpoint", |_| latest.is_file());
    signal("KILL", run.child.id());
    run.child.wait().expect("it ends");
    run.assert_nothing_is_left(std::time::Duration::from_secs(30));
    let (code, verdict) = job.start(&CONTINUE, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert!(!steps(&job).contains(&1), "{:?}", steps(&job));
    assert_eq!(verdict["attempts"][0]["number"], 2, "{verdict:#}");
}

/// A fallback that an earlier start took holds for the next one: it would run out of memory again.
#[test]
fn a_continued_run_keeps_its_fallback() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let options = [&["--fallback"][..], &CONTINUE].concat();
    let arguments = "--steps 20 --pause 0.2 --save ckpt --fault oom --fault-step 2 --once fired";
    let mut run = job.start(&options, "torchrun", arguments);
    let latest = job.path("ckpt/latest");
    run.wait_until("a checkpoint", |_| latest.is_file());
    signal("TERM", run.child.id());
    let (code, verdict) = run.end();
    assert_eq!((code, verdict["attempts"].as_array().map(Vec::len)), (Some(143), Some(2)));
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let (second, third) = (&verdict["attempts"][1], &verdict["attempts"][2]);
    assert_eq!((&second["strategy"], &second["config"]), (&third["strategy"], &third["config"]));
    assert!(third["resumed_from"].as_str().is_some_and(|path| path.contains("ckpt")));
}

#[test]
fn continuing_needs_a_way_to_resume() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(stand_in());
    let (code, _) = job.start_command(&["--continue"], &alone("--steps 3")).end();
    assert_eq!(code, Some(2));
    assert!(job.printed().contains("--resume-with"), "{}", job.printed());
}
