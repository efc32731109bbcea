//! `zeropilot diagnose` as a user runs it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run_in(directory: &Path, arguments: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory)
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .arg("diagnose")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that fails early does not read.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    Run {
        code: output.status.code().expect("an exit code"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn diagnosed(input: &str, arguments: &[&str]) -> Run {
    let all: Vec<&str> = ["-"].iter().chain(arguments).copied().collect();
    run_in(Path::new("."), &all, input)
}

fn answer(input: &str) -> Value {
    let run = diagnosed(input, &["--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

const GIB: f64 = (1_u64 << 30) as f64;

/// Two ranks that write into each other, with the colours and bars of a terminal.
const STEP: &str = "\u{1b}[32m  3%|▎  | 9/352 [40:55<25:10:16]\u{1b}[0m\r[rank1]: Traceback (most recent call last):\r\n\
[rank0]: Traceback (most recent call last):\n\
[rank1]:   File \"/x/torch/optim/adamw.py\", line 220, in step\n\
[rank0]:   File \"/x/torch/nn/modules/linear.py\", line 125, in forward\n\
[rank1]: \u{1b}[31mtorch.OutOfMemoryError\u{1b}[0m: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 1 has a total capacity of 80.00 GiB of which 2.50 GiB is free. Process 7 has 77.50 GiB memory in use. Of the allocated memory 75.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n";

#[test]
fn interleaved_ranks_escape_codes_and_fences_do_not_matter() {
    let found = answer(&format!("```\n{STEP}```\n"));
    assert_eq!((&found["cause"], &found["phase"]), (&"model_states".into(), &"step".into()));
    assert_eq!((&found["rank"], &found["certainty"]), (&1.into(), &"shown".into()));
    assert_eq!(found["numbers"]["requested"].as_f64(), Some(3.0 * GIB));
    assert_eq!(found["numbers"]["others"], 0);
    assert!(found["steps"][0]["setting"] == "zero_optimization.stage", "{found}");
    assert_eq!(found["gaps"], Value::Array(Vec::new()));
}

#[test]
fn the_verdict_comes_first_in_both_languages() {
    let english = diagnosed(STEP, &[]).stdout;
    let verdict = "GPU 1 ran out of GPU memory (OOM) in the optimizer step: weights, gradients and optimizer states do\nnot fit\n";
    assert!(english.starts_with(verdict), "{english}");
    assert!(english.contains("live tensors          75.0 GiB"), "{english}");
    assert!(
        english.contains("Change first\n  1.  Set `zero_optimization.stage` to 3"),
        "{english}"
    );
    assert!(!english.contains('\u{1b}'), "{english:?}");
    let chinese = diagnosed(STEP, &["--lang", "zh"]).stdout;
    let first = chinese.lines().next().expect("a line");
    assert_eq!(first, "GPU 1 显存不足（OOM），发生在参数更新时：模型状态放不下");
    assert!(chinese.contains("首先修改") && !chinese.contains("Change first"), "{chinese}");
}

#[test]
fn what_the_log_does_not_show_is_named() {
    let bare = "RuntimeError: CUDA out of memory. Tried to allocate 256.00 MiB (GPU 0; 14.56 GiB total capacity; 13.30 GiB already allocated; 230.50 MiB free; 13.65 GiB reserved in total by PyTorch)";
    let found = answer(bare);
    assert_eq!((&found["cause"], &found["phase"]), (&"unknown".into(), &Value::Null));
    assert_eq!(found["gaps"][0]["name"], "traceback");
    let short = diagnosed("RuntimeError: CUDA error: out of memory\n", &[]).stdout;
    assert!(short.contains("does not show what uses the GPU memory"), "{short}");
    assert!(!short.to_lowercase().contains("live tensors"), "{short}");
    let killed = answer("[launch.py:341:sigkill_handler] [...] exits with return code = -9\n");
    assert_eq!((&killed["cause"], &killed["certainty"]), (&"host_memory".into(), &"likely".into()));
    assert_eq!(killed["gaps"][0]["name"], "killer");
}

#[test]
fn a_log_without_a_shortage_exits_with_1_and_says_what_was_looked_for() {
    let english = diagnosed("step 1 loss 2.0\nstep 2 loss 1.5\n", &[]);
    assert_eq!(english.code, 1);
    assert!(
        english.stdout.starts_with("<stdin> has no out-of-memory message."),
        "{}",
        english.stdout
    );
    assert!(english.stdout.contains("NCCL"), "{}", english.stdout);
    let chinese = diagnosed("", &["--lang", "zh"]);
    assert_eq!(chinese.code, 1);
    assert!(chinese.stdout.contains("没有显存或主机内存不足的报错"), "{}", chinese.stdout);
    let json = diagnosed("loss 1\n", &["--json"]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["cause"], &json["messages"]), (&Value::Null, &0.into()));
}

#[test]
fn a_file_that_is_not_there_exits_with_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = run_in(directory.path(), &["nowhere.log"], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("nowhere.log"), "{}", run.stderr);
    fs::write(directory.path().join("train.log"), STEP).expect("a file");
    assert_eq!(run_in(directory.path(), &["train.log"], "").code, 0);
}

#[test]
fn the_prediction_for_the_same_job_stands_beside_it() {
    let arguments =
        ["--model", "qwen3-8b", "--gpus", "8xA100-80G", "--stage", "3", "--seq-len", "2048"];
    let with_json: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    let run = diagnosed(STEP, &with_json);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let found: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let predicted = &found["prediction"];
    assert_eq!(
        (&predicted["phase"], &predicted["larger"]),
        (&"step".into(), &"temporaries".into())
    );
    // 75 GiB of live tensors and the 3 that were asked for.
    assert_eq!(predicted["measured"].as_f64(), Some(78.0 * GIB));
    // 16 bytes a parameter over 8 ranks, and no more than a few buckets on top.
    let states = 16.0 * 8_190_735_360.0 / 8.0;
    let tensors = predicted["tensors"].as_f64().expect("a number");
    assert!((states..2.0 * states).contains(&tensors), "{tensors}");
    let text = diagnosed(STEP, &arguments).stdout;
    assert!(
        text.contains("zeropilot's prediction") && text.contains("more than predicted"),
        "{text}"
    );
    let chinese: Vec<&str> = arguments.iter().chain(&["--lang", "zh"]).copied().collect();
    assert!(diagnosed(STEP, &chinese).stdout.contains("比预测多"));
}

/// Nobody said the stage: what follows from it is no conclusion.
#[test]
fn a_prediction_without_a_config_names_what_it_assumes() {
    let arguments = ["--model", "qwen3-8b", "--gpus", "8xA100-80G"];
    let with =
        |more: &[&'static str]| -> Vec<&str> { arguments.iter().chain(more).copied().collect() };
    let text = diagnosed(STEP, &with(&[])).stdout.replace("\n  ", " ");
    for assumed in ["ZeRO stage 3 (--stage)", "precision bf16 (--precision)", "method full"] {
        assert!(text.contains(assumed), "{assumed}: {text}");
    }
    assert!(text.contains("more than predicted"), "{text}");
    assert!(!text.contains("determine the model states"), "{text}");
    let found = diagnosed(STEP, &with(&["--json"])).stdout;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["prediction"]["larger"], Value::Null);
    let said = diagnosed(STEP, &with(&["--stage", "3"])).stdout.replace("\n  ", " ");
    assert!(said.contains("determine the model states"), "{said}");
    assert!(diagnosed(STEP, &with(&["--lang", "zh"])).stdout.contains("假定："));
}

#[test]
fn options_of_a_prediction_without_a_model_are_named_as_idle() {
    let run = diagnosed(STEP, &["--gpus", "8xA100-80G"]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("--gpus"), "{}", run.stderr);
}

/// A day of progress bars: tens of megabytes, of which little is kept.
#[test]
fn a_long_log_is_read_in_pieces() {
    let mut log = " 25%|##5  | 50/200 [00:01<00:03, 49.9it/s]\r".repeat(400_000);
    log.push_str(STEP);
    assert_eq!(answer(&log)["cause"], "model_states");
}
