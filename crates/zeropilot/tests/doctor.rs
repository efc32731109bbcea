//! `zeropilot doctor` as a user runs it, in environments made for it.

mod bench;

use bench::Bench;
use serde_json::Value;

const OFFLOADED: &str = r#"{
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/no/such/disk"}
  }
}
"#;

/// An environment with these packages.
fn environment(packages: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(&[
        ("ds.json", OFFLOADED),
        ("env/bin/python", ""),
        ("env/pyvenv.cfg", ""),
        ("env/lib/python3.12/site-packages/here", ""),
    ]);
    for (name, version) in packages {
        let path = format!("env/lib/python3.12/site-packages/{name}-{version}.dist-info/METADATA");
        bench.write(&path, format!("Name: {name}\nVersion: {version}\n").as_bytes());
    }
    bench
}

fn findings(bench: &Bench, arguments: &[&str]) -> (i32, Vec<String>, Value) {
    let mut all = vec!["doctor", "--python", "env", "--json"];
    all.extend(arguments);
    let run = bench.run(&all);
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let name = |finding: &Value| finding["name"].as_str().expect("a name").to_owned();
    let names = answer["findings"].as_array().expect("a list").iter().map(name).collect();
    (run.code, names, answer)
}

#[test]
fn what_a_config_needs_and_the_machine_lacks_is_found() {
    let bench = environment(&[("deepspeed", "0.19.8"), ("torch", "2.7.1")]);
    let (code, names, answer) = findings(&bench, &["ds.json"]);
    assert_eq!(code, 1);
    // The path is empty here, so that no compiler and no ninja can be found.
    for expected in ["no-compiler", "no-ninja", "no-path"] {
        assert!(names.iter().any(|name| name == expected), "{expected}: {names:?}");
    }
    assert_eq!(answer["machine"]["packages"]["deepspeed"], "0.19.8");
    assert!(!names.iter().any(|name| name == "no-package"), "{names:?}");
}

#[test]
fn missing_packages_come_with_the_command_that_installs_them() {
    let bench = environment(&[("torch", "2.7.1")]);
    let (code, names, answer) = findings(&bench, &[]);
    assert_eq!(code, 1);
    assert_eq!(names[0], "no-package");
    assert_eq!(answer["findings"][0]["command"], "pip install deepspeed");
    // Only a config is read by it.
    let reads = |arguments: &[&str]| findings(&bench, arguments).2["findings"].to_string();
    assert!(!reads(&[]).contains("reads the config"));
    assert!(reads(&["ds.json"]).contains("DeepSpeed reads the config."));
}

#[test]
fn a_config_that_cannot_be_read_is_named_and_nothing_else_is_looked_at() {
    let bench = environment(&[("torch", "2.7.1")]);
    bench.write("broken.json", b"{\"zero_optimization\": {\"stage\": 3");
    bench.write("binary.json", b"\xff\xfe\x00\x01");
    for name in ["broken.json", "binary.json", "env"] {
        for language in ["en", "zh"] {
            let run = bench.run(&["doctor", name, "--python", "env", "--lang", language]);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
            assert!(run.stderr.contains(name), "{}", run.stderr);
        }
    }
}

#[test]
fn people_read_it_in_their_language() {
    let bench = environment(&[("deepspeed", "0.19.8"), ("torch", "2.7.1")]);
    let run = bench.run(&["doctor", "ds.json", "--python", "env", "--lang", "zh"]);
    assert!(
        run.stdout.contains("错误[no-path]：`nvme_path` /no/such/disk 不存在"),
        "{}",
        run.stdout
    );
    let run = bench.run(&["doctor", "ds.json", "--python", "env"]);
    assert!(
        run.stdout.contains("error[no-path]: `nvme_path` /no/such/disk does not exist"),
        "{}",
        run.stdout
    );
    let run = bench.run(&["doctor", "missing.json"]);
    assert_eq!(run.code, 2);
}
