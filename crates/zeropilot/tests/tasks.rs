//! `--task` as a user runs it: jobs with several models on the same GPUs.

mod command;

use command::run;
use serde_json::Value;

fn answer(arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["memory", "--json"].iter().chain(arguments).copied().collect();
    let run = run(&all);
    assert!(run.code < 2, "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Parameters of Llama 3.1 8B and Llama 3.2 1B, as published.
const LLAMA_8B: u64 = 8_030_261_248;
const LLAMA_1B: u64 = 1_235_814_400;

#[test]
fn a_reference_is_whole_below_stage_3_and_shared_in_it() {
    let of = |stage: &str| {
        let answer = answer(&[
            "--model",
            "llama-3.1-8b",
            "--gpus",
            "4x80GB",
            "--stage",
            stage,
            "--task",
            "dpo",
            "--grad-checkpointing",
        ]);
        assert_eq!(answer["task"], "dpo");
        assert_eq!(answer["models"][0]["role"], "reference");
        assert_eq!(number(&answer, "/models/0/parameters"), LLAMA_8B);
        number(&answer, "/models/0/device")
    };
    for stage in ["0", "1", "2"] {
        assert_eq!(of(stage), 2 * LLAMA_8B, "stage {stage}");
    }
    // A quarter of it, and the norms (65 of 4,096 elements) whole.
    assert_eq!(of("3"), 2 * LLAMA_8B / 4 + 65 * 4096 * 2);
}

#[test]
fn a_distillation_names_both_models_in_one_answer() {
    let arguments = [
        "--model",
        "llama-3.2-1b",
        "--teacher",
        "llama-3.1-8b",
        "--gpus",
        "4x24GB",
        "--stage",
        "3",
        "--offload",
        "--micro-batch",
        "2",
        "--seq-len",
        "1024",
        "--task",
        "distill",
    ];
    let json = answer(&arguments);
    assert_eq!(json["models"][0]["role"], "teacher");
    assert_eq!(number(&json, "/parameters/total"), LLAMA_1B);
    assert_eq!(number(&json, "/models/0/parameters"), LLAMA_8B);
    // Its shares are in host memory, as the option survives for a frozen model.
    assert_eq!(number(&json, "/models/0/host"), 2 * LLAMA_8B / 4);
    // 24 bytes for each of 2 · 1024 · 128256 logits, at the least.
    let loss = number(&json, "/device/peak/others/loss");
    assert!(loss > 24 * 2 * 1024 * 128_256, "{loss}");
    let all: Vec<&str> = ["memory"].iter().chain(&arguments).copied().collect();
    let text = run(&all).stdout;
    assert!(text.contains("teacher: 8.03 B parameters, frozen"), "{text}");
}

#[test]
fn what_a_reference_costs_is_saved_by_each_way_around_it() {
    let expected = |more: &[&str]| {
        let job = ["--model", "llama-3.1-8b", "--gpus", "4x80GB", "--stage", "2", "--task", "dpo"];
        let all: Vec<&str> = job.iter().chain(more).copied().collect();
        let answer = answer(&all);
        (number(&answer, "/device/expected"), answer["models"].as_array().map_or(0, Vec::len))
    };
    let (copied, models) = expected(&[]);
    let (precomputed, none) = expected(&["--reference", "precomputed"]);
    assert_eq!((models, none), (1, 0));
    assert!(copied >= precomputed + 2 * LLAMA_8B, "{copied} {precomputed}");
    let (adapters, none) = expected(&["--method", "lora"]);
    assert!(adapters < precomputed && none == 0, "{adapters}");
}

#[test]
fn generation_gathers_the_whole_model_in_stage_3() {
    let of = |stage: &str| {
        let answer = answer(&[
            "--model",
            "llama-3.1-8b",
            "--gpus",
            "4x80GB",
            "--stage",
            stage,
            "--task",
            "grpo",
            "--grad-checkpointing",
            "--seq-len",
            "1024",
        ]);
        let rest = number(&answer, "/tensors/after_step/total");
        number(&answer, "/device/peak/others/generate") - rest
    };
    // What is not gathered already: all but the norms.
    let gathered = 2 * (LLAMA_8B - 65 * 4096);
    let (sharded, whole) = (of("3"), of("2"));
    assert_eq!(sharded, gathered + whole);
}

#[test]
fn completions_of_a_whole_step_are_generated_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("ds.json");
    let text = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,
        "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;
    std::fs::write(&config, text).expect("it is written");
    let config = config.to_str().expect("a name");
    let job = ["memory", "--model", "llama-3.2-1b", "--gpus", "4x80GB", "--config", config];
    let all: Vec<&str> =
        job.iter().chain(&["--task", "grpo", "--completion-len", "512"]).copied().collect();
    let text = run(&all).stdout;
    assert!(text.contains("generates 16 completions of 512 tokens"), "{text}");
}

#[test]
fn gkd_generates_unless_the_data_set_has_the_completions() {
    let of = |more: &[&str]| {
        let job = ["--model", "llama-3.2-1b", "--teacher", "llama-3.1-8b", "--gpus", "4x80GB"];
        let all: Vec<&str> = job.iter().chain(&["--task", "gkd"]).chain(more).copied().collect();
        answer(&all)["device"]["peak"]["others"]["generate"].as_u64()
    };
    // Stage 3 gathers all of the student.
    assert!(of(&[]).is_some_and(|peak| peak > 2 * LLAMA_1B));
    assert_eq!(of(&["--rollout", "none"]), None);
}

#[test]
fn every_task_is_answered_and_drawn() {
    for task in ["sft", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "distill", "gkd"] {
        let teacher: &[&str] = match task {
            "distill" | "gkd" => &["--teacher", "llama-3.1-8b"],
            _ => &[],
        };
        for verb in ["memory", "simulate"] {
            let job = [
                verb,
                "--model",
                "llama-3.2-1b",
                "--gpus",
                "4xA100-80G",
                "--task",
                task,
                "--seq-len",
                "512",
                "--timeline",
            ];
            let all: Vec<&str> = job.iter().chain(teacher).copied().collect();
            let run = run(&all);
            assert!(run.code < 2, "{all:?}: {}", run.stderr);
        }
    }
}

#[test]
fn a_task_that_makes_no_sense_says_what_to_do() {
    let job = ["memory", "--model", "llama-3.2-1b", "--gpus", "4x24GB"];
    for (more, problem) in [
        (&["--task", "gkd"][..], "needs a teacher"),
        (&["--task", "gkd", "--teacher", "qwen3-8b"][..], "128256 tokens and the teacher 151936"),
        (&["--teacher", "qwen3-8b"][..], "`--teacher` means nothing to `--task sft`"),
        (&["--task", "dpo", "--reference", "adapters-off"][..], "needs adapters"),
        (&["--task", "orpo", "--reference", "copy"][..], "means nothing to `--task orpo`"),
        (&["--task", "dpo", "--completion-len", "4096"][..], "more than the 2048 tokens"),
    ] {
        let all: Vec<&str> = job.iter().chain(more).copied().collect();
        let run = run(&all);
        assert!(run.code == 2 && run.stderr.contains(problem), "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains("help:"), "{}", run.stderr);
    }
    let t5 = run(&["memory", "--model", "t5-3b", "--gpus", "4x24GB", "--task", "dpo"]);
    assert!(t5.code == 2 && t5.stderr.contains("causal language models"), "{}", t5.stderr);
}

#[test]
fn generation_is_not_timed_and_that_is_said() {
    let run =
        run(&["simulate", "--model", "llama-3.2-1b", "--gpus", "4xA100-80G", "--task", "grpo"]);
    assert!(run.stdout.contains("`generate`"), "{}", run.stdout);
    assert!(run.stdout.contains("each GPU generates 1 completion of"), "{}", run.stdout);
}
