//! `zeropilot simulate` as a user runs it.

use std::collections::BTreeMap;

mod command;

use command::run;
use serde_json::Value;

fn answer(arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["simulate", "--json"].iter().chain(arguments).copied().collect();
    let run = run(&all);
    assert!(matches!(run.code, 0 | 1), "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

fn at(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

const JOB: [&str; 6] = ["--model", "qwen3-8b", "--gpus", "2x8xA100-80G", "--seq-len", "4096"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    JOB.iter().chain(more).copied().collect()
}

#[test]
fn what_does_not_fit_is_not_timed_without_a_word() {
    // 70 billion parameters of 16 bytes for a card of 24 GB.
    let large = ["simulate", "--model", "llama-3.1-70b", "--gpus", "1xRTX4090"];
    let run_large = run(&large);
    assert_eq!(run_large.code, 1);
    assert!(run_large.stdout.contains("does not fit in memory"), "{}", run_large.stdout);
    assert_eq!(answer(&large[1..])["verdict"], "does_not_fit");
    let small = answer(&["--model", "gpt2", "--gpus", "1xRTX4090", "--seq-len", "512"]);
    assert_eq!(small["verdict"], "fits");
}

/// Kernels and waits are the whole step; bounds are bounds; shares are shares.
#[test]
fn the_parts_of_a_step_are_the_step() {
    let answer = answer(&with(&["--grad-checkpointing"]));
    let waits: f64 = answer["waits"]
        .as_object()
        .expect("an object")
        .values()
        .map(|v| v.as_f64().expect("a number"))
        .sum();
    let total = at(&answer, "/step/expected");
    assert!((waits + at(&answer, "/busy/compute") - total).abs() < 1e-6 * total);
    assert!(at(&answer, "/step/low") <= total && total <= at(&answer, "/step/high"));
    assert!(at(&answer, "/mfu") < at(&answer, "/hfu") && at(&answer, "/hfu") < 1.0);
    // 16 GPUs take 4,096 tokens each.
    let rate = 16.0 * 4096.0 / total;
    assert!((at(&answer, "/tokens_per_s") / rate - 1.0).abs() < 1e-9);
}

/// In stage 2 gradients are all-reduced at every micro step, in stage 1 once.
#[test]
fn stage_2_sends_more_than_stage_1_when_gradients_accumulate() {
    let sent =
        |stage| at(&answer(&with(&["--stage", stage, "--grad-accum", "4"])), "/communication/sent");
    let ratio = sent("2") / sent("1");
    assert!((ratio - 3.0).abs() < 0.01, "9Ψ over 3Ψ, not {ratio}");
}

#[test]
fn a_slow_network_is_named_and_waited_for() {
    let run = run(
        &[&["simulate"], &with(&["--network", "1x10GbE", "--grad-checkpointing"])[..]].concat()
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1x10GbE, 1.25 GB/s each"), "{}", run.stdout);
    assert!(run.stdout.contains("% of the step for parameter all-gather"), "{}", run.stdout);
    assert!(run.stdout.contains("zero_hpz_partition_size"), "{}", run.stdout);
}

#[test]
fn it_speaks_chinese() {
    let run = run(&[&["simulate", "--lang", "zh"], &with(&["--grad-checkpointing"])[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for words in ["每步：", "每步的时间构成", "每卡每步发送", "可用 --network 指定"]
    {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
}

/// 10 billion tokens at so many a second on 16 GPUs.
#[test]
fn a_bill_is_arithmetic() {
    let answer = answer(&with(&["--tokens", "10B", "--cost", "2.5/gpu-hour"]));
    let hours = 10e9 / at(&answer, "/tokens_per_s") / 3600.0 * 16.0;
    assert!((at(&answer, "/cost_estimate/gpu_hours/expected") / hours - 1.0).abs() < 1e-9);
    assert!((at(&answer, "/cost_estimate/cost/expected") / (hours * 2.5) - 1.0).abs() < 1e-9);
}

#[test]
fn scaling_doubles_and_keeps_the_batch_it_should() {
    let weak = answer(&with(&["--scale", "8..64"]));
    let gpus: Vec<f64> =
        weak["scaling"].as_array().expect("a list").iter().map(|p| at(p, "/gpus")).collect();
    assert_eq!(gpus, [8.0, 16.0, 32.0, 64.0]);
    let strong = answer(&with(&["--scale", "8..64", "--strong", "--grad-accum", "8"]));
    let points = strong["scaling"].as_array().expect("a list");
    let accumulation: Vec<f64> =
        points.iter().map(|point| at(point, "/gradient_accumulation_steps")).collect();
    assert_eq!(accumulation, [8.0, 4.0, 2.0, 1.0]);
}

/// What chrome://tracing and Perfetto expect: complete events with names, numbers of a process and a thread, and times in
/// microseconds; events of a thread that do not overlap.
#[test]
fn a_trace_opens_in_the_viewers() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("step.json");
    let svg = directory.path().join("step.svg");
    let more = [
        "--grad-accum",
        "2",
        "--grad-checkpointing",
        "--trace",
        path.to_str().expect("text"),
        "--svg",
        svg.to_str().expect("text"),
        "--timeline",
    ];
    let run = run(&[&["simulate"], &with(&more)[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("communication "), "{}", run.stdout);
    let trace: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    let mut complete = 0;
    for event in trace["traceEvents"].as_array().expect("a list") {
        assert!(event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64());
        match event["ph"].as_str().expect("a phase") {
            "M" => assert_eq!(event["name"], "thread_name"),
            "X" => {
                let (begin, length) = (at(event, "/ts"), at(event, "/dur"));
                let end = ends.entry(event["tid"].as_u64().expect("a number")).or_default();
                assert!(begin >= *end - 1e-3 && length >= 0.0, "{event} begins before {end}");
                *end = begin + length;
                complete += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(complete > 1000, "{complete}");
    let picture = std::fs::read_to_string(&svg).expect("a file");
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    let closes_itself =
        |element: &&str| element.split('>').next().is_some_and(|open| open.ends_with('/'));
    let alone = picture.split("<rect").skip(1).filter(closes_itself).count();
    assert_eq!(picture.matches("<rect").count(), picture.matches("</rect>").count() + alone);
}

#[test]
fn what_cannot_be_answered_says_what_to_do() {
    let cases: [(&[&str], &str); 4] = [
        (&["--model", "qwen3-8b", "--gpus", "8x44GB"], "--gpus 8xA100-80G"),
        (&["--model", "qwen3-8b", "--gpus", "8xH100", "--network", "8xpigeon"], "8xNDR"),
        (&["--model", "qwen3-8b", "--gpus", "8xH100", "--scale", "many"], "8..1024"),
        (&["--model", "qwen3-8b", "--gpus", "8xH100", "--tokens", "lots"], "--tokens 10B"),
    ];
    for (arguments, way_out) in cases {
        for language in ["en", "zh"] {
            let run = run(&[&["simulate", "--lang", language], arguments].concat());
            assert_eq!(run.code, 2, "{arguments:?}");
            assert!(run.stderr.contains(way_out), "{arguments:?}: {}", run.stderr);
        }
    }
}

#[test]
fn bf16_is_not_timed_on_a_card_that_has_none() {
    let question = ["simulate", "--model", "qwen2.5-0.5b", "--gpus", "4xT4"];
    let asked = run(&[&question[..], &["--precision", "bf16"]].concat());
    assert_eq!(asked.code, 2);
    assert!(
        asked.stderr.contains("T4 does not support bf16") && asked.stderr.contains("fp16"),
        "{}",
        asked.stderr
    );
    assert_ne!(run(&question).code, 2);
}

#[test]
fn links_between_nodes_are_idle_on_one_node_unless_more_are_asked_about() {
    let question = ["--model", "qwen2.5-0.5b", "--gpus", "8xH100", "--network", "8xNDR"];
    let notes = |arguments: &[&str]| answer(arguments)["provenance"]["notes"].to_string();
    assert!(notes(&question).contains("--network has no effect"));
    assert_eq!(notes(&[&question[..], &["--scale", "8..64"]].concat()), "[]");
}

#[test]
fn waiting_for_a_disk_is_called_that() {
    let directory = tempfile::tempdir().expect("a directory");
    let nvme = r#"{"device": "nvme", "nvme_path": "/nvme", "pin_memory": true}"#;
    let config = format!(
        r#"{{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}}, "zero_optimization":
            {{"stage": 3, "offload_optimizer": {nvme}, "offload_param": {nvme}}}}}"#
    );
    let path = directory.path().join("ds.json");
    std::fs::write(&path, config).expect("written");
    let path = path.to_str().expect("a path");
    let question = ["--model", "llama-3.1-8b", "--gpus", "1xRTX4090", "--config", path];
    let waits = |rates: &str| {
        let answer = answer(&[&question[..], &["--nvme", rates]].concat());
        (at(&answer, "/waits/disk"), at(&answer, "/waits/host"))
    };
    let ((slow, starting), (fast, _)) = (waits("3.5/2.5"), waits("7/5"));
    assert!(starting < slow / 100.0, "{starting} s for the CPU, {slow} s for the disk");
    // Half the rate, twice the wait, apart from what runs meanwhile.
    assert!((slow / fast - 2.0).abs() < 0.2, "{slow} and {fast}");
}

/// Whisper's fixed positions are not trained, everything else is: backward is about twice forward.
#[test]
fn a_model_that_another_program_stands_in_for_is_trained() {
    let question = ["--model", "whisper-large-v3", "--gpus", "4xA100-40G", "--seq-len", "448"];
    let whisper = answer(&[&question[..], &["--stage", "2", "--micro-batch", "8"]].concat());
    let ratio = at(&whisper, "/step/backward") / at(&whisper, "/step/forward");
    assert!((1.5..3.0).contains(&ratio), "{ratio}");
}
