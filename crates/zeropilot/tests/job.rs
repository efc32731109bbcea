//! `zeropilot check` of launch scripts, as a user runs it.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = r"#!/bin/bash
GPUS=4
export CUDA_VISIBLE_DEVICES=2,3
deepspeed --num_gpus $GPUS train.py \
  --deepspeed conf/ds.json \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \
  --bf16 True --learning_rate $LR --lr_scheduler_type cosine
";

const CONFIG: &str = r#"{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2}
}
"#;

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }
    directory
}

fn run(directory: &TempDir, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env_clear()
        .args(arguments)
        .output()
        .expect("the binary runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    (output.status.code().expect("an exit code"), stdout)
}

#[test]
fn a_script_is_judged_together_with_the_config_it_points_to() {
    let directory = directory(&[("train.sh", SCRIPT), ("conf/ds.json", CONFIG)]);
    let (code, stdout) = run(&directory, &["check", "train.sh", "--output-format", "json"]);
    assert_eq!(code, 1);
    let files: Vec<Value> = serde_json::from_str(&stdout).expect("JSON");
    let codes = |file: &Value| -> Vec<String> {
        let found = file["diagnostics"].as_array().expect("findings").iter();
        found.map(|found| found["code"].as_str().expect("a code").to_owned()).collect()
    };
    assert_eq!(files[0]["file"], "train.sh");
    assert_eq!(codes(&files[0]), ["L02"]);
    assert_eq!(files[0]["diagnostics"][0]["span"]["line"], 3);
    assert_eq!(files[1]["file"], "conf/ds.json");
    assert_eq!(codes(&files[1]), ["A08"]);
    assert_eq!(
        (&files[1]["world_size"], &files[1]["world_size_source"]),
        (&4.into(), &"given".into())
    );
    assert_eq!(files[1]["front_end"]["name"], "hf-trainer");
}

#[test]
fn what_the_script_does_not_settle_is_said_and_not_guessed() {
    let script = "torchrun --nproc_per_node $N train.py --deepspeed conf/ds.json --max_steps $S\n";
    let directory = directory(&[("a.sh", script), ("conf/ds.json", CONFIG)]);
    let (code, stdout) = run(&directory, &["check", "a.sh"]);
    assert_eq!(code, 0, "{stdout}");
    let head = "a.sh: `torchrun` starts a number of ranks that the script does not settle with conf/ds.json (known only at run time: max_steps)\n";
    assert!(stdout.starts_with(head), "{stdout}");
    let (_, chinese) = run(&directory, &["check", "a.sh", "--lang", "zh"]);
    assert!(chinese.contains("若干进程（脚本里看不出个数）"), "{chinese}");
}

#[test]
fn directories_are_searched_for_scripts_if_asked() {
    let files = [("jobs/a.slurm", SCRIPT), ("jobs/conf/ds.json", CONFIG), ("jobs/x.sh", "ls\n")];
    let directory = directory(&files);
    let (_, stdout) = run(&directory, &["check", "--job", "jobs", "--output-format", "concise"]);
    assert!(stdout.contains("jobs/a.slurm:3:29: L02"), "{stdout}");
    assert!(stdout.contains("jobs/conf/ds.json:2:37: A08"), "{stdout}");
}

#[test]
fn front_ends_in_yaml_are_followed() {
    let llama_factory = "deepspeed: ds.json\nper_device_train_batch_size: 1\nbf16: true\n";
    let accelerate = "num_processes: 8\nmixed_precision: bf16\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n";
    let directory = directory(&[
        (
            "a.sh",
            "FORCE_TORCHRUN=1 llamafactory-cli train l.yaml\naccelerate launch --config_file a.yaml t.py\n",
        ),
        ("l.yaml", llama_factory),
        ("a.yaml", accelerate),
        ("ds.json", CONFIG),
    ]);
    let (_, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    let mismatch = "ds.json:2:37: A08 `train_micro_batch_size_per_gpu` is 4, but the training argument `per_device_train_batch_size` is 1\n";
    assert!(stdout.contains(mismatch), "{stdout}");
    let (_, human) = run(&directory, &["check", "a.sh"]);
    assert!(human.contains("`accelerate launch` starts 8 ranks with ds.json"), "{human}");
}

#[test]
fn a_config_that_does_not_exist_is_an_error() {
    let directory =
        directory(&[("a.sh", "deepspeed --num_gpus 2 t.py --deepspeed_config no.json\n")]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert_eq!((code, stdout.as_str()), (1, "a.sh:1:48: L12 there is no file `no.json`\n"));
}

#[test]
fn rules_are_selected_and_ignored_by_code_or_letter() {
    let config = "{\"train_batch_size\": 8, \"nobody\": 1, \"wall_clock_breakdown\": true}";
    let directory = directory(&[("ds.json", config)]);
    let told = |arguments: &[&str]| {
        let mut all = vec!["check", "ds.json", "--output-format", "concise"];
        all.extend(arguments);
        let (code, stdout) = run(&directory, &all);
        let codes = stdout.lines().filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
        (code, codes.collect::<Vec<_>>())
    };
    assert_eq!(told(&[]), (1, vec!["K01".to_owned(), "K28".to_owned()]));
    assert_eq!(told(&["--ignore", "K01"]), (0, vec!["K28".to_owned()]));
    assert_eq!(told(&["--select", "k01,B"]), (1, vec!["K01".to_owned()]));
    assert_eq!(told(&["--ignore", "K", "--select", "K28"]), (0, vec!["K28".to_owned()]));
    assert_eq!(told(&["--select", "Q"]).0, 2);
}
