//! What a user is told who slips, in both languages: what is wrong, and what to do next.

mod bench;

use std::fs::File;
use std::process::Stdio;

use bench::{Bench, Run};

/// A run with records of its own.
fn run(bench: &Bench, arguments: &[&str]) -> Run {
    let mut command = bench.command(arguments);
    command.env("ZEROPILOT_RUNS", bench.path().join("runs")).env("HF_HUB_OFFLINE", "1");
    Run::from(command.output().expect("the binary runs"))
}

fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let run = run(bench, arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {}", run.shown());
    run.stderr
}

/// `/dev/full` takes nothing, as a full disk does.
#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_written_are_an_error_of_every_verb() {
    let bench = Bench::new(&[("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)]);
    let verbs: [&[&str]; 11] = [
        &["check", "ds.json"],
        &["plan", "--model", "gpt2", "--gpus", "2x24GB"],
        &["memory", "--model", "gpt2", "--gpus", "2x24GB", "--json"],
        &["simulate", "--model", "gpt2", "--gpus", "2xA100-80G"],
        &["rule", "B03"],
        &["explain", "zero3"],
        &["runs"],
        &["new", "zero2", "-o", "-"],
        &["schema"],
        &["completions", "bash"],
        &["--help"],
    ];
    for arguments in verbs {
        let mut command = bench.command(arguments);
        command.env("ZEROPILOT_RUNS", bench.path()).stdout(File::create("/dev/full").expect("it"));
        let run = Run::from(command.stderr(Stdio::piped()).output().expect("the binary runs"));
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains("error: cannot write the results"), "{}", run.stderr);
    }
}

/// A reader that has seen enough is no error.
#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_goes_away_ends_a_verb_quietly() {
    let bench = Bench::new(&[]);
    let mut child = bench
        .command(&["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("the binary ends");
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
#[cfg(target_os = "linux")]
fn events_that_have_no_place_are_named_and_leave_no_record() {
    let bench = Bench::new(&[]);
    let said = refused(&bench, &["run", "--events", "none/x.jsonl", "--", "true"]);
    assert!(said.contains("cannot write `none/x.jsonl`") && !said.contains("--record"), "{said}");
    assert!(!bench.path().join("runs").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn without_runs_the_next_step_is_named() {
    let bench = Bench::new(&[]);
    for arguments in [&["report"][..], &["report", "--lang", "zh"]] {
        assert!(refused(&bench, arguments).contains("zeropilot run -- "), "{arguments:?}");
    }
    assert!(run(&bench, &["runs"]).stdout.contains("zeropilot run -- "));
    assert!(refused(&bench, &["report", "that"]).contains("there is no run `that`"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_without_a_place_is_refused_in_chinese() {
    let bench = Bench::new(&[]);
    run(&bench, &["run", "--", "true"]);
    let said = refused(&bench, &["report", "-o", "none/x.html", "--lang", "zh"]);
    assert!(said.contains("无法写入 `none/x.html`：没有这个文件或目录"), "{said}");
}

/// Chinese has no English in it but names, options and code.
#[test]
fn mistakes_are_told_in_chinese() {
    let bench = Bench::new(&[("empty/x", ""), ("zeropilot.toml", "a = = 1\n")]);
    bench.write("bin.json", b"\xff\xfe\x00binary");
    bench.write("ds.json", b"{\"train_micro_batch_size_per_gpu\": 1}");
    let gpus = ["--gpus", "2x24GB", "--lang", "zh"];
    let said = refused(&bench, &[&["memory", "--model", "bin.json"][..], &gpus].concat());
    assert!(said.contains("内容不是 UTF-8 文本") && !said.contains("权限"), "{said}");
    let said = refused(&bench, &[&["memory", "--model", "empty"][..], &gpus].concat());
    assert!(said.contains("目录里既没有 `config.json`"), "{said}");
    bench.write("config.json", br#"{"model_type": "llama", "hidden_size": "big"}"#);
    let said = refused(&bench, &[&["memory", "--model", "config.json"][..], &gpus].concat());
    assert!(said.contains("`hidden_size` 应为整数，却是字符串"), "{said}");
    let svg = ["memory", "--model", "gpt2", "--svg", "none/x.svg"];
    let said = refused(&bench, &[&svg[..], &gpus].concat());
    assert!(said.contains("没有这个文件或目录") && !said.contains("os error"), "{said}");
    let said = refused(&bench, &["check", "ds.json", "--lang", "zh"]);
    assert!(said.contains("不是合法的 TOML") && said.contains("建议"), "{said}");
}

#[test]
fn numbers_are_asked_for_in_words() {
    let bench = Bench::new(&[]);
    let said = refused(&bench, &["memory", "--model", "gpt2", "--seq-len", "4kb"]);
    assert!(said.contains("'4kb'") && said.contains("such as 4096 or 128k"), "{said}");
    let said = refused(&bench, &["check", "ds.json", "--world-size", "-1"]);
    assert!(said.contains("'-1'") && said.contains("positive") && !said.contains("tip"), "{said}");
    let simulate = ["simulate", "--model", "gpt2", "--gpus", "2xA100-80G", "--tokens", "10X"];
    let said = refused(&bench, &simulate);
    assert!(said.contains("--tokens 10B") && !said.contains("--cost"), "{said}");
    let said = refused(&bench, &["new", "--stage", "2", "--offload", "everything"]);
    assert!(said.contains("none, optimizer, all"), "{said}");
}

#[test]
fn memory_names_what_it_was_asked_about() {
    let bench = Bench::new(&[]);
    let said = |more: &[&str]| run(&bench, &[&["memory", "--model"], more].concat()).stdout;
    let compared = said(&["gpt2", "--gpus", "4", "--compare", "--seq-len", "512"]);
    assert!(compared.starts_with("gpt2, full fine-tuning, bf16, 4 GPUs\n"), "{compared}");
    assert!(compared.contains("1 sequence of 512 tokens"), "{compared}");
    let targets = said(&["t5-3b", "--gpus", "2x80GB", "--seq-len", "512", "--target-len", "128"]);
    assert!(targets.contains("of 512 tokens, targets of 128 tokens"), "{targets}");
}

#[test]
fn an_empty_config_is_called_empty() {
    let bench = Bench::new(&[("ds.json", ""), ("hf.json", "{ // why\n}")]);
    let said = run(&bench, &["check", "ds.json"]).stdout;
    assert!(said.contains("the file is empty") && said.contains("rejected, 1 rank"), "{said}");
    let said = run(&bench, &["check", "hf.json", "--front-end", "hf-trainer"]).stdout;
    assert!(said.contains("JSON does not allow comments"), "{said}");
}
