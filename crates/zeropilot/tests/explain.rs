//! `zeropilot explain` as a user runs it: the real binary, its streams and its exit codes.

mod bench;

use std::path::Path;

use bench::{Bench, Run};
use serde_json::{Value, json};

const ZERO3: &str = r#"{
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
  "memory_efficient_linear": true,
  "comms_logger": {"enabled": false},
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "momentum": 0.9}}
}
"#;

const ZERO2: &str = r#"{
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}
}
"#;

fn run(arguments: &[&str]) -> Run {
    Bench::new(&[]).run(arguments)
}

/// What the newest extracted schema says about a field of a section.
fn field(model: &str, name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge/schema/0.19.8.json");
    let schema: Value =
        serde_json::from_slice(&std::fs::read(path).expect("the schema")).expect("JSON");
    let fields = schema["models"][model]["fields"].as_array().expect("fields").clone();
    fields.into_iter().find(|field| field["name"] == name).expect("the field")
}

#[test]
fn a_key_with_its_unit_default_and_cost() {
    let run = run(&["explain", "stage3_max_live_parameters"]);
    insta::assert_snapshot!(run.shown());
    let default = &field("DeepSpeedZeroConfig", "max_live_parameters")["default"];
    assert!(run.stdout.contains(&default.to_string()), "{}", run.stdout);
}

/// A launch script, the YAML of a framework, a training script with a config of its own, a directory.
#[test]
fn a_job_is_explained_through_the_config_it_uses() {
    let line = "torchrun --nproc_per_node 8 t.py --deepspeed ds.json --model_name_or_path gpt2 \\\n  --per_device_train_batch_size 2\n";
    let auto = r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#;
    let yaml = "model_name_or_path: gpt2\nstage: sft\ncutoff_len: 64\ndeepspeed: ds.json\n";
    let bench = Bench::new(&[
        ("job/train.sh", line),
        ("job/ds.json", auto),
        ("y/train.yaml", yaml),
        ("y/ds.json", auto),
    ]);
    for (name, framework, place) in [
        ("job/train.sh", "HF Trainer", "job/train.sh:1"),
        ("job", "HF Trainer", "job/train.sh:1"),
        ("y/train.yaml", "LLaMA-Factory", "y/train.yaml:4"),
    ] {
        let run = bench.run(&["explain", name]);
        let head = format!("From the job ({framework}):\n  model ");
        assert!(run.stdout.starts_with(&head), "{}{}", run.stdout, run.stderr);
        let config =
            run.stdout.lines().find(|line| line.trim_start().starts_with("DeepSpeed config"));
        assert!(config.is_some_and(|line| line.ends_with(place)), "{}", run.stdout);
        assert!(run.stdout.contains("stage = 2"), "{}", run.stdout);
    }
    let run = bench.run(&["explain", "job/train.sh", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let (file, job) = (&answer[0], &answer[0]["job"]);
    assert_eq!((&file["kind"], &file["file"]), (&json!("file"), &json!("ds.json")));
    assert_eq!((&file["world_size"], &file["front_end"]), (&json!(8), &json!("hf-trainer")));
    let ranks =
        job["values"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "world_size"));
    let origin = json!({"kind": "file", "file": "job/train.sh", "line": 1});
    assert_eq!(ranks, Some(&json!({"name": "world_size", "value": 8, "origin": origin})));
    let chinese = bench.run(&["explain", "y/train.yaml", "--lang", "zh"]);
    assert!(chinese.stdout.starts_with("取自训练任务（LLaMA-Factory）："), "{}", chinese.stdout);
}

/// The dictionary begins in line 2 of the script, and its stage stands in line 3.
#[test]
fn a_config_in_a_script_is_explained_by_the_lines_of_the_script() {
    let script = "import deepspeed\nconfig = {'train_batch_size': 8,\n  'zero_optimization': {'stage': 1}}\n\
        engine = deepspeed.initialize(model=m, config=config)\n";
    let bench = Bench::new(&[("train.py", script), ("none.sh", "deepspeed t.py\n")]);
    let run = bench.run(&["explain", "train.py"]);
    assert!(run.stdout.contains("3    stage = 1"), "{}{}", run.stdout, run.stderr);
    let none = bench.run(&["explain", "none.sh"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no DeepSpeed config in none.sh"), "{}", none.stderr);
}

#[test]
fn a_run_that_a_job_does_not_start_is_not_explained() {
    let two = "deepspeed a.py --deepspeed ds.json\ndeepspeed b.py --deepspeed ds.json\n";
    let bench = Bench::new(&[("train.sh", two), ("ds.json", ZERO2)]);
    let third = bench.run(&["explain", "train.sh", "--launch", "3"]);
    let said = "error: train.sh starts 2 runs, so there is no run 3:\n  --launch 1  train.sh:1  deepspeed a.py";
    assert!(third.code == 2 && third.stderr.contains(said), "{}", third.stderr);
    assert_eq!(bench.run(&["explain", "train.sh", "--launch", "2"]).code, 0);
}

#[test]
fn a_key_in_chinese() {
    insta::assert_snapshot!(run(&["explain", "overlap_comm", "--lang", "zh"]).shown());
}

#[test]
fn a_key_that_nobody_reads_is_called_so() {
    let run = run(&["explain", "comms_logger.enabled"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("DeepSpeed 0.19.8 ignores this key"), "{}", run.stdout);
}

#[test]
fn keys_are_found_by_their_last_part_by_old_and_by_engine_names() {
    for (asked, path) in [
        ("reduce_bucket_size", "zero_optimization.reduce_bucket_size"),
        ("offload_param.pin_memory", "zero_optimization.offload_param.pin_memory"),
        ("prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"),
        ("bfloat16.enabled", "bf16.enabled"),
        ("cpu_offload", "zero_optimization.cpu_offload"),
        ("loss_scale", "fp16.loss_scale"),
    ] {
        let run = run(&["explain", asked]);
        assert_eq!((run.code, run.stdout.lines().next()), (0, Some(path)), "{asked}");
    }
}

#[test]
fn a_name_of_several_keys_lists_them() {
    let run = run(&["explain", "pin_memory"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("zero_optimization.offload_param.pin_memory"), "{}", run.stdout);
    assert!(run.stdout.contains("zero_optimization.offload_optimizer.pin_memory"));
}

#[test]
fn deprecated_and_removed_keys_say_what_became_of_them() {
    let deprecated = run(&["explain", "cpu_offload"]);
    assert!(deprecated.stdout.contains("deprecated: write `offload_optimizer`"));
    let removed = run(&["explain", "mics_shard_size"]);
    assert_eq!(removed.code, 0);
    assert!(
        removed.stdout.contains("0.19.8 rejects the key: MiCS ZeRO-3 sharding has been removed")
    );
}

#[test]
fn a_named_version_is_answered_for() {
    let run = run(&["explain", "zenflow", "--deepspeed-version", "0.14.5"]);
    assert_eq!(run.stdout.lines().last(), Some("  DeepSpeed 0.14.5 does not read the key"));
}

#[test]
fn an_unknown_name_fails_and_suggests() {
    let misspelt = run(&["explain", "stage3_max_live_paramters"]);
    assert_eq!((misspelt.code, misspelt.stdout.as_str()), (2, ""));
    assert!(
        misspelt.stderr.contains("did you mean `zero_optimization.stage3_max_live_parameters`?")
    );
    let concept = run(&["explain", "ofload", "--lang", "zh"]);
    assert!(concept.stderr.contains("是不是 `offload`？"), "{}", concept.stderr);
    let nonsense = run(&["explain", "use_dynamic_tiling"]);
    assert_eq!(nonsense.code, 2);
    assert!(nonsense.stderr.contains("`zeropilot explain` lists keys and concepts"));
}

#[test]
fn a_concept_with_its_drawing() {
    insta::assert_snapshot!(run(&["explain", "zero2"]).shown());
    insta::assert_snapshot!(run(&["explain", "loss-scale", "--lang", "zh"]).shown());
}

#[test]
fn without_a_topic_what_can_be_asked_is_listed() {
    let run = run(&["explain"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for topic in ["zero3", "loss-scale", "checkpointing", "zero_optimization", "train_batch_size"] {
        assert!(run.stdout.contains(topic), "{topic}");
    }
}

#[test]
fn a_file_key_by_key_in_its_order() {
    let bench = Bench::new(&[("ds.json", ZERO3)]);
    let run = bench.run(&["explain", "ds.json", "--world-size", "4"]);
    insta::assert_snapshot!(run.shown());
    let chinese = bench.run(&["explain", "ds.json", "--world-size", "4", "--lang", "zh"]);
    insta::assert_snapshot!(chinese.shown());
}

#[test]
fn placeholders_say_what_fills_them() {
    let text = r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}"#;
    let bench = Bench::new(&[("ds.json", text)]);
    let run = bench.run(&["explain", "ds.json", "--world-size", "4"]);
    let expected = "\"auto\" → filled from `per_device_train_batch_size` at run time";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
    let filled = ["--per-device-train-batch-size", "3", "--gradient-accumulation-steps", "1"];
    let run = bench.run(&[&["explain", "ds.json", "--world-size", "4"], &filled[..]].concat());
    assert!(run.stdout.contains("train_micro_batch_size_per_gpu = \"auto\" → 3"), "{}", run.stdout);
}

/// The streams of `check` and `explain` for the same argument.
fn both(bench: &Bench, argument: &str) -> [Run; 2] {
    ["check", "explain"].map(|verb| bench.run(&[verb, argument, "--world-size", "1"]))
}

#[test]
fn files_that_cannot_be_read_are_told_as_check_tells_them() {
    let bench = Bench::new(&[("broken.json", "{\"train_batch_size\": [}")]);
    let [check, explain] = both(&bench, "missing.json");
    assert_eq!((explain.code, &explain.stderr), (check.code, &check.stderr));
    assert_eq!(explain.code, 2);
    let [check, explain] = both(&bench, "broken.json");
    assert_eq!(explain.code, 1);
    // `check` ends with a summary.
    assert!(check.stdout.starts_with(&explain.stdout), "{}", explain.stdout);
    assert!(explain.stdout.contains("error["), "{}", explain.stdout);
}

#[test]
fn standard_input_is_a_file_too() {
    let bench = Bench::new(&[]);
    let run = bench.run_with_input(&["explain", "-", "--world-size", "4"], ZERO2.as_bytes());
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("<stdin>: accepted, ZeRO stage 2"), "{}", run.stdout);
}

#[test]
fn two_files_and_what_they_make_the_engine_do_differently() {
    let bench = Bench::new(&[("zero2.json", ZERO2), ("zero3.json", ZERO3)]);
    let run = bench.run(&["explain", "diff", "zero2.json", "zero3.json", "--world-size", "4"]);
    insta::assert_snapshot!(run.shown());
    // Not written in either file: the engine turns it on with stage 3.
    assert!(run.stdout.contains("zero_optimization.overlap_comm: false → true"), "{}", run.stdout);
    let same = bench.run(&["explain", "diff", "zero2.json", "zero2.json", "--world-size", "4"]);
    assert_eq!(same.code, 0);
    assert!(same.stdout.contains("all keys resolve to the same values"), "{}", same.stdout);
}

#[test]
fn a_refused_file_is_not_compared() {
    let bench = Bench::new(&[("zero2.json", ZERO2), ("bad.json", r#"{"fp16": true}"#)]);
    let run = bench.run(&["explain", "diff", "zero2.json", "bad.json", "--world-size", "4"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.starts_with("bad.json: rejected"), "{}", run.stdout);
    let one = bench.run(&["explain", "diff", "zero2.json"]);
    assert_eq!(one.code, 2);
    assert!(one.stderr.contains("zeropilot explain diff a.json b.json"), "{}", one.stderr);
}

#[test]
fn json_has_every_kind_of_topic() {
    let bench = Bench::new(&[("zero2.json", ZERO2), ("zero3.json", ZERO3)]);
    let arguments = ["explain", "--json", "hysteresis", "zero3", "zero3.json", "--world-size", "4"];
    let run = bench.run(&arguments);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let [key, concept, file] = run.json().try_into().expect("three topics");
    assert_eq!(key["kind"], "key");
    assert_eq!(key["path"], "fp16.hysteresis");
    let newest = key["versions"].as_array().and_then(|versions| versions.last()).expect("versions");
    assert_eq!(newest["default"], field("DeepSpeedFP16Config", "hysteresis")["default"]);
    assert_eq!((&concept["kind"], &concept["name"]), (&json!("concept"), &json!("zero3")));
    assert_eq!((&file["kind"], &file["verdict"]), (&json!("file"), &json!("fail")));
    let keys = file["keys"].as_array().expect("keys");
    let status = |path: &str| {
        let key = keys.iter().find(|key| key["path"] == path).expect("the key");
        key["status"].as_str().expect("a word").to_owned()
    };
    assert_eq!(status("memory_efficient_linear"), "unread");
    assert_eq!(status("comms_logger.enabled"), "unread");
    assert_eq!(status("optimizer.params.lr"), "read");
    assert_eq!(status("optimizer.params.momentum"), "handed-on");
    let run =
        bench.run(&["explain", "--output-format", "json", "diff", "zero2.json", "zero3.json"]);
    let difference = &run.json()[0];
    assert_eq!(difference["kind"], "difference");
    let stage = difference["changes"].as_array().expect("changes").iter();
    let stage = stage.clone().find(|change| change["path"] == "zero_optimization.stage");
    let stage = stage.expect("the stage changes");
    assert_eq!((&stage["left"]["value"], &stage["right"]["value"]), (&json!(2), &json!(3)));
    let index = &bench.run(&["explain", "--json"]).json()[0];
    assert_eq!(index["kind"], "index");
}

/// A reader of either language finds the same: every known key, asked by its path.
#[test]
fn every_listed_key_can_be_asked_for_in_both_languages() {
    let index = run(&["explain", "--json"]).json().remove(0);
    let keys: Vec<&str> =
        index["keys"].as_array().expect("keys").iter().filter_map(Value::as_str).collect();
    assert!(keys.len() > 300, "{}", keys.len());
    for language in ["en", "zh"] {
        let arguments = [&["explain", "--json", "--lang", language][..], &keys].concat();
        let run = run(&arguments);
        assert_eq!(run.code, 0);
        let answers = run.json();
        assert_eq!(answers.len(), keys.len());
        for (answer, key) in answers.iter().zip(&keys) {
            assert_eq!((&answer["kind"], &answer["path"]), (&json!("key"), &json!(key)));
            let what = answer["what"].as_str().expect("a sentence");
            assert_eq!(what.ends_with('。'), language == "zh", "{key}: {what}");
        }
    }
}

#[test]
fn colours_follow_the_environment_and_the_flag() {
    let bench = Bench::new(&[]);
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bench.command(arguments);
        command.envs(variables.iter().copied());
        Run::from(command.output().expect("the binary runs")).stdout.contains('\u{1b}')
    };
    assert!(!coloured(&["explain", "aio"], &[]));
    assert!(coloured(&["explain", "aio"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["explain", "aio"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&["explain", "aio", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!coloured(&["explain", "aio", "--json", "--color", "always"], &[]));
}

#[test]
fn help_has_examples_in_both_languages() {
    let english = run(&["explain", "--help"]);
    assert!(english.stdout.contains("zeropilot explain diff zero2.json zero3.json"));
    assert!(english.stdout.contains("Exit codes: 0 explained"));
    let chinese = run(&["explain", "--help", "--lang", "zh"]);
    assert!(chinese.stdout.contains("解释配置键、概念和整份配置"), "{}", chinese.stdout);
    assert!(chinese.stdout.contains("退出码：0 已解释"));
}

#[test]
fn two_files_are_costed_with_a_model_as_memory_does() {
    let bench = Bench::new(&[("zero2.json", ZERO2), ("zero3.json", ZERO3)]);
    let costed = ["--model", "qwen2.5-1.5b", "--gpus", "8xA100-80G", "--json"];
    let run = bench.run(&[&["explain", "diff", "zero2.json", "zero3.json"], &costed[..]].concat());
    let topics: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let files = topics[1]["files"].as_array().expect("files");
    let number = |file: usize, key: &str| files[file][key].as_u64().expect("a number");
    for (place, name) in ["zero2.json", "zero3.json"].into_iter().enumerate() {
        let run = bench.run(&[&["memory", "--config", name], &costed[..]].concat());
        let memory: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(memory["device"]["expected"], number(place, "device"), "{name}");
    }
    let told = bench.run(&[&["explain", "zero2.json"], &costed[..4]].concat());
    assert!(
        !told.stderr.contains("number of ranks"),
        "they are those of the GPUs: {}",
        told.stderr
    );
    // Micro batch 2, accumulation 8, 8 ranks.
    assert_eq!(number(0, "sequences"), 2 * 8 * 8);
    // Weights that lie on the host are copied to the device.
    assert!(number(0, "to_device") == 0 && number(1, "to_device") > 0, "{files:?}");
}

#[test]
fn a_size_is_costed_with_a_model_and_a_concept_is_not() {
    let costed = ["--model", "qwen2.5-1.5b", "--gpus", "8xA100-80G"];
    let size = run(&[&["explain", "reduce_bucket_size"], &costed[..]].concat());
    assert!(size.stdout.contains("reduce_bucket_size 500000000 → reduce_bucket_size 50000000"));
    let concept = run(&[&["explain", "zero3"], &costed[..]].concat());
    assert_eq!(concept.code, 2, "{}", concept.stderr);
}
