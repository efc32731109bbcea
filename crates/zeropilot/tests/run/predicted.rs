//! The memory model beside a run: what cannot fit is refused, and fallbacks are chosen by what was measured.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use zeropilot_record::{Event, Memory, RunEvent, TrainedStep};

use crate::job::{Job, config, model};
use crate::memory_group::MemoryGroup;
use crate::supervised::{limit_data, or_skipped};

/// A model of 151 million parameters.
const LARGE: &str = "--steps 6 --layers 16 --width 1024";

/// Lets a job make a step, takes memory from its ranks, and waits for the end. How much each stage needs differs by less
/// than one run from the next on CPUs, so no limit is right for one stage and wrong for another every time.
fn ended_short_of_memory(job: &Job, options: &[&str]) -> Value {
    let mut run = job.start(options, "torchrun", LARGE);
    run.wait_for_step(1);
    limit_data(run.rank(0), 1 << 30);
    limit_data(run.rank(1), 1 << 30);
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    assert_eq!(verdict["attempts"][0]["cause"], "out_of_memory", "{verdict:#}");
    verdict
}

fn happenings(job: &Job) -> Vec<RunEvent> {
    let text = fs::read_to_string(job.path("record/events.jsonl")).expect("events");
    text.lines().map(|line| Event::read(line).expect("an event").happening).collect()
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn when_memory_runs_out_a_stage_that_fits_is_taken_and_training_completes() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    fs::write(job.path("model.json"), model(16).to_string()).expect("a model");
    let options = ["--fallback", "--model", "model.json", "--seq-len", "32"];
    let verdict = ended_short_of_memory(&job, &options);
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!(
        (&attempts[0]["memory"], &attempts[0]["shortage"]),
        (&json!("host"), &json!("refused"))
    );
    let last = job.config(attempts.len());
    assert!(last["zero_optimization"]["stage"].as_u64() > Some(1), "{last:#}");
    for key in ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"]
    {
        assert_eq!(job.config(1)[key], last[key], "the samples per step are the same");
    }
    let steps: Vec<u64> = job.losses().iter().map(|(step, _)| *step).collect();
    assert!(steps.ends_with(&[1, 2, 3, 4, 5, 6]), "{steps:?}");

    let happenings = happenings(&job);
    let compared = happenings.iter().find_map(|happening| match happening {
        RunEvent::MemoryCompared { measured, predicted, terms, .. } => {
            Some((*measured, *predicted, terms.clone()))
        }
        _ => None,
    });
    let (measured, predicted, terms) = compared.expect("measured and predicted are compared");
    assert!(measured > 1 << 30 && predicted > 1 << 30, "{measured} {predicted}");
    // Adam's master copy: 4 bytes for each of half of the 151 159 808 parameters, and padding.
    let of = |name: &str| terms.iter().find(|term| term.name == name).map_or(0, |term| term.bytes);
    let master = of("master_weights");
    assert!((302_319_616..302_500_000).contains(&master), "{terms:?}");
    assert!(job.printed().contains("zeropilot predicted"), "it is said in words");
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_plan_is_followed_down_its_fallbacks() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    fs::write(job.path("model.json"), model(16).to_string()).expect("a model");
    let plan = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(job.directory.path())
        .args(
            "plan --json --model model.json --gpus 2x24GB --seq-len 32 --global-batch 4".split(' '),
        )
        .output()
        .expect("zeropilot runs");
    fs::write(job.path("plan.json"), &plan.stdout).expect("a plan");
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    assert!(
        plan["fallbacks"].as_array().is_some_and(|fallbacks| !fallbacks.is_empty()),
        "{plan:#}"
    );
    let options = ["--plan", "plan.json", "--seq-len", "32", "--max-fallbacks", "4"];
    let verdict = ended_short_of_memory(&job, &options);
    let attempts = verdict["attempts"].as_array().expect("attempts");
    let last = job.config(attempts.len());
    let stages: Vec<&Value> = plan["fallbacks"]
        .as_array()
        .expect("fallbacks")
        .iter()
        .map(|fallback| &fallback["config"]["zero_optimization"]["stage"])
        .collect();
    assert!(stages.contains(&&last["zero_optimization"]["stage"]), "{last:#}");
    // Host memory was short: what the plan would offload for a GPU is not moved there.
    assert!(last["zero_optimization"].get("offload_optimizer").is_none(), "{last:#}");
    assert_eq!(last["optimizer"], job.config(1)["optimizer"]);
}

fn refused(directory: &std::path::Path, wrapper: &[&str], options: &[&str]) -> Output {
    let own = env!("CARGO_BIN_EXE_zeropilot");
    fs::write(directory.join("t.py"), "").expect("a program");
    let mut words = wrapper.iter().copied().chain([own]);
    Command::new(words.next().expect("a program"))
        .args(words)
        .current_dir(directory)
        .env("DS_ACCELERATOR", "cpu")
        .env("ZEROPILOT_RUNS", directory.join("runs"))
        .args(["run", "--events", "events.jsonl"])
        .args(options)
        .args([
            "--",
            "/nowhere/torchrun",
            "--nproc-per-node",
            "2",
            "t.py",
            "--deepspeed",
            "ds.json",
        ])
        .output()
        .expect("zeropilot runs")
}

#[test]
fn a_model_whose_states_do_not_fit_into_this_machine_is_not_started() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("ds.json"), config(3).to_string()).expect("a config");
    let model = ["--model", "llama-3.1-405b"];
    let output = refused(directory.path(), &[], &model);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("does not fit") && said.contains("--no-preflight"), "{said}");
    let events = fs::read_to_string(directory.path().join("events.jsonl")).expect("events");
    let least = events.lines().find_map(|line| match Event::read(line).ok()?.happening {
        RunEvent::Room { memory: Memory::Host, least, .. } => Some(least),
        _ => None,
    });
    // 405 853 388 800 parameters: weights and gradients of 2 bytes, 12 of Adam, shared by the two ranks of this machine.
    let least = least.expect("what it needs") as f64;
    assert!((0.95..1.1).contains(&(least / (405_853_388_800.0 * 16.0))), "{least}");
    let started = refused(directory.path(), &[], &["--model", "llama-3.1-405b", "--no-preflight"]);
    assert_eq!(started.status.code(), Some(2), "there is no such launcher, but it was tried");
}

#[test]
fn what_a_control_group_leaves_counts_before_what_the_machine_has() {
    let group = MemoryGroup::new(1_500_000_000);
    let Some(group) = or_skipped("no control group here", group) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("ds.json"), config(3).to_string()).expect("a config");
    fs::write(directory.path().join("model.json"), model(8).to_string()).expect("a model");
    // 76 million parameters of 16 bytes and two processes of some 430 MB: 2.0 GB.
    let options = ["--model", "model.json", "--seq-len", "32"];
    let output = refused(directory.path(), &group.wrapper(), &options);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
}

/// Every step is kept for plots, and the report has predicted and measured times of each part of a step.
#[test]
fn steps_and_their_parts_are_kept_and_compared() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut config = config(2);
    config["wall_clock_breakdown"] = json!(true);
    config["steps_per_print"] = json!(1);
    let job = Job::with_config(&home, &config);
    fs::write(job.path("model.json"), model(2).to_string()).expect("a model");
    let job = with_profile(job);
    let options = ["--model", "model.json", "--seq-len", "32"];
    let run = job.start(&options, "torchrun", "--steps 41 --layers 2 --width 1024");
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());

    let text = fs::read_to_string(job.path("record/steps.jsonl")).expect("steps");
    let steps: Vec<TrainedStep> =
        text.lines().map(|line| serde_json::from_str(line).expect("a step")).collect();
    let losses: Vec<(u64, f64)> =
        steps.iter().map(|step| (step.step, step.loss.expect("a loss"))).collect();
    assert_eq!(losses, job.losses());
    assert!(steps[1..].iter().all(|step| step.seconds.is_some_and(|took| took > 0.0)), "{text}");

    let compared = happenings(&job).into_iter().find_map(|happening| match happening {
        RunEvent::PaceCompared { seconds_per_step, predicted } => {
            Some((seconds_per_step, predicted))
        }
        _ => None,
    });
    // Two micro-steps of 0.5 s and an update of 2 s, as the profile says.
    let (seconds, predicted) = compared.expect("the pace is compared after 40 steps");
    assert!(seconds > 0.0 && (predicted - 3.0).abs() < 0.01, "{seconds} {predicted}");
    let parts = &verdict["attempts"][0]["measured"]["parts"];
    for part in ["forward", "backward", "step"] {
        assert!(parts[part].as_f64() > Some(0.0), "{verdict:#}");
    }
    let report = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(["report", "record"])
        .current_dir(job.directory.path())
        .output()
        .expect("zeropilot runs");
    assert!(report.status.success());
    let page = fs::read_to_string(job.path("record/report.html")).expect("a page");
    let measured = format!("<td>{:.3} s</td>", parts["backward"].as_f64().unwrap_or(0.0));
    let row = page.split("<tr>").find(|row| row.contains("time in the backward pass"));
    assert!(row.is_some_and(|row| row.contains(&measured)), "{measured}\n{page}");
    assert!(page.contains("<td>memory while loading</td>"), "{page}");
    let versions = page.split("<div>").find(|fact| fact.contains("<dt>versions</dt>"));
    assert!(versions.is_some_and(|versions| versions.contains("deepspeed 0.19.8, ")), "{page}");
}

/// The same with a profile of this machine's processors, as `zeropilot calibrate` writes it.
fn with_profile(job: Job) -> Job {
    let profile = job.path("configs/zeropilot");
    fs::create_dir_all(&profile).expect("a directory");
    let of_processors = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/machines/cpu.json");
    fs::copy(of_processors, profile.join("machine.json")).expect("a copy");
    job.with("XDG_CONFIG_HOME", "configs")
}

/// What is predicted of a run that completes is kept beside what it needed.
#[test]
fn a_run_leaves_its_prediction_beside_its_measurement() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2);
    fs::write(job.path("model.json"), model(2).to_string()).expect("a model");
    let job = with_profile(job);
    let options = ["--model", "model.json", "--seq-len", "32"];
    let run = job.start(&options, "torchrun", "--steps 40 --layers 2 --width 1024");
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let text = fs::read_to_string(job.path("record/accuracy.json")).expect("a comparison");
    let accuracy: Value = serde_json::from_str(&text).expect("JSON");
    let happenings = happenings(&job);
    let resident = happenings.iter().filter_map(|happening| match happening {
        RunEvent::Memory { ranks } => ranks.iter().map(|rank| rank.rss).max(),
        _ => None,
    });
    assert_eq!(accuracy["measured"]["device"], json!(resident.max().expect("memory")));
    // The profile says 0.5 GB of libraries, two micro steps of 0.5 s and an update of 2 s.
    assert!(accuracy["predicted"]["device"].as_u64() > Some(500_000_000), "{accuracy:#}");
    let step = accuracy["predicted"]["step_seconds"].as_f64().expect("seconds");
    assert!((step - 3.0).abs() < 0.01, "{accuracy:#}");
    let seconds = verdict["attempts"][0]["seconds"].as_f64().expect("seconds");
    let measured = accuracy["measured"]["step_seconds"].as_f64();
    // Steps may be too quick to be told apart in the record.
    assert!(measured.is_none_or(|step| step > 0.0 && step < seconds / 10.0), "{accuracy:#}");
    assert_eq!(
        (&accuracy["steps"], &accuracy["job"]["zero_stage"], &accuracy["job"]["device"]),
        (&json!(40), &json!(2), &json!("cpu"))
    );
    let own = env!("CARGO_BIN_EXE_zeropilot");
    let listed = Command::new(own)
        .args(["accuracy", "--json", "--runs"])
        .arg(job.directory.path())
        .output()
        .expect("zeropilot runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed["runs"][0]["measured"], accuracy["measured"], "{listed:#}");
}
