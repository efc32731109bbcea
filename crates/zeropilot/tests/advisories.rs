//! Advisories as a user meets them: in the list, in `check`, in `doctor` and before a run.

mod bench;

use bench::{Bench, Run};
use serde_json::Value;

/// Gradient accumulation in ZeRO-2, which 0.17.6 to 0.18.2 get wrong.
const ACCUMULATING: &str = r#"{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {"stage": 2, "overlap_comm": false}
}
"#;

/// A directory with a config, a program and an environment with these packages.
fn bench(packages: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(&[
        ("ds.json", ACCUMULATING),
        ("env/bin/python", ""),
        ("env/bin/torchrun", "#!/bin/sh\nexit 0\n"),
        ("env/pyvenv.cfg", ""),
        ("env/lib/python3.12/site-packages/deepspeed/here", ""),
        ("t.py", "import deepspeed\nengine, *_ = deepspeed.initialize(config='ds.json')\n"),
    ]);
    for (name, version) in packages {
        let path = format!("env/lib/python3.12/site-packages/{name}-{version}.dist-info/METADATA");
        bench.write(&path, format!("Name: {name}\nVersion: {version}\n").as_bytes());
    }
    bench
}

fn findings(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let mut command = bench.command(arguments);
    command.env("VIRTUAL_ENV", bench.path().join("env"));
    let output = command.output().expect("the binary runs");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn all_are_listed_and_one_is_shown_in_full() {
    let bench = bench(&[]);
    let listed = bench.run(&["advisories"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (0, ""));
    assert!(listed.stdout.lines().count() > 40, "{}", listed.stdout);
    let hangs = bench.run(&["advisories", "hang", "--lang", "zh"]);
    assert!(
        hangs.stdout.contains("卡住") && !hangs.stdout.contains("deepspeed-7509"),
        "{}",
        hangs.stdout
    );
    let one = bench.run(&["advisories", "deepspeed-7509"]);
    for piece in [
        "deepspeed ≥ 0.17.6, < 0.18.3",
        "ZeRO stage 2",
        "issues/7665",
        "DeepSpeed 0.17.6 but not on 0.18.9",
    ] {
        assert!(one.stdout.contains(piece), "{piece}: {}", one.stdout);
    }
    let json = bench.run(&["advisories", "deepspeed-7509", "--json"]);
    let entries: Vec<Value> = serde_json::from_str(&json.stdout).expect("one JSON array");
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["kind"], &entries[0]["affects"][0]["fixed"]),
        (&"silently-wrong".into(), &"0.18.3".into())
    );
    assert_eq!(bench.run(&["advisories", "no such thing"]).code, 1);
}

#[test]
fn check_compares_with_what_is_installed_or_named() {
    let check = ["check", "ds.json", "--output-format", "concise", "--world-size", "2"];
    let affected = findings(&bench(&[("deepspeed", "0.18.2")]), &check);
    assert!(
        affected.iter().any(|line| line.contains("V11") && line.contains("deepspeed-7509")),
        "{affected:?}"
    );
    let fixed = findings(&bench(&[("deepspeed", "0.19.8")]), &check);
    assert!(!fixed.iter().any(|line| line.contains("V11")), "{fixed:?}");
    // 0.18.2 is judged by the schema of 0.18.9, and not by its defects.
    let named = bench(&[]).run(&[&check[..], &["--deepspeed-version", "0.18.2"]].concat());
    assert!(named.stdout.contains("deepspeed-7509") && named.code == 1, "{}", named.shown());
    let silenced = bench(&[])
        .run(&[&check[..], &["--deepspeed-version", "0.18.2", "--ignore", "V11"]].concat());
    assert_eq!(silenced.code, 0, "{}", silenced.shown());
}

/// All of these are judged by the schema of 0.19.8.
#[test]
fn advisories_are_those_of_the_exact_version() {
    let bench = bench(&[]);
    let small = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_use_all_reduce_for_fetch_params": true}}"#;
    bench.write("ds.json", small.as_bytes());
    let named = |version: &str| {
        let check = ["check", "ds.json", "--output-format", "concise", "--world-size", "2"];
        bench.run(&[&check[..], &["--deepspeed-version", version]].concat()).stdout
    };
    // Fixed in 0.19.4 (deepspeedai/DeepSpeed#8158).
    assert!(named("0.19.3").contains("deepspeed-8158"), "{}", named("0.19.3"));
    assert!(!named("0.19.4").contains("deepspeed-8158"), "{}", named("0.19.4"));
    let muon = r#"{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}}"#;
    bench.write("ds.json", muon.as_bytes());
    // Fixed in 0.19.7 (deepspeedai/DeepSpeed#8442).
    assert!(named("0.19.4").contains("deepspeed-8442"), "{}", named("0.19.4"));
    assert!(!named("0.19.7").contains("deepspeed-8442"), "{}", named("0.19.7"));
}

#[test]
fn a_job_decides_what_its_config_leaves_open() {
    let bench = bench(&[("deepspeed", "0.19.2"), ("torch", "2.9.0"), ("peft", "0.18.0")]);
    let stage_3 = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#;
    bench.write("ds.json", stage_3.as_bytes());
    let lines = findings(&bench, &["check", "ds.json", "--output-format", "concise"]);
    assert!(lines.iter().any(|line| line.contains("may apply")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("deepspeed-8073")), "{lines:?}");
    let script = |wrapped: &str| {
        format!(
            "import deepspeed\nfrom peft import get_peft_model\n{wrapped}engine, *_ = deepspeed.initialize(model=model, config='ds.json')\n"
        )
    };
    bench.write("train.sh", b"deepspeed --num_gpus 2 t.py\n");
    bench.write("t.py", script("model = get_peft_model(model, config)\n").as_bytes());
    let lines = findings(&bench, &["check", "train.sh", "--output-format", "concise"]);
    assert!(lines.iter().any(|line| line.contains("deepspeed-8073")), "{lines:?}");
    bench.write("t.py", script("").as_bytes());
    let lines = findings(&bench, &["check", "train.sh", "--output-format", "concise"]);
    assert!(!lines.iter().any(|line| line.contains("deepspeed-8073")), "{lines:?}");
}

#[test]
fn doctor_says_which_defects_the_installed_versions_have() {
    let bench = bench(&[("deepspeed", "0.18.2"), ("torch", "2.7.1")]);
    let named = |arguments: &[&str]| -> Vec<(String, String)> {
        let run = bench.run(arguments);
        let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let findings = answer["findings"].as_array().expect("a list").iter();
        findings.map(|one| (text(&one["name"]), text(&one["message"]))).collect()
    };
    let with_config = named(&["doctor", "ds.json", "--python", "env", "--json"]);
    let is_met = |(name, message): &(String, String)| {
        name == "known-defect" && message.contains("deepspeed-7509")
    };
    assert!(with_config.iter().any(is_met), "{with_config:?}");
    let without = named(&["doctor", "--python", "env", "--json"]);
    assert!(without.iter().any(|(name, _)| name == "known-defects"), "{without:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_is_warned_and_started() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = bench(&[("deepspeed", "0.18.2"), ("torch", "2.7.1")]);
    let torchrun = bench.path().join("env/bin/torchrun");
    std::fs::set_permissions(torchrun, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let launch = ["torchrun", "--nproc_per_node", "2", "t.py", "--deepspeed", "ds.json"];
    let arguments = [&["run", "--record", "record", "--"][..], &launch].concat();
    let mut command = bench.command(&arguments);
    command.env("PATH", bench.path().join("env/bin"));
    let run = Run::from(command.output().expect("the binary runs"));
    assert!(run.stderr.contains("deepspeed-7509"), "{}", run.shown());
    assert_eq!(run.code, 0, "{}", run.shown());
}
