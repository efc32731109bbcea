//! `zeropilot mcp` as agents use it: the protocol line by line, and the official Python client.

mod bench;

use std::io::Write as _;
use std::process::{Command, Stdio};

use bench::Bench;
use serde_json::{Value, json};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "memory_efficient_linear": true}"#;
const LOG: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 75.10 GiB is allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n";

const LAUNCH: &str = "deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen3-8B --deepspeed ds_config.json --bf16 --per_device_train_batch_size 1\n";

fn bench() -> Bench {
    Bench::new(&[("ds_config.json", CONFIG), ("train.log", LOG), ("train.sh", LAUNCH)])
}

#[test]
fn the_commands_of_the_skill_answer() {
    let skill = include_str!("../../../skills/zeropilot/SKILL.md");
    let bench = bench();
    let commands: Vec<&str> =
        skill.split('`').filter_map(|text| text.strip_prefix("zeropilot ")).collect();
    assert!(commands.len() > 8, "{commands:?}");
    for command in commands.into_iter().filter(|command| !command.contains("CODE")) {
        let words: Vec<&str> = command.split(' ').collect();
        let run = bench.run(&words);
        assert!(run.code < 2 && !run.stdout.is_empty(), "{command}: {}", run.shown());
    }
}

/// Messages in, answers out.
fn conversation(messages: &[Value]) -> Vec<Value> {
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let run = bench().run_with_input(&["mcp"], lines.as_bytes());
    assert_eq!(run.code, 0, "{}", run.shown());
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[test]
fn a_client_is_greeted_in_its_version_and_notifications_get_no_answer() {
    let answers = conversation(&[
        request(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "ping", json!({})),
        request(3, "initialize", json!({"protocolVersion": "1999-01-01"})),
    ]);
    let [first, ping, other] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(first["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(first["result"]["serverInfo"]["name"], "zeropilot");
    assert_eq!((&ping["id"], &ping["result"]), (&json!(2), &json!({})));
    assert_eq!(other["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn what_is_wrong_is_answered_by_the_rules_of_the_protocol() {
    let call = |id, name: &str, arguments: Value| {
        request(id, "tools/call", json!({"name": name, "arguments": arguments}))
    };
    let lines = format!(
        "no JSON\n{}\n{}\n{}\n{}\n{}\n\n",
        json!({"jsonrpc": "2.0", "id": 1}),
        request(2, "resources/list", json!({})),
        call(3, "train", json!({})),
        call(4, "plan", json!({"gpu": "8xH100"})),
        call(5, "plan", json!({"job": "no-such-model-anywhere", "gpus": "8xH100"})),
    );
    let run = bench().run_with_input(&["mcp"], lines.as_bytes());
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let codes: Vec<&Value> = answers.iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes[..4], [-32700, -32600, -32601, -32602], "{}", run.shown());
    // A model can put these right, so that they are answers of the tool.
    for (answer, word) in [(&answers[4], "gpus"), (&answers[5], "no-such-model-anywhere")] {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(word), "{text}");
    }
}

/// A question for a tool, and the words of the command line that ask the same.
fn questions() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        (
            "plan",
            json!({"job": "gpt2", "gpus": "4xA100-40G"}),
            vec!["gpt2", "--gpus", "4xA100-40G"],
        ),
        (
            "plan",
            json!({"job": "qwen3-8b", "gpus": "8xH100", "global_batch": 64, "seq_len": "4k"}),
            vec!["qwen3-8b", "--gpus", "8xH100", "--global-batch", "64", "--seq-len", "4k"],
        ),
        (
            "plan",
            json!({"job": "qwen3-8b", "gpus": "5x44GB", "method": "lora"}),
            vec!["qwen3-8b", "--gpus", "5x44GB", "--method", "lora"],
        ),
        (
            "plan",
            json!({"job": "gpt2", "gpus": "2xT4", "precision": "fp16", "tokens": "1B", "cost": 0.5}),
            vec![
                "gpt2",
                "--gpus",
                "2xT4",
                "--precision",
                "fp16",
                "--tokens",
                "1B",
                "--cost",
                "0.5",
            ],
        ),
        ("memory", json!({"job": "gpt2", "gpus": "2xT4"}), vec!["gpt2", "--gpus", "2xT4"]),
        (
            "memory",
            json!({"job": "qwen3-8b", "gpus": "8xA100-80G", "compare": true}),
            vec!["qwen3-8b", "--gpus", "8xA100-80G", "--compare"],
        ),
        (
            "memory",
            json!({"job": "qwen3-8b", "gpus": "8xA100-80G", "stage": 3, "offload": "optimizer"}),
            vec!["qwen3-8b", "--gpus", "8xA100-80G", "--stage", "3", "--offload=optimizer"],
        ),
        (
            "memory",
            json!({"model": "gpt2", "config": "ds_config.json", "gpus": "2xT4"}),
            vec!["--model", "gpt2", "--config", "ds_config.json", "--gpus", "2xT4"],
        ),
        (
            "memory",
            json!({"job": "qwen3-8b", "gpus": "8xH100", "stage": 3, "grad_checkpointing": true, "liger": false}),
            vec![
                "qwen3-8b",
                "--gpus",
                "8xH100",
                "--stage",
                "3",
                "--grad-checkpointing=true",
                "--liger=false",
            ],
        ),
        (
            "memory",
            json!({"job": "qwen3-8b", "gpus": "8xH100", "stage": 3, "task": "dpo"}),
            vec!["qwen3-8b", "--gpus", "8xH100", "--stage", "3", "--task", "dpo"],
        ),
        (
            "simulate",
            json!({"job": "qwen3-8b", "gpus": "2x8xH100", "stage": 3}),
            vec!["qwen3-8b", "--gpus", "2x8xH100", "--stage", "3"],
        ),
        (
            "simulate",
            json!({"job": "gpt2", "gpus": "8xA100-40G", "stage": 1, "micro_batch": 8}),
            vec!["gpt2", "--gpus", "8xA100-40G", "--stage", "1", "--micro-batch", "8"],
        ),
        ("check", json!({"paths": ["ds_config.json"]}), vec!["ds_config.json"]),
        (
            "check",
            json!({"paths": ["ds_config.json"], "world_size": 8, "deepspeed_version": "0.16.9"}),
            vec!["ds_config.json", "--world-size", "8", "--deepspeed-version", "0.16.9"],
        ),
        ("diagnose", json!({"log": "train.log"}), vec!["train.log"]),
        (
            "explain",
            json!({"topics": ["zero_optimization.stage"]}),
            vec!["zero_optimization.stage"],
        ),
        ("explain", json!({"topics": ["oom"], "lang": "zh"}), vec!["oom", "--lang", "zh"]),
        ("rule", json!({"codes": ["K05"]}), vec!["K05"]),
        ("models", json!({"word": "qwen3"}), vec!["qwen3"]),
        ("gpus", json!({"word": "H100"}), vec!["H100"]),
        ("advisories", json!({"word": "accumulation"}), vec!["accumulation"]),
    ]
}

#[test]
fn the_official_client_gets_what_the_command_prints() {
    let Some(python) = std::env::var_os("ZEROPILOT_MCP_PYTHON") else {
        return zeropilot_oracle::missing("ZEROPILOT_MCP_PYTHON");
    };
    let bench = bench();
    let questions = questions();
    let asked: Vec<Value> =
        questions.iter().map(|(tool, arguments, _)| json!([tool, arguments])).collect();
    let mut child = Command::new(python)
        .args(["-c", include_str!("mcp/client.py"), env!("CARGO_BIN_EXE_zeropilot"), "mcp"])
        .current_dir(bench.path())
        .env("LANG", "C")
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(json!(asked).to_string().as_bytes()).expect("questions are taken");
    drop(input);
    let output = child.wait_with_output().expect("the client ends");
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tools = told["tools"].as_array().expect("tools");
    for (index, (tool, arguments, line)) in questions.iter().enumerate() {
        assert!(tools.contains(&json!(tool)), "{tool}");
        let mut words = vec![*tool];
        words.extend(line);
        words.push("--json");
        let run = bench.run(&words);
        let answer = &told["answers"][index];
        assert_eq!(answer["is_error"], false, "{tool} {arguments}: {answer}");
        assert_eq!(answer["texts"][0], run.stdout.trim_end(), "{tool} {arguments}");
        if let Ok(expected @ Value::Object(_)) = serde_json::from_str::<Value>(&run.stdout) {
            assert_eq!(answer["structured"], expected, "{tool} {arguments}");
        }
    }
}
