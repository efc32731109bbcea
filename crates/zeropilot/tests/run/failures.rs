//! Runs that fail in ways of their own, each judged by what the real engine and launcher say.

use std::fs;

use serde_json::{Value, json};
use zeropilot_record::TrainedStep;

use crate::job::{Job, config, example, program};
use crate::supervised::signal;

fn assert_ends(job: &Job, ended: (Option<i32>, Value), cause: &str, code: i32) {
    let (ended, verdict) = ended;
    let said = (verdict["cause"].as_str(), ended);
    assert_eq!(said, (Some(cause), Some(code)), "{verdict:#}\n{}", job.printed());
}

#[test]
fn ranks_that_wait_too_long_for_one_that_sleeps_time_out() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1).running(program());
    let run = job.start(&[], "torchrun", "--steps 4 --timeout 12 --sleep-at 2");
    assert_ends(&job, run.end(), "collective_timeout", 13);
}

/// The engine itself gives up: fp16 ranks on CPUs, a loss that overflows from the second step on.
#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn fp16_that_finds_no_loss_scale_is_told_apart_from_other_failures() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut asked = config(1);
    asked.as_object_mut().expect("an object").remove("bf16");
    asked["fp16"] = json!({"enabled": true, "initial_scale_power": 2, "hysteresis": 1});
    let job = Job::with_config(&home, &asked).running(program());
    let run = job.start(&[], "torchrun", "--steps 20 --infinite-at 2");
    assert_ends(&job, run.end(), "loss_scale_floor", 15);
}

/// bf16 has no scale to lower: the engine trains on, and its launcher says that all went well.
#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn training_that_ends_with_a_loss_that_is_no_number_has_not_completed() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1).running(program());
    let run = job.start(&[], "torchrun", "--steps 8 --infinite-at 3");
    assert_ends(&job, run.end(), "not_finite", 15);
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_rank_that_is_killed_under_accelerate_launch_is_known() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(example("accelerate_loop.py"));
    let mut run = job.start(&[], "accelerate", "--deepspeed ds.json --batch-size 1 --steps 100000");
    run.wait_for_step(2);
    signal("KILL", run.rank(1));
    assert_ends(&job, run.end(), "rank_killed", 12);
}

/// The Trainer writes `checkpoint-N` and is told by its own argument.
#[test]
fn the_hf_trainer_goes_on_from_its_checkpoint_without_being_told_how() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(example("hf_trainer.py"));
    let arguments = "--bf16 --use_cpu --per_device_train_batch_size 1 --gradient_accumulation_steps 2 \
        --learning_rate 0.001 --max_steps 60 --save_steps 20 --logging_steps 1 --output_dir out";
    let mut run = job.start(&["--max-restarts", "1"], "torchrun", arguments);
    let saved = job.path("out/checkpoint-20/trainer_state.json");
    run.wait_until("a checkpoint", |_| saved.is_file());
    signal("KILL", run.rank(0));
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!(attempts[0]["cause"], "rank_killed", "{verdict:#}");
    let resumed = attempts[1]["resumed_from"].as_str().expect("a checkpoint");
    assert!(resumed.contains("out/checkpoint-"), "{resumed}");
    assert!(job.path("out/checkpoint-60").is_dir(), "all steps were made");

    // What the Trainer prints of a step is one line for plots.
    let text = fs::read_to_string(job.path("record/steps.jsonl")).expect("steps");
    let steps: Vec<TrainedStep> =
        text.lines().map(|line| serde_json::from_str(line).expect("a step")).collect();
    let whole = |step: &&TrainedStep| {
        step.loss.is_some() && step.grad_norm.is_some() && step.learning_rate.is_some()
    };
    let of_second = steps.iter().filter(|step| step.attempt == 2);
    assert!(of_second.filter(whole).count() > 10, "{text}");
    assert_eq!(steps.last().map(|step| (step.attempt, step.step)), Some((2, 60)), "{text}");
}
