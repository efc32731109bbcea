//! `zeropilot memory` as a user runs it.

use std::fs;

mod command;

use command::{run, run_in};
use serde_json::Value;

fn answer(arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["memory", "--json"].iter().chain(arguments).copied().collect();
    let run = run(&all);
    assert!(run.code < 2, "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

/// Parameters of Qwen3-8B, as published.
const QWEN3_8B: u64 = 8_190_735_360;

fn at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Sixteen bytes per parameter are spread over the ranks as the stage says: 2 weights, 2 gradients, 4 master, 8
/// moments.
#[test]
fn states_of_8b_on_five_gpus_are_sixteen_bytes_a_parameter_by_stage() {
    let per_parameter = |stage: &str, state: &str| {
        let answer = answer(&["--model", "qwen3-8b", "--gpus", "5x80GB", "--stage", stage]);
        at(&answer, &format!("/tensors/{state}/total")) as f64 / QWEN3_8B as f64
    };
    let near = |actual: f64, expected: f64| (actual - expected).abs() < 0.02;
    for (stage, after_step, after_backward) in [
        // Everything everywhere: 2 + 4 + 8; backward adds 2.
        ("0", 14.0, 16.0),
        // Master and moments shared: 2 + 12 / 5; backward adds the rank's own gradients.
        ("1", 2.0 + 12.0 / 5.0, 2.0 + 12.0 / 5.0 + 2.0 / 5.0),
        ("2", 2.0 + 12.0 / 5.0, 2.0 + 12.0 / 5.0 + 2.0 / 5.0),
    ] {
        assert!(near(per_parameter(stage, "after_step"), after_step), "stage {stage}");
        assert!(near(per_parameter(stage, "after_backward"), after_backward), "stage {stage}");
    }
    // All sixteen shared, beside the bucket of 5e8 elements and small parameters that stay gathered.
    let bucket = 2.0 * 5e8 / QWEN3_8B as f64;
    let sharded = per_parameter("3", "after_step");
    assert!((sharded - 16.0 / 5.0 - bucket).abs() < 0.01, "{sharded}");
}

/// A widely read guide says that ZeRO-2 suffices; the replicated bf16 weights alone are 61 GB.
#[test]
fn lora_on_a_30b_mixture_does_not_fit_44_gb_with_zero_2() {
    let model = ["--model", "Qwen3-30B-A3B", "--gpus", "5x44GB", "--method", "lora"];
    let ask = |more: &[&str]| answer(&[&model[..], more].concat());
    let zero2 = ask(&["--stage", "2"]);
    // 30,532,122,624 parameters of two bytes.
    assert!(at(&zero2, "/tensors/after_init/device/frozen_parameters") >= 61_064_245_248);
    assert_eq!(zero2["device"]["verdict"], "does_not_fit");
    let zero3 = ask(&["--stage", "3", "--grad-checkpointing", "--fused-loss"]);
    assert_eq!(zero3["device"]["verdict"], "fits");
}

#[test]
fn t5_3b_trains_on_one_small_gpu_with_everything_on_the_host() {
    let model = ["--model", "t5-3b", "--gpus", "1x24GB", "--seq-len", "512"];
    let ask = |more: &[&str]| answer(&[&model[..], more].concat());
    assert_eq!(ask(&["--stage", "3"])["device"]["verdict"], "does_not_fit");
    let offloaded = ask(&["--stage", "3", "--offload", "--grad-checkpointing"]);
    assert_eq!(offloaded["device"]["verdict"], "fits");
    // 2,851,598,336 parameters: master and both moments of four bytes are pinned or ordinary host memory.
    assert!(at(&offloaded, "/host/expected") > 12 * 2_851_598_336);
}

#[test]
fn the_estimate_adds_the_cuda_layer_to_what_is_exact() {
    let answer = answer(&["--model", "llama-3.1-8b", "--gpus", "8xA100-80G", "--stage", "2"]);
    let sum: u64 = answer["device"]["at_peak"]
        .as_object()
        .expect("parts")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let [low, expected, high] =
        ["low", "expected", "high"].map(|bound| at(&answer, &format!("/device/{bound}")));
    assert!(sum.max(low) < expected && expected < high, "{sum} {low} {expected} {high}");
    let phase = answer["device"]["peak"]["phase"].as_str().expect("a phase");
    assert_eq!(at(&answer, &format!("/device/peak/{phase}")), sum);
}

/// Until 0.16 buckets exist from the beginning of backward, where the peak is: 5e8 elements of two bytes.
#[test]
fn an_older_engine_is_followed_and_named() {
    let asked = ["--model", "qwen3-0.6b", "--gpus", "2x80GB", "--stage", "2", "--seq-len", "8192"];
    let newest = answer(&asked);
    let older = answer(&[&asked[..], &["--deepspeed-version", "0.16.4"]].concat());
    let backward = |answer: &Value| at(answer, "/device/peak/backward");
    assert_eq!(backward(&older) - backward(&newest), 1_000_000_000);
    let version = |answer: &Value| {
        let values = answer["provenance"]["values"].as_array().expect("values").clone();
        values.into_iter().find(|value| value["name"] == "deepspeed_version")
    };
    assert_eq!(version(&newest), None);
    assert_eq!(version(&older).expect("it is stated")["value"], "0.16.9");
    let wrong = run(&["memory", "--model", "gpt2", "--gpus", "8", "--deepspeed-version", "last"]);
    assert_eq!(wrong.code, 2);
}

#[test]
fn exit_codes_tell_whether_it_fits() {
    let base = ["memory", "--model", "qwen3-8b", "--stage", "3", "--grad-checkpointing"];
    let code = |gpus: &str| run(&[&base[..], &["--gpus", gpus]].concat()).code;
    assert_eq!(code("8xH100"), 0);
    assert_eq!(code("2x24GB"), 1);
    assert_eq!(code("8"), 0, "no memory was given");
    assert_eq!(code("banana"), 2);
    let on_hosts = |ram: &str| run(&[&base[..], &["--gpus", "8xH100", "--host-ram", ram]].concat());
    // Eight processes of some 5 GiB each.
    assert_eq!(on_hosts("1TiB").code, 0);
    assert_eq!(on_hosts("10GiB").code, 1, "the host counts too");
    let bare = on_hosts("64");
    assert_eq!(bare.code, 2, "64 bytes are not meant");
    assert!(bare.stderr.contains("include the unit"), "{}", bare.stderr);
}

#[test]
fn options_that_do_nothing_are_named() {
    let base = ["memory", "--model", "gpt2", "--gpus", "1xA100-80G", "--seq-len", "512"];
    let said = |more: &[&str]| run(&[&base[..], more].concat()).stderr;
    let offload = "note: `--offload` has no effect without `--stage` 1, 2, 3\n";
    assert_eq!(said(&["--stage", "0", "--offload"]), offload);
    let rank = "note: `--lora-rank` has no effect without `--method lora`\n";
    assert_eq!(said(&["--lora-rank", "8"]), rank);
    assert_eq!(said(&["--lora-rank", "8", "--method", "lora"]), "");
}

#[test]
fn sequences_beyond_the_positions_of_a_model_are_named() {
    let said = |tokens: &str| {
        run(&["memory", "--model", "gpt2", "--gpus", "1xA100-80G", "--seq-len", tokens]).stderr
    };
    assert!(said("2048").contains("allows 1024 positions"), "{}", said("2048"));
    assert_eq!(said("1024"), "");
}

#[test]
fn a_config_with_auto_is_filled_as_the_trainer_fills_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = r#"{"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto", "train_batch_size": "auto",
        "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}"#;
    fs::write(directory.path().join("ds.json"), config).expect("a file");
    let arguments =
        ["memory", "--json", "--model", "qwen3-8b", "--gpus", "4x80GB", "--config", "ds.json"];
    let run = run_in(directory.path(), &arguments);
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    // hidden_size² elements of two bytes.
    let bucket = at(&answer, "/tensors/after_init/device/reduce_bucket");
    assert_eq!(bucket, 4096 * 4096 * 2);
}

#[test]
fn what_new_writes_for_each_program_is_answered_and_says_what_it_assumes() {
    let directory = tempfile::tempdir().expect("a directory");
    for target in ["deepspeed", "hf-trainer", "accelerate"] {
        let path = format!("{target}.json");
        let made = ["new", "zero3", "--for", target, "--grad-accum", "4", "-o", path.as_str()];
        assert_eq!(run_in(directory.path(), &made).code, 0, "{target}");
        let asked = ["memory", "--model", "gpt2", "--gpus", "2x24GB", "--config", path.as_str()];
        let said = run_in(directory.path(), &asked);
        assert_eq!(said.code, 0, "{target}: {}", said.stderr);
        let json = run_in(directory.path(), &[&asked[..], &["--json"]].concat());
        let answer: Value = serde_json::from_str(&json.stdout).expect("JSON");
        let written = fs::read_to_string(directory.path().join(&path)).expect("a config");
        let written: Value = serde_json::from_str(&written).expect("JSON");
        let is_open = written["bf16"]["enabled"] == "auto";
        assert_eq!(answer["precision_assumed"], is_open, "{target}");
        assert_eq!(
            said.stdout.contains("zeropilot assumes bf16"),
            is_open,
            "{target}: {}",
            said.stdout
        );
    }
}

#[test]
fn a_flag_that_contradicts_the_config_is_named_with_both_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,
        "fp16": {"enabled": true}, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}"#;
    fs::write(directory.path().join("ds.json"), config).expect("a file");
    let base = ["memory", "--model", "gpt2", "--gpus", "2x24GB", "--config", "ds.json"];
    let ask = |flags: &[&str]| run_in(directory.path(), &[&base[..], flags].concat());
    for (flags, both) in [
        (["--grad-accum", "4"], ["--grad-accum 4", "gradient_accumulation_steps is 8"]),
        (["--micro-batch", "1"], ["--micro-batch 1", "train_micro_batch_size_per_gpu is 2"]),
        (["--precision", "bf16"], ["--precision bf16", "fp16.enabled is fp16"]),
    ] {
        let said = ask(&flags);
        assert_eq!(said.code, 2);
        assert!(both.iter().all(|words| said.stderr.contains(words)), "{}", said.stderr);
    }
    let same = ask(&["--grad-accum", "8", "--micro-batch", "2", "--precision", "fp16"]);
    assert_eq!(same.code, 0, "{}", same.stderr);
}

/// `fill_match` of transformers refuses two numbers; accelerate takes the one of its own YAML (`Using DeepSpeed's value`).
#[test]
fn a_job_that_contradicts_its_config_says_where_both_numbers_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).expect("a file");
    };
    let yaml = "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\ndeepspeed_config:\n  \
        gradient_accumulation_steps: 1\n  zero_stage: 2\n";
    write("acc.yaml", yaml);
    write("run.sh", "accelerate launch --config_file acc.yaml train.py\n");
    let load = "from transformers import AutoModelForCausalLM\n\
        model = AutoModelForCausalLM.from_pretrained('gpt2')\n";
    let ask = |script: &str, more: &[&str]| {
        write("train.py", &format!("{load}{script}"));
        let base = ["memory", "run.sh", "--gpus", "2x24GB", "--seq-len", "512"];
        run_in(directory.path(), &[&base[..], more].concat())
    };
    let trainer = "args = TrainingArguments(output_dir='o', bf16=True, gradient_accumulation_steps=4)\n\
        Trainer(model=model, args=args).train()\n";
    let refused = ask(trainer, &[]);
    assert_eq!(refused.code, 2);
    let words = "gradient accumulation steps 4 (train.py:3) contradicts accelerate (acc.yaml:5), where \
        gradient_accumulation_steps is 1";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    assert!(!refused.stderr.contains("omit"), "{}", refused.stderr);
    // The advice works.
    assert!(refused.stderr.contains("add --grad-accum 1"), "{}", refused.stderr);
    let by_config = ask(trainer, &["--grad-accum", "1"]);
    assert_eq!(by_config.code, 0, "{}", by_config.stderr);
    let option = ask(trainer, &["--grad-accum", "2"]);
    let words = "--grad-accum 2 contradicts accelerate (acc.yaml:5)";
    assert!(option.code == 2 && option.stderr.contains(words), "{}", option.stderr);
    let loop_of_its_own = ask("accelerator = Accelerator(gradient_accumulation_steps=4)\n", &[]);
    assert_eq!(loop_of_its_own.code, 0, "{}", loop_of_its_own.stderr);
    let words = "gradient accumulation steps  1           acc.yaml:5";
    assert!(loop_of_its_own.stdout.contains(words), "{}", loop_of_its_own.stdout);
    // The same with a file: the script says one thing, the file another, and DeepSpeed reads the file.
    write(
        "ds.json",
        r#"{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "gradient_accumulation_steps": 2,
            "train_micro_batch_size_per_gpu": "auto"}"#,
    );
    write(
        "acc.yaml",
        "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n",
    );
    let with_file = ask("accelerator = Accelerator(gradient_accumulation_steps=4)\n", &[]);
    assert_eq!(with_file.code, 0, "{}", with_file.stderr);
    let words = "gradient accumulation steps  2        acc.yaml:4";
    assert!(with_file.stdout.contains(words), "{}", with_file.stdout);
}

#[test]
fn a_refused_config_is_explained_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("ds.json"), r#"{"train_batch_size": 7}"#).expect("a file");
    let arguments = ["memory", "--model", "qwen3-8b", "--gpus", "4x80GB", "--config", "ds.json"];
    let run = run_in(directory.path(), &arguments);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("ds.json: rejected"), "{}", run.stderr);
    assert!(run.stderr.contains("train_batch_size"), "{}", run.stderr);
}

#[test]
fn mistakes_are_answered_with_a_remedy_in_both_languages() {
    let typo = run(&["memory", "--model", "qwen3-8bb", "--gpus", "8"]);
    assert_eq!(typo.code, 2);
    assert!(typo.stderr.contains("did you mean `Qwen3-8B`"), "{}", typo.stderr);
    let typo = run(&["memory", "--model", "qwen3-8bb", "--gpus", "8", "--lang", "zh"]);
    assert!(typo.stderr.contains("是不是想写 `Qwen3-8B`"), "{}", typo.stderr);
    let rank = run(&["memory", "--model", "qwen3-8b", "--gpus", "4", "--rank", "4"]);
    assert!(rank.stderr.contains("0 to 3"), "{}", rank.stderr);
}

#[test]
fn the_step_is_drawn_in_the_terminal_and_as_a_picture() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "memory",
        "--model",
        "gpt2",
        "--gpus",
        "2x24GB",
        "--stage",
        "3",
        "--timeline",
        "--svg",
        "step.svg",
    ];
    let run = run_in(directory.path(), &arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("forward") && run.stdout.contains('█'), "{}", run.stdout);
    let picture = fs::read_to_string(directory.path().join("step.svg")).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
}

#[test]
fn every_stage_and_offload_stand_side_by_side() {
    let table = answer(&["--model", "qwen3-8b", "--gpus", "8x80GB", "--compare"]);
    let ways = table["strategies"].as_array().expect("rows");
    assert_eq!(ways.len(), 7);
    let needs: Vec<u64> = ways.iter().map(|way| at(way, "/device/expected")).collect();
    assert!(needs[0] > needs[1] && needs[2] > needs[4] && needs[4] > needs[6], "{needs:?}");
}

#[test]
fn a_card_without_bf16_is_asked_about_in_fp16_and_bf16_on_it_is_named() {
    let question = ["--model", "qwen2.5-0.5b", "--gpus", "4xT4"];
    let usual = answer(&question);
    assert_eq!(usual["precision"], "fp16");
    assert!(
        usual["provenance"]["notes"][0]
            .as_str()
            .expect("a note")
            .starts_with("T4 does not support bf16")
    );
    let asked = answer(&[&question[..], &["--precision", "bf16"]].concat());
    assert_eq!(asked["precision"], "bf16");
    assert!(asked["provenance"]["notes"][0].as_str().expect("a note").contains("use fp16"));
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("ds.json");
    let open = r#"{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#;
    fs::write(&config, open).expect("written");
    let path = config.to_str().expect("a path");
    assert_eq!(answer(&[&question[..], &["--config", path]].concat())["precision"], "fp16");
}

#[test]
fn cards_of_two_kinds_are_refused_with_what_to_ask_instead() {
    let mixed = run(&["memory", "--model", "qwen3-8b", "--gpus", "4xA100-40G+4xA100-80G"]);
    assert_eq!(mixed.code, 2);
    let instead = mixed.stderr.split('`').rev().nth(1).expect("a suggestion");
    let smallest = answer(&["--model", "qwen3-8b", "--gpus", instead]);
    let of_one_kind = answer(&["--model", "qwen3-8b", "--gpus", "8xA100-40G"]);
    assert_eq!(smallest["device"], of_one_kind["device"]);
}

/// Parameters of Llama 3.1 8B, as published.
const LLAMA_8B: u64 = 8_030_261_248;

/// DeepSpeed writes fp32 gradients to the disk bucket by bucket: only the 16-bit ones it accumulates stay in the host.
#[test]
fn what_is_on_a_disk_is_not_counted_in_the_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let nvme = r#"{"device": "nvme", "nvme_path": "/nvme", "pin_memory": true}"#;
    let config = format!(
        r#"{{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}}, "zero_optimization":
            {{"stage": 3, "offload_optimizer": {nvme}, "offload_param": {nvme}}}}}"#
    );
    let path = directory.path().join("ds.json");
    fs::write(&path, config).expect("written");
    let path = path.to_str().expect("a path");
    let question = ["--model", "llama-3.1-8b", "--gpus", "1xRTX4090", "--config", path];
    let answer = answer(&question);
    // Four buffers of a sub-group of 10^9 in fp32, five of 10^8 in 16 bits, the process.
    let beside = 4 * 4_000_000_000 + 5 * 200_000_000 + (3 << 30);
    let near =
        |actual: u64, bytes: u64| (actual as f64 / (bytes * LLAMA_8B) as f64 - 1.0).abs() < 0.01;
    assert!(near(at(&answer, "/host/expected") - beside, 2), "{}", answer["host"]);
    // Weights 2, master 4, its gradient 4, moments 8.
    assert!(near(at(&answer, "/host/disk"), 18), "{}", answer["host"]);
    let said = run(&[&["memory"][..], &question].concat()).stdout;
    let host = said
        .split("Host memory: ")
        .nth(1)
        .and_then(|rest| rest.split("NVMe: ").next())
        .expect("rows");
    assert!(host.contains("gradients") && !host.contains("optimizer states"), "{host}");
}

/// 64 GiB for eight processes, each of which loads the whole model.
#[test]
fn a_host_that_is_too_small_is_broken_down_with_what_would_help_it() {
    let question = ["memory", "--model", "llama-3.1-8b", "--gpus", "8xA100-80G", "--stage", "2"];
    let run = run(&[&question[..], &["--offload", "--host-ram", "64GiB"]].concat());
    assert_eq!(run.code, 1);
    for row in ["fp32 master weights", "the process itself", "lower host memory per node"] {
        assert!(run.stdout.contains(row), "{row}: {}", run.stdout);
    }
    assert!(run.stdout.contains("remove offload_optimizer"), "{}", run.stdout);
}

/// 8,292,166,656 parameters: 631,975,680 of the tower, 44,574,464 of the merger, 7,615,616,512 of the language model. 1036
/// pixels are 74 patches of 14, four of which become a token: 37 × 37.
#[test]
fn a_model_that_sees_is_answered_with_its_parts_and_images() {
    let base = ["--model", "qwen2.5-vl-7b", "--gpus", "4xA100-80G"];
    let seeing = answer(&[&base[..], &["--image", "1036x1036"]].concat());
    assert_eq!(at(&seeing, "/parameters/total"), 8_292_166_656);
    let parts: Vec<_> = [0, 1, 2]
        .map(|part| at(&seeing, &format!("/parameters/parts/{part}/total")))
        .into_iter()
        .collect();
    assert_eq!(parts, [631_975_680, 44_574_464, 7_615_616_512]);
    assert_eq!(at(&seeing, "/images/tokens"), 37 * 37);
    let blind = answer(&[&base[..], &["--image", "none"]].concat());
    let activations = |answer: &Value| at(answer, "/tensors/peak/forward");
    assert!(activations(&seeing) > activations(&blind), "an image takes memory");
    let frozen = answer(&[&base[..], &["--image", "1036x1036", "--freeze", "vision"]].concat());
    let trained = at(&frozen, "/parameters/trainable");
    assert_eq!(trained, 7_615_616_512, "the merger is inside the tower");
    assert!(activations(&frozen) < activations(&seeing), "a frozen tower keeps nothing");
}

#[test]
fn parts_that_a_job_freezes_are_stated_and_not_named_as_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let ask = |yaml: &str, more: &[&str]| {
        let config = r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"},
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}"#;
        fs::write(directory.path().join("ds.json"), config).expect("a file");
        fs::write(directory.path().join("train.yaml"), yaml).expect("a file");
        let base = ["memory", "train.yaml", "--gpus", "8xA100-80G"];
        let run = run_in(directory.path(), &[&base[..], more].concat());
        assert!(run.code < 2, "{}", run.stderr);
        run.stdout
    };
    let of = |model: &str, more: &str| {
        format!(
            "model_name_or_path: {model}\nstage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\n{more}"
        )
    };
    let seeing = "Qwen/Qwen2.5-VL-7B-Instruct";
    let usual = ask(&of(seeing, ""), &[]);
    let has = |text: &str, words: [&str; 3]| {
        text.lines().any(|line| words.iter().all(|it| line.contains(it)))
    };
    assert!(
        has(&usual, ["frozen parts", "vision,projector", "default of llamafactory"]),
        "{usual}"
    );
    assert!(!usual.contains("Not modeled"), "{usual}");
    let written = ask(&of(seeing, "freeze_vision_tower: true\n"), &[]);
    assert!(has(&written, ["frozen parts", "vision,projector", "train.yaml:6"]), "{written}");
    // The merger is inside the tower.
    let merger = ask(&of(seeing, "freeze_multi_modal_projector: false\n"), &[]);
    assert!(merger.contains("Not modeled: the trained projector"), "{merger}");
    let text = ask(&of("Qwen/Qwen3-8B", ""), &[]);
    assert!(!text.contains("frozen parts") && !text.contains("maximum pixels"), "{text}");
    // axolotl names what it trains; an option says which parts these are.
    let named = format!(
        "base_model: {seeing}\nsequence_len: 2048\nbf16: true\ndeepspeed: ds.json\nunfrozen_parameters:\n  - model.language_model\n"
    );
    let left_out = "Not modeled: frozen parts";
    assert!(ask(&named, &[]).contains(left_out));
    assert!(!ask(&named, &["--freeze", "vision"]).contains(left_out));
}

#[test]
fn images_that_do_not_fit_and_towers_that_no_program_runs_are_named() {
    let too_long =
        run(&["memory", "--model", "qwen2.5-vl-7b", "--image", "2048x2048", "--gpus", "1xH100"]);
    assert_eq!(too_long.code, 2);
    // 2048 / 28 is 73.1, so 73 × 73 tokens.
    assert!(too_long.stderr.contains("--seq-len 5329"), "{}", too_long.stderr);
    let unseen = run(&["memory", "--model", "llama-3.2-11b-vision", "--gpus", "8xA100-80G"]);
    assert!(unseen.stdout.contains("Not modeled: image or audio input"), "{}", unseen.stdout);
    let text =
        run(&["memory", "--model", "qwen2.5-7b", "--image", "512x512", "--gpus", "8xA100-80G"]);
    assert!(text.stderr.contains("--image"), "{}", text.stderr);
}

/// A type that nobody knows is answered by what it is like, and says so; so is a size alone.
#[test]
fn an_unknown_model_is_answered_by_a_stand_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    let config = r#"{"model_type": "newest", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 4096, "vocab_size": 32000}"#;
    std::fs::write(&path, config).expect("written");
    let path = path.to_str().expect("UTF-8");
    let unknown = answer(&["--model", path, "--gpus", "1xA100-80G"]);
    assert_eq!(unknown["activations"]["program"], "stand_in");
    assert!(unknown["activations"]["error"]["low"].as_f64() < Some(0.0), "{unknown}");
    let like = answer(&["--model", path, "--like", "gpt_neox", "--gpus", "1xA100-80G"]);
    assert_eq!(like["activations"]["of"], "gpt_neox");
    let sized =
        answer(&["--params", "8B", "--layers", "36", "--hidden", "4096", "--gpus", "8xA100-80G"]);
    let total = at(&sized, "/parameters/total") as f64;
    assert!((total / 8e9 - 1.0).abs() < 0.001, "{total}");
    let nobody = run(&["memory", "--model", path, "--like", "lama", "--gpus", "1xA100-80G"]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.stderr.contains("unknown model family"), "{}", nobody.stderr);
}

/// What PyTorch counts is part of what the driver shows, and the bounds are those of published runs.
#[test]
fn allocated_is_part_of_reserved_and_that_of_what_nvidia_smi_shows() {
    let answer = answer(&["--model", "llama-3.1-8b", "--gpus", "8xH100"]);
    let expected = |of: &str| at(&answer, &format!("/device{of}/expected"));
    let [allocated, reserved, shown] = ["/allocated", "/reserved", ""].map(expected);
    assert!(allocated <= reserved && reserved < shown, "{allocated} {reserved} {shown}");
    let counted = |what: &str| at(&answer, &format!("/device/calibration/{what}"));
    assert!(counted("inside") * 100 >= counted("runs") * 85, "{answer}");
    assert!(at(&answer, "/device/low") < shown && shown < at(&answer, "/device/high"));
}

#[test]
fn kernels_of_liger_hold_less_and_growing_segments_reserve_no_more() {
    let need = |of: &str, more: &str| {
        let arguments = ["--model", "llama-3.1-8b", "--gpus", "8xH100", more];
        at(&answer(&arguments), &format!("/device/{of}/expected"))
    };
    assert!(need("allocated", "--liger") < need("allocated", "--fused-loss"));
    assert!(need("reserved", "--expandable-segments") <= need("reserved", "--liger=false"));
}

/// Without DeepSpeed weights, gradients and both moments are in bf16: eight bytes per parameter, and two more in the buckets
/// of DDP. Stage 0 of DeepSpeed keeps sixteen.
#[test]
fn without_deepspeed_there_are_no_master_weights() {
    let per_parameter = |gpus: &str| {
        let answer = answer(&["--model", "qwen3-8b", "--gpus", gpus, "--without-deepspeed"]);
        assert_eq!((&answer["engine"], &answer["stage"]), (&"pytorch".into(), &0.into()));
        at(&answer, "/tensors/after_backward/total") as f64 / QWEN3_8B as f64
    };
    let (one, two) = (per_parameter("1xA100-80G"), per_parameter("2xA100-80G"));
    assert!((one - 8.0).abs() < 0.02 && (two - 10.0).abs() < 0.02, "{one} {two}");
    let both = ["memory", "--model", "qwen3-8b", "--gpus", "2xA100-80G", "--without-deepspeed"];
    let refused = run(&[&both[..], &["--stage", "2"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    // Adapters in fp32 on a base of four bits: what trainers prepare is named.
    let said = run(&[&both[..], &["--method", "qlora"]].concat()).stdout;
    assert!(said.contains("prepare_model_for_kbit_training"), "{said}");
}

/// Only decoder-only models have a fused form of their loss.
#[test]
fn a_fused_loss_that_changes_nothing_is_named() {
    let said = |model: &str, loss: &str| {
        run(&["memory", "--model", model, "--gpus", "1xA100-80G", "--seq-len", "512", loss]).stderr
    };
    for loss in ["--fused-loss", "--fused-loss=trl"] {
        assert!(said("t5-base", loss).contains("decoder-only"), "{}", said("t5-base", loss));
        assert!(said("bert-base-uncased", loss).contains("decoder-only"));
        assert!(!said("gpt2", loss).contains("decoder-only"));
    }
    assert!(!said("t5-base", "--fused-loss=no").contains("decoder-only"));
}

#[test]
fn a_strategy_that_the_host_has_no_room_for_does_not_fit() {
    let question = ["--model", "llama-3.1-70b", "--gpus", "4xRTX-4090", "--compare"];
    let verdicts = |more: &[&str]| {
        let table = answer(&[&question[..], more].concat());
        let rows = table["strategies"].as_array().expect("strategies").clone();
        let both = |row: &Value| (row["device"]["verdict"].clone(), row["verdict"].clone());
        rows.iter().map(both).collect::<Vec<_>>()
    };
    let with_checkpointing = ["--grad-checkpointing", "--seq-len", "2048"];
    let is_safe = |verdict: &Value| verdict == "fits" || verdict == "low_headroom";
    let open = verdicts(&with_checkpointing);
    assert!(open.iter().all(|(device, both)| device == both), "{open:?}");
    assert!(open.iter().any(|(_, both)| is_safe(both)), "{open:?}");
    // A tenth of what its states take.
    let small = verdicts(&[&with_checkpointing[..], &["--host-ram", "128GiB"]].concat());
    assert!(small.iter().any(|(device, _)| is_safe(device)), "{small:?}");
    assert!(small.iter().all(|(_, both)| both == "does_not_fit"), "{small:?}");
}
