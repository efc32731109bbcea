//! `zeropilot run` on the real engine: ranks on CPUs, to which real things happen.

#[path = "run/causes.rs"]
mod causes;
#[path = "run/drift.rs"]
mod drift;
#[path = "run/failures.rs"]
mod failures;
#[path = "run/faults.rs"]
mod faults;
#[path = "run/hangs.rs"]
mod hangs;
#[path = "run/healthy.rs"]
mod healthy;
#[path = "run/job.rs"]
mod job;
#[path = "run/kernel_kill.rs"]
mod kernel_kill;
#[path = "run/memory_group.rs"]
mod memory_group;
#[path = "run/nodes.rs"]
mod nodes;
#[path = "run/notices.rs"]
mod notices;
#[path = "run/predicted.rs"]
mod predicted;
#[path = "run/preemption.rs"]
mod preemption;
#[path = "run/records.rs"]
mod records;
#[path = "run/resuming.rs"]
mod resuming;
#[path = "run/slurm.rs"]
mod slurm;
#[path = "run/supervised.rs"]
mod supervised;

use std::fs;
use std::process::Command;
use std::time::Duration;

use job::Job;
use serde_json::{Value, json};
use supervised::{Supervised, limit_data, marked, node_launcher, signal};
use zeropilot_oracle::is_thorough;
use zeropilot_run::checkpoint::last_complete;

/// A model of 76 million parameters. Its ranks reached 2.26 GB of data with ZeRO-1 and 2.07 GB with ZeRO-2.
const MEDIUM: &str = "--layers 8 --width 1024";
const BELOW_MEDIUM: u64 = 2_170_000 << 10;

fn started(job: &Job, options: &[&str], launcher: &str) -> Supervised {
    let mut run = job.start(options, launcher, "--steps 100000");
    run.wait_for_step(2);
    run
}

fn assert_cause(verdict: &Value, cause: &str) {
    assert_eq!(verdict["cause"], cause, "{verdict:#}");
}

/// Memory becomes short in the middle of a run, for the ranks and all that follow them. The launch stands in a script,
/// which is told of the fallback and of the checkpoint, and stays as it is.
#[test]
fn a_lower_rung_goes_on_from_the_checkpoint_if_the_engine_can_load_it() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1).scripted();
    fs::write(job.path("model.json"), job::model(8).to_string()).expect("a model");
    let options =
        ["--fallback", "--resume-with", "--resume {}", "--model", "model.json", "--seq-len", "32"];
    let arguments = format!("--steps 5 --save ckpt --save-every 3 {MEDIUM}");
    let mut run = job.start(&options, "torchrun", &arguments);
    let latest = job.path("ckpt/latest");
    run.wait_until("a checkpoint", |_| latest.is_file());
    limit_data(run.child.id(), BELOW_MEDIUM);
    limit_data(run.rank(0), BELOW_MEDIUM / 2);
    limit_data(run.rank(1), BELOW_MEDIUM / 2);
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}");
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{verdict:#}");
    assert_eq!(attempts[0]["cause"], "out_of_memory");
    assert!(job.printed().contains("zeropilot predicted"), "measured and predicted are compared");
    let resumed = attempts[1]["resumed_from"].as_str().expect("a checkpoint");
    assert!(resumed.contains("global_step"), "{resumed}");
    // The second attempt begins behind the checkpoint: three steps are made once, and all five in the end.
    let steps: Vec<u64> = job.losses().iter().map(|(step, _)| *step).collect();
    let count = |wanted: u64| steps.iter().filter(|step| **step == wanted).count();
    assert_eq!([1, 2, 3, 5].map(count), [1; 4], "{steps:?}");
}

/// Stage 3 cannot load what stage 2 wrote: it begins anew, beside it.
#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_rung_that_cannot_load_the_checkpoint_leaves_it_alone() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2);
    let options = ["--fallback", "--resume-with", "--resume {}", "--allow-restart-from-scratch"];
    let arguments = format!("--steps 4 --save ckpt --save-every 3 {MEDIUM}");
    let mut run = job.start(&options, "torchrun", &arguments);
    let latest = job.path("ckpt/latest");
    run.wait_until("a checkpoint", |_| latest.is_file());
    limit_data(run.rank(0), BELOW_MEDIUM / 2);
    limit_data(run.rank(1), BELOW_MEDIUM / 2);
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}");
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!((attempts.len(), attempts[1].get("resumed_from")), (2, None), "{verdict:#}");
    for (directory, partitions_weights) in [("ckpt", false), ("ckpt.attempt-2", true)] {
        let found = last_complete(&job.path(directory)).expect("a complete checkpoint");
        assert_eq!((found.step, found.shape.partitions_weights), (3, partitions_weights));
    }
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn without_a_rung_left_it_stops_with_a_code_of_its_own() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 3).capped(BELOW_MEDIUM / 2);
    let (code, verdict) =
        job.start(&["--fallback"], "torchrun", &format!("--steps 2 {MEDIUM}")).end();
    assert_cause(&verdict, "out_of_memory");
    assert_eq!(code, Some(10));
    assert_eq!(verdict["attempts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_killed_rank_is_named_and_nothing_is_left() {
    let Some(home) = zeropilot_oracle::home() else { return };
    for launcher in &["torchrun", "deepspeed"][..if is_thorough() { 2 } else { 1 }] {
        let job = Job::new(&home, 1);
        let run = started(&job, &[], launcher);
        signal("KILL", run.rank(1));
        let (code, verdict) = run.end();
        assert_cause(&verdict, "rank_killed");
        assert_eq!((code, &verdict["signal"]), (Some(12), &json!(9)), "{launcher}");
    }
}

#[test]
fn a_killed_launcher_is_not_taken_for_success() {
    let Some(home) = zeropilot_oracle::home() else { return };
    // The `deepspeed` command itself ends with 0 if its process on the node is killed.
    let job = Job::new(&home, 1);
    let run = started(&job, &[], "deepspeed");
    signal("KILL", node_launcher(&job.mark));
    let (code, verdict) = run.end();
    assert_cause(&verdict, "launcher_killed");
    assert_eq!(verdict["attempts"][0]["ending"], json!({"exited": 0}));
    assert_eq!(code, Some(12));
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_killed_torchrun_is_not_taken_for_success() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let run = started(&job, &[], "torchrun");
    signal("KILL", run.launcher());
    let (code, verdict) = run.end();
    assert_cause(&verdict, "launcher_killed");
    assert_eq!(code, Some(12));
}

#[test]
fn a_stopped_rank_is_a_hang_and_named() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let run = started(&job, &["--hang-after", "25s"], "torchrun");
    signal("STOP", run.rank(1));
    let (code, verdict) = run.end();
    assert_cause(&verdict, "hang");
    assert_eq!((code, &verdict["ranks"]), (Some(14), &json!([1])));
    if !home.join("engine/bin/py-spy").is_file() {
        println!("SKIPPED: stacks of ranks are not looked at, as py-spy is not beside the engine");
        return;
    }
    for rank in 0..2 {
        let stack = fs::read_to_string(job.path(&format!("record/stacks-1/rank-{rank}.txt")));
        let stack = stack.expect("a stack of each rank");
        assert!(stack.contains("engine_loop.py"), "{stack}");
    }
}

#[test]
fn an_interrupt_ends_everything_in_order() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let signals: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];
    for &(name, code) in &signals[..if is_thorough() { 3 } else { 1 }] {
        let job = Job::new(&home, 1);
        // What a shell starts in the background ignores an interrupt.
        let listens = ["env", "--default-signal=INT,TERM,HUP"];
        let is_known = Command::new(listens[0]).args([listens[1], "true"]).status();
        let job = match is_known.is_ok_and(|status| status.success()) {
            true => job.wrapped(&listens),
            false => job,
        };
        let run = started(&job, &[], "torchrun");
        signal(name, run.child.id());
        let (ended, verdict) = run.end();
        assert_cause(&verdict, "interrupted");
        assert_eq!(ended, Some(code));
    }
}

#[test]
fn ranks_do_not_outlive_a_killed_zeropilot() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let mark = job.mark.clone();
    let mut run = started(&job, &[], "torchrun");
    assert!(marked(&mark).len() >= 4, "zeropilot, guard, launcher and ranks");
    signal("KILL", run.child.id());
    run.child.wait().expect("it ends");
    run.assert_nothing_is_left(Duration::from_secs(15));
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn ranks_do_not_outlive_a_killed_guard() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let mark = job.mark.clone();
    let run = started(&job, &[], "torchrun");
    let guard = marked(&mark).into_iter().find(|(_, line)| line.contains("__guard"));
    signal("KILL", u32::try_from(guard.expect("a guard").0).expect("a process"));
    let (code, verdict) = run.end();
    assert_cause(&verdict, "launcher_killed");
    assert_eq!(code, Some(12));
}

#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn a_run_that_was_killed_goes_on_from_its_checkpoint() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2);
    let options = ["--resume-with", "--resume {}", "--max-restarts", "1"];
    let mut run = job.start(&options, "torchrun", "--steps 400 --save ckpt --save-every 20");
    let latest = job.path("ckpt/latest");
    run.wait_until("checkpoints", |_| {
        fs::read_to_string(&latest).is_ok_and(|tag| tag != "global_step20" && !tag.is_empty())
    });
    signal("KILL", run.rank(0));
    let (code, verdict) = run.end();
    assert_eq!(code, Some(0), "{verdict:#}");
    let attempts = verdict["attempts"].as_array().expect("attempts");
    assert_eq!((attempts.len(), &attempts[1]["last_step"]), (2, &json!(400)));
    assert!(attempts[1]["resumed_from"].as_str().is_some_and(|path| path.contains("ckpt")));
    // It goes on with the loss it had, which by then is far from that of the first step.
    let losses = job.losses();
    let again =
        losses.windows(2).position(|pair| pair[1].0 <= pair[0].0 || pair[1].0 > pair[0].0 + 1);
    let mean = |losses: &[(u64, f64)]| {
        losses.iter().map(|(_, loss)| loss).sum::<f64>() / losses.len() as f64
    };
    assert_eq!(
        losses.iter().filter(|(step, _)| *step == 1).count(),
        1,
        "the first step is made once"
    );
    if let Some(at) = again {
        let (first, before) = (mean(&losses[..10]), mean(&losses[at - 10..=at]));
        let after = mean(&losses[at + 1..at + 11]);
        assert!((after - before).abs() < (first - after).abs() / 2.0, "{first} {before} {after}");
    }
}

/// The engine writes its checkpoint to a device that is always full.
#[test]
fn a_full_disk_and_an_unreadable_checkpoint_are_told_apart() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 1);
    let parts = job.path("ckpt/global_step4");
    fs::create_dir_all(&parts).expect("a directory");
    let file = parts.join("bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
    std::os::unix::fs::symlink("/dev/full", file).expect("a link");
    let run = job.start(&[], "torchrun", "--steps 6 --save ckpt --save-every 2");
    let (code, verdict) = run.end();
    assert_cause(&verdict, "disk_full");
    assert_eq!(code, Some(17));

    // The checkpoint before it is whole, until it is cut. `latest` may name the other: the first rank knows nothing of
    // the second one's disk.
    let found = last_complete(&job.path("ckpt")).expect("a complete checkpoint");
    assert_eq!(found.step, 2);
    fs::write(job.path("ckpt/latest"), "global_step2").expect("a file");
    let file = found.parts.join("mp_rank_00_model_states.pt");
    let bytes = fs::read(&file).expect("a checkpoint");
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("half a checkpoint");
    let (code, verdict) = job.start(&[], "torchrun", "--steps 4 --resume ckpt").end();
    assert_cause(&verdict, "checkpoint_unreadable");
    assert_eq!(code, Some(18));
}

#[test]
fn what_the_engine_would_refuse_is_not_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = r#"{"train_batch_size": 5, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 1}}"#;
    fs::write(directory.path().join("ds.json"), config).expect("a config");
    let run = |options: &[&str], command: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .arg("run")
            .args(options)
            .arg("--")
            .args(command)
            .output()
            .expect("zeropilot runs")
    };
    let torchrun = ["torchrun", "--nproc-per-node", "2", "t.py", "--deepspeed", "ds.json"];
    fs::write(directory.path().join("t.py"), "").expect("a program");
    let refused = run(&[], &torchrun);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("B01"), "the finding is shown");
    let records = fs::read_dir(directory.path().join("runs")).expect("records");
    let record = records.flatten().next().expect("a record").path();
    let events = fs::read_to_string(record.join("events.jsonl")).expect("events");
    let counted = r#""event":"preflight","errors":1,"warnings":0,"findings":["ds.json:1:"#;
    assert!(events.contains(counted) && events.contains("B01"), "{events}");
    let missing = run(&["--no-preflight"], &["no-such-program", "--deepspeed", "ds.json"]);
    assert_eq!(missing.status.code(), Some(2));
    let done = run(&[], &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(done.status.code(), Some(11));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "out\n");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("no DeepSpeed launch found") && said.contains("\nerr\n"), "{said}");
    let listed = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(["runs", "--json", "--runs"])
        .arg(directory.path().join("runs"))
        .output()
        .expect("zeropilot runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let causes: Vec<&Value> =
        listed.as_array().expect("runs").iter().map(|run| &run["verdict"]["cause"]).collect();
    assert_eq!(causes, ["program_failed", "not_started", "refused"]);
}

/// An error in the code of the training script is told, and the run starts: not every line of a script runs.
#[test]
fn what_is_found_in_training_code_does_not_keep_a_run_from_its_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let code = "import deepspeed\n\
                config = {'train_micro_batch_size_per_gpu': 1, 'fp16': {'enabled': True}}\n\
                engine, _, _, _ = deepspeed.initialize(model=model, config=config)\n\
                for batch in loader:\n    loss = engine(batch)\n    loss.backward()\n    engine.step()\n";
    fs::write(directory.path().join("t.py"), code).expect("a program");
    for (language, words) in [("en", "the run starts: these errors"), ("zh", "运行照常启动")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .args(["--lang", language, "run", "--"])
            .args(["python3", "-m", "torch.distributed.run", "--nproc_per_node", "2", "t.py"])
            .output()
            .expect("zeropilot runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("P22") && said.contains(words), "{said}");
        assert_eq!(output.status.code(), Some(11), "{said}");
    }
}

/// An environment without DeepSpeed: that is no reason against a program of which nothing says that it needs DeepSpeed.
#[test]
fn a_program_that_is_no_launch_of_deepspeed_starts_without_its_packages() {
    let directory = tempfile::tempdir().expect("a directory");
    let bin = directory.path().join("env/bin");
    fs::create_dir_all(&bin).expect("a directory");
    fs::write(directory.path().join("env/pyvenv.cfg"), "include-system-site-packages = false\n")
        .expect("a file");
    let python = Command::new("sh").args(["-c", "command -v python3"]).output().expect("python3");
    let python = String::from_utf8(python.stdout).expect("a path");
    std::os::unix::fs::symlink(python.trim(), bin.join("python")).expect("a link");
    fs::write(directory.path().join("train.py"), "print('trained')\n").expect("a program");
    fs::write(directory.path().join("x.sh"), "env/bin/python train.py\n").expect("a script");
    for command in [&["env/bin/python", "train.py"][..], &["bash", "x.sh"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .args(["run", "--"])
            .args(command)
            .output()
            .expect("zeropilot runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{command:?}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "trained\n", "{said}");
        assert!(said.contains("no DeepSpeed launch found") && !said.contains("error"), "{said}");
    }
}

#[test]
fn a_program_that_is_not_there_is_not_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = r#"{"train_micro_batch_size_per_gpu": 2}"#;
    fs::write(directory.path().join("ds.json"), config).expect("a config");
    for (language, words) in [
        ("en", "the training program trian.py does not exist in this directory"),
        ("zh", "没有训练程序 trian.py"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(directory.path())
            .env("ZEROPILOT_RUNS", directory.path().join("runs"))
            .args(["--lang", language, "run", "--"])
            .args(["torchrun", "--nproc-per-node", "2", "trian.py", "--deepspeed", "ds.json"])
            .output()
            .expect("zeropilot runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn everything_a_command_leaves_behind_is_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let mark = directory.path().display().to_string();
    let status = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env("ZEROPILOT_RUNS", directory.path())
        .env("ZEROPILOT_TEST_MARK", &mark)
        .args(["run", "--grace", "1s", "--", "sh", "-c"])
        .arg("setsid sh -c 'trap \"\" TERM; sleep 1000' & sleep 0.3; exit 0")
        .output()
        .expect("zeropilot runs");
    assert_eq!(status.status.code(), Some(0));
    assert_eq!(marked(&mark), []);
}

/// What is random is the fault, how the run is set up and the moment. A build has one of these, `ZEROPILOT_FAULT_RUNS=100`
/// many.
#[test]
fn whatever_happens_is_judged_right_and_nothing_is_lost() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let (seed, count) =
        (zeropilot_oracle::seed(), zeropilot_oracle::setting("ZEROPILOT_FAULT_RUNS").unwrap_or(1));
    let mut random = zeropilot_oracle::Random::new(seed);
    let mut references = faults::References::default();
    for number in 0..count {
        let draw = faults::Draw::new(&mut random);
        let what = format!("ZEROPILOT_SEED={seed} {number}: {draw:?}");
        println!("{what}");
        faults::run(&home, &draw, &mut references, &what);
    }
}
