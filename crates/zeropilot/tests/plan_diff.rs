//! `plan JOB --diff`: the patch, applied by git, makes a job train as the plan recommends, and nothing else changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A config for frameworks, which read JSON, with a layout of its own.
const STRICT: &str = "{\n  \"train_micro_batch_size_per_gpu\": \"auto\",\n  \"gradient_accumulation_steps\": \"auto\",\n  \"bf16\": {\"enabled\": \"auto\"},\n  \
    \"gradient_clipping\":   1.0,\n  \"zero_optimization\": {\n    \"stage\": 3,\n    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true},\n    \
    \"offload_param\": {\"device\": \"cpu\"}\n  }\n}\n";

/// vLLM generates on the GPUs that train, and does not sleep.
const GRPO: &str = "from trl import GRPOConfig, GRPOTrainer\n\
    args = GRPOConfig(deepspeed='ds.json', bf16=True, per_device_train_batch_size=4, gradient_accumulation_steps=4,\n    \
    max_completion_length=2048, vllm_gpu_memory_utilization=0.5, beta=0.0, use_vllm=True, vllm_mode='colocate')\n\
    GRPOTrainer(model='Qwen/Qwen3-8B', reward_funcs=score, args=args).train()\n";

struct Case {
    name: &'static str,
    /// The job is the first of them.
    files: Vec<(&'static str, String)>,
    /// What the job leaves open.
    beside: &'static str,
}

fn case(name: &'static str, files: &[(&'static str, &str)], beside: &'static str) -> Case {
    let files = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    Case { name, files, beside }
}

fn cases() -> Vec<Case> {
    let engine = "import deepspeed\nfrom transformers import AutoModelForCausalLM\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-1.7B')\n\
        engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";
    let fixed = "{\n  # on 8 GPUs\n  \"train_micro_batch_size_per_gpu\": 1,\n  \"gradient_accumulation_steps\": 8,\n  \
        \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-4}},\n  \"bf16\": {\"enabled\": true},\n  \
        \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}}\n}\n";
    let trainer = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-1.7B')\n\
        args = TrainingArguments(output_dir='out', deepspeed='ds.json', per_device_train_batch_size=1,\n    \
            gradient_accumulation_steps=8, bf16=True, gradient_checkpointing=True)\n\
        Trainer(model=model, args=args).train()\n";
    vec![
        case(
            "a launch script of the HF Trainer",
            &[
                (
                    "train.sh",
                    "#!/bin/bash\ntorchrun --nproc_per_node 8 t.py --deepspeed ds.json --model_name_or_path Qwen/Qwen3-8B \\\n  \
                    --per_device_train_batch_size 1 --gradient_accumulation_steps 16 --bf16 --gradient_checkpointing \\\n  \
                    --max_seq_length 4096\n",
                ),
                ("ds.json", STRICT),
            ],
            "",
        ),
        case(
            "LLaMA-Factory's YAML",
            &[
                (
                    "train.yaml",
                    "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\ndeepspeed: ds.json  # ZeRO\n\
                    cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n\
                    disable_gradient_checkpointing: false  # none\n",
                ),
                ("ds.json", STRICT),
            ],
            "",
        ),
        case(
            "axolotl's YAML",
            &[
                (
                    "train.yml",
                    "base_model: meta-llama/Llama-3.1-8B\ndatasets:\n  - path: a\n    type: alpaca\nsequence_len: 4096\n\
                    micro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\noptimizer: adamw_torch_8bit\ndeepspeed: ds.json\n",
                ),
                ("ds.json", STRICT),
            ],
            "",
        ),
        case(
            "TrainingArguments written out",
            &[
                ("run.sh", "torchrun --nproc_per_node 8 train.py\n"),
                ("train.py", trainer),
                ("ds.json", STRICT),
            ],
            "--seq-len 2048",
        ),
        case(
            "deepspeed.initialize",
            &[
                ("train.sh", "deepspeed --num_gpus 8 train.py\n"),
                ("train.py", engine),
                ("ds.json", fixed),
            ],
            "--seq-len 1024",
        ),
        case("vLLM on the same GPUs", &[("train.py", GRPO), ("ds.json", STRICT)], ""),
        case("a config alone", &[("ds.json", fixed)], "--model Qwen/Qwen3-1.7B --seq-len 1024"),
    ]
}

fn zeropilot(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory)
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .args(words)
        .output()
        .expect("the command runs")
}

fn asked(directory: &Path, case: &Case, form: &str) -> String {
    let mut words = vec!["plan", case.files[0].0, "--gpus", "8xA100-80G", form];
    words.extend(case.beside.split_whitespace());
    let output = zeropilot(directory, &words);
    assert!(output.status.success(), "{}: {output:?}", case.name);
    String::from_utf8(output.stdout).expect("text")
}

fn written(case: &Case) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in &case.files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

fn plan(directory: &Path, case: &Case) -> Value {
    serde_json::from_str(&asked(directory, case, "--json")).expect("JSON")
}

#[test]
fn a_job_with_its_patch_is_the_recommended_strategy() {
    for case in cases() {
        let directory = written(&case);
        let before = plan(directory.path(), &case);
        let patch = asked(directory.path(), &case, "--diff");
        assert!(patch.contains("\n@@ "), "{}: {patch}", case.name);
        fs::write(directory.path().join("strategy.patch"), &patch).expect("a patch");
        let applied = Command::new("git")
            .current_dir(directory.path())
            .args(["apply", "-p0", "strategy.patch"])
            .output()
            .expect("git runs");
        assert!(applied.status.success(), "{}: {applied:?}\n{patch}", case.name);
        let after = plan(directory.path(), &case);
        assert_eq!(after["recommended"], before["recommended"], "{}\n{patch}", case.name);
        let (way, current) = (&after["recommended"]["strategy"], &after["current"]);
        for key in ["stage", "micro_batch", "gradient_accumulation_steps"] {
            assert_eq!(current[key], way[key], "{}: {key}\n{patch}", case.name);
        }
        let device = &after["recommended"]["memory"]["device"]["expected"];
        assert_eq!(&current["device"], device, "{}\n{patch}", case.name);
        assert_eq!(asked(directory.path(), &case, "--diff"), "", "{}\n{patch}", case.name);
        let config = fs::read_to_string(directory.path().join("ds.json")).expect("a config");
        let is_comment = |line: &&str| line.contains("//") || line.contains('#');
        let comments = |text: &str| text.lines().filter(is_comment).count();
        let (_, original) = case.files.last().expect("a config");
        assert_eq!(comments(&config), comments(original), "{}: {config}", case.name);
    }
}

#[test]
fn a_key_of_the_yaml_is_replaced_where_it_stands() {
    let all = cases();
    let case = all.iter().find(|case| case.name == "LLaMA-Factory's YAML").expect("a case");
    let patch = asked(written(case).path(), case, "--diff");
    assert!(
        patch.starts_with("train.yaml:10: disable_gradient_checkpointing false -> true\n")
            || patch.contains("\ntrain.yaml:10: disable_gradient_checkpointing false -> true\n"),
        "{patch}"
    );
    assert!(patch.contains("\n+disable_gradient_checkpointing: true  # none\n"), "{patch}");
    assert_eq!(patch.matches("\n+disable_gradient_checkpointing").count(), 1, "{patch}");
}

#[test]
fn a_job_whose_vllm_stays_awake_is_predicted_so() {
    let grpo = case("GRPO", &[("train.py", GRPO), ("ds.json", STRICT)], "");
    let directory = written(&grpo);
    let memory = ["memory", "train.py", "--gpus", "8xA100-80G", "--json"];
    let memory = zeropilot(directory.path(), &memory);
    let memory: Value = serde_json::from_slice(&memory.stdout).expect("JSON");
    let planned = plan(directory.path(), &grpo);
    assert_eq!(planned["current"]["device"], memory["device"]["expected"]);
    let patch = asked(directory.path(), &grpo, "--diff");
    assert!(patch.contains("train.py:2: add vllm_enable_sleep_mode = true\n"), "{patch}");
    let awake = Case { beside: "--vllm-sleep=false", ..grpo };
    let patch = asked(directory.path(), &awake, "--diff");
    assert!(!patch.contains("sleep"), "{patch}");
}

#[test]
fn a_script_with_its_own_config_is_changed_by_hand() {
    let own = case(
        "a config in the script",
        &[(
            "t.py",
            "import deepspeed\nfrom transformers import AutoModelForCausalLM\n\
            config = {'train_micro_batch_size_per_gpu': 1, 'bf16': {'enabled': True},\n    \
            'zero_optimization': {'stage': 3, 'offload_param': {'device': 'cpu'}}}\n\
            model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-32B')\n\
            model.gradient_checkpointing_enable()\n\
            engine, _, _, _ = deepspeed.initialize(model=model, config=config)\n",
        )],
        "--seq-len 16384 --host-ram 2TiB",
    );
    let text = asked(written(&own).path(), &own, "--output-format=human");
    assert!(text.contains("Change the job by hand"), "{text}");
    assert!(!text.contains("must turn on gradient checkpointing"), "{text}");
}

#[test]
fn keys_that_the_recommended_config_lacks_are_named() {
    let job = case(
        "axolotl's preset",
        &[
            (
                "train.yml",
                "base_model: meta-llama/Llama-3.1-8B\ndatasets:\n  - path: a\n    type: alpaca\nsequence_len: 65536\n\
                micro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\ngradient_checkpointing: true\n\
                liger_fused_linear_cross_entropy: true\nplugins:\n  - axolotl.integrations.liger.LigerPlugin\ndeepspeed: ds.json\n",
            ),
            (
                "ds.json",
                "{\"zero_optimization\": {\"stage\": 3, \"stage3_max_live_parameters\": 0, \"reduce_bucket_size\": \"auto\",\n  \
                \"stage3_prefetch_bucket_size\": \"auto\", \"stage3_param_persistence_threshold\": \"auto\",\n  \
                \"stage3_gather_16bit_weights_on_model_save\": true}, \"bf16\": {\"enabled\": true},\n  \
                \"train_micro_batch_size_per_gpu\": \"auto\", \"gradient_accumulation_steps\": \"auto\"}\n",
            ),
        ],
        "",
    );
    let text = asked(written(&job).path(), &job, "--output-format=human");
    assert!(text.contains("already uses the recommended strategy"), "{text}");
    assert!(text.contains("Its config also sets `stage3_max_live_parameters` in"), "{text}");
}

#[test]
fn what_no_patch_can_change_is_named_with_its_place() {
    let preset = case(
        "a preset of ms-swift",
        &[(
            "train.sh",
            "MICRO=1\nNPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-1.7B --tuner_type full --deepspeed zero3_offload \\\n  \
            --max_length 2048 --per_device_train_batch_size $MICRO --gradient_accumulation_steps 8 --torch_dtype bfloat16\n",
        )],
        "",
    );
    let directory = written(&preset);
    let text = asked(directory.path(), &preset, "--diff");
    assert!(
        text.contains(
            "train.sh:2: the DeepSpeed config (ms-swift zero3_offload) is not an editable file"
        ),
        "{text}"
    );
    let by_hand = |line: &str| {
        line.starts_with("train.sh:3: per_device_train_batch_size 1 -> ")
            && line.ends_with(" (by hand)")
    };
    assert!(text.lines().any(by_hand), "{text}");
    assert!(text.contains("The patch below is only part of the change"), "{text}");
    let output = zeropilot(directory.path(), &["plan", "gpt2", "--gpus", "A100-80G", "--diff"]);
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(problem.contains("gpt2 is a model"), "{problem}");
}
