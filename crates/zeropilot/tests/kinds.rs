//! `zeropilot check` says what a file is: jobs are read as jobs, and what is no config gets no finding and no fix.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

struct Run {
    code: i32,
    text: String,
}

fn check(directory: &TempDir, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env_clear()
        .arg("check")
        .args(arguments)
        .output()
        .expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    Run {
        code: output.status.code().expect("an exit code"),
        text: String::from_utf8(text).expect("text"),
    }
}

fn directory(files: &[(String, String)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }
    directory
}

fn one(name: &str, text: &str) -> TempDir {
    directory(&[(name.to_owned(), text.to_owned())])
}

const DS: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 9}}"#;

/// Each framework's file is read as a job: the mistake in the config it names is reported.
#[test]
fn files_of_frameworks_are_read_as_jobs() {
    for (name, text) in [
        ("lf.yaml", "model_name_or_path: m\nstage: sft\ndeepspeed: ds.json\n"),
        ("ax.yml", "base_model: m\nsequence_len: 512\ndeepspeed: ds.json\n"),
        (
            "acc.yaml",
            "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n",
        ),
        (
            "train.py",
            "from transformers import TrainingArguments\nTrainingArguments(output_dir='o', deepspeed='ds.json')\n",
        ),
        ("train.sh", "deepspeed --num_gpus 2 train.py --deepspeed ds.json\n"),
    ] {
        let files = [(name.to_owned(), text.to_owned()), ("ds.json".to_owned(), DS.to_owned())];
        let directory = directory(&files);
        let run = check(&directory, &[name]);
        assert_eq!(run.code, 1, "{name}: {}", run.text);
        assert!(
            run.text.contains("zero_optimization.stage") || run.text.contains("stage"),
            "{name}: {}",
            run.text
        );
        assert!(run.text.contains("ds.json"), "{name}: {}", run.text);
    }
}

#[test]
fn a_file_that_is_something_else_is_named_and_left_alone() {
    for (name, text, is) in [
        ("config.json", r#"{"model_type": "llama", "hidden_size": 4096}"#, "model"),
        (
            "package.json",
            r#"{"name": "page", "version": "1.0.0", "type": "module"}"#,
            "not a DeepSpeed config",
        ),
        ("compose.yaml", "services:\n  web:\n    image: nginx\n", "not a DeepSpeed config"),
    ] {
        let directory = one(name, text);
        for arguments in [&[name][..], &[name, "--fix", "--unsafe-fixes"], &[name, "--diff"]] {
            let run = check(&directory, arguments);
            assert!(run.text.contains(is), "{name}: {}", run.text);
            assert!(!run.text.contains("error["), "{name}: {}", run.text);
        }
        assert_eq!(fs::read_to_string(directory.path().join(name)).expect("the file"), text);
    }
}

/// JSON and YAML as repositories have them, in variations: none has a finding, none is changed.
#[test]
fn two_hundred_unrelated_files_have_no_finding_and_no_fix() {
    let mut files = Vec::new();
    for number in 0..10 {
        for (name, text) in unrelated(number) {
            files.push((format!("{number}/{name}"), text));
        }
    }
    assert!(files.len() >= 200, "{}", files.len());
    let directory = directory(&files);
    for arguments in [&["."][..], &[".", "--fix", "--unsafe-fixes"]] {
        let run = check(&directory, arguments);
        assert!(!run.text.contains("error[") && !run.text.contains("warning["), "{}", run.text);
    }
    for (name, _) in &files {
        let run = check(&directory, &[name, "--fix", "--unsafe-fixes"]);
        assert!(
            !run.text.contains("error[") && !run.text.contains("warning["),
            "{name}: {}",
            run.text
        );
    }
    for (name, text) in &files {
        let now = fs::read_to_string(directory.path().join(Path::new(name))).expect("the file");
        assert_eq!(now, *text, "{name}");
    }
}

fn unrelated(n: usize) -> Vec<(&'static str, String)> {
    let s = |text: &str| text.replace("NN", &n.to_string());
    vec![
        (
            "package.json",
            s(
                r#"{"name": "pNN", "version": "0.NN.0", "scripts": {"build": "tsc"}, "dependencies": {"left-pad": "^1.NN"}}"#,
            ),
        ),
        (
            "tsconfig.json",
            s(r#"{"compilerOptions": {"target": "esNN", "strict": true}, "include": ["src"]}"#),
        ),
        (
            "config.json",
            s(
                r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": NN, "num_hidden_layers": 2}"#,
            ),
        ),
        (
            "generation_config.json",
            s(r#"{"bos_token_id": NN, "do_sample": true, "temperature": 0.NN}"#),
        ),
        (
            "tokenizer_config.json",
            s(
                r#"{"add_bos_token": true, "model_max_length": NN, "tokenizer_class": "LlamaTokenizer"}"#,
            ),
        ),
        (
            "trainer_state.json",
            s(
                r#"{"global_step": NN, "log_history": [{"loss": 1.NN, "learning_rate": 1e-5}], "train_batch": 1}"#,
            ),
        ),
        (
            "adapter_config.json",
            s(
                r#"{"base_model_name_or_path": "m", "peft_type": "LORA", "r": NN, "target_modules": ["q_proj"]}"#,
            ),
        ),
        (
            "model.safetensors.index.json",
            s(r#"{"metadata": {"total_size": NN}, "weight_map": {"a": "b.safetensors"}}"#),
        ),
        (
            "dataset_info.json",
            s(r#"{"alpaca": {"file_name": "aNN.json", "columns": {"prompt": "instruction"}}}"#),
        ),
        ("data.json", s(r#"[{"instruction": "count to NN", "output": "1"}]"#)),
        (
            "settings.json",
            s(r#"{"editor.tabSize": NN, "python.analysis.typeCheckingMode": "basic"}"#),
        ),
        ("compose.yaml", s("services:\n  web:\n    image: nginx:NN\n    ports: ['80:80']\n")),
        (
            "ci.yml",
            s(
                "name: ci\non: push\njobs:\n  build:\n    runs-on: ubuntu-NN\n    steps:\n      - run: make\n",
            ),
        ),
        ("mkdocs.yml", s("site_name: sNN\nnav:\n  - Home: index.md\n")),
        (
            "deployment.yaml",
            s(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: dNN\nspec:\n  replicas: NN\n",
            ),
        ),
        (
            "job.yaml",
            s(
                "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: trainNN\nspec:\n  template:\n    spec:\n      containers: []\n",
            ),
        ),
        (
            "environment.yml",
            s("name: eNN\nchannels: [conda-forge]\ndependencies:\n  - python=3.NN\n"),
        ),
        (
            "pre-commit.yaml",
            s("repos:\n  - repo: https://example.org/x\n    rev: vNN\n    hooks:\n      - id: x\n"),
        ),
        (
            "hydra.yaml",
            s(
                "model:\n  name: mNN\noptimizer:\n  name: adam\n  lr: 1e-NN\ntrainer:\n  max_steps: NN\n",
            ),
        ),
        ("openapi.yaml", s("openapi: 3.0.NN\ninfo:\n  title: t\n  version: '1'\npaths: {}\n")),
        ("fsdp.yaml", s("fsdp: full_shard\nbatch: NN\nlr: 0.1\n")),
    ]
}
