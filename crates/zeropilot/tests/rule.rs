//! `zeropilot rule` as a user runs it.

use std::process::Command;

use serde_json::Value;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .env_clear()
        .args(arguments)
        .output()
        .expect("the binary runs");
    Run {
        code: output.status.code().expect("an exit code"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn pages(arguments: &[&str]) -> Vec<Value> {
    let run = run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&run.stdout).expect("one JSON array")
}

#[test]
fn a_page_shows_the_words_of_the_finding_its_example_yields() {
    let run = run(&["rule", "v01"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for piece in [
        "V01 removed-feature (error, DeepSpeed versions)",
        r#"    {"train_batch_size": 8, "amp": {"enabled": false}}"#,
        "error: DeepSpeed 0.19.8 has removed `amp` and rejects the key, even if it is off",
        "fix: remove the key (safe)",
        "DeepSpeed: 0.19.8\n",
        "read by: DeepSpeed itself, the HF Trainer, accelerate\n",
        "deepspeedai/DeepSpeed#8489",
    ] {
        assert!(run.stdout.contains(piece), "{piece}\n{}", run.stdout);
    }
}

#[test]
fn pages_come_in_chinese() {
    let run = run(&["rule", "B03", "--lang", "zh"]);
    assert!(run.stdout.contains("B03 micro-batch-zero（错误，batch 换算）"), "{}", run.stdout);
    assert!(run.stdout.contains("  建议：") && run.stdout.contains("读取方："), "{}", run.stdout);
    assert!(!run.stdout.contains("why:"));
}

#[test]
fn an_unknown_code_names_the_nearest_and_fails() {
    let one = run(&["rule", "B06"]);
    assert_eq!((one.code, one.stdout.as_str()), (2, ""));
    assert!(one.stderr.contains("there is no rule `B06`; did you mean B05?"), "{}", one.stderr);
    let by_name = run(&["rule", "unkown-key", "--lang", "zh"]);
    assert!(by_name.stderr.contains("是不是想查 K01"), "{}", by_name.stderr);
}

#[test]
fn all_pages_are_there_as_json_and_complete() {
    let pages = pages(&["rule", "--all", "--output-format", "json"]);
    assert!(pages.len() >= 60, "{}", pages.len());
    for page in &pages {
        for key in ["code", "name", "group", "severity", "summary"] {
            assert!(page[key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {page}");
        }
        for bad in page["bad"].as_array().expect("examples") {
            let findings = bad["findings"].as_array().expect("findings");
            assert!(!findings.is_empty(), "{page}");
            assert!(findings.iter().all(|found| found["help"].is_string()), "{page}");
        }
        let has_examples = !page["bad"].as_array().expect("examples").is_empty();
        let versions = page["versions"].as_array().expect("versions");
        assert_eq!(has_examples, !versions.is_empty(), "{page}");
    }
}

#[test]
fn sarif_says_the_same_as_the_manual() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ds.json");
    std::fs::write(&file, "{\"train_batch_size\": 8}").expect("a file");
    let log = run(&["check", file.to_str().expect("a path"), "--output-format", "sarif"]);
    let log: Value = serde_json::from_str(&log.stdout).expect("JSON");
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    for page in pages(&["rule", "--all", "--output-format", "json"]) {
        let rule = rules.iter().find(|rule| rule["id"] == page["code"]).expect("the rule");
        assert_eq!(rule["shortDescription"]["text"], page["summary"]);
        let joined = |key: &str| {
            let explanations = page["explanations"].as_array().expect("explanations").iter();
            explanations.map(|one| one[key].as_str().expect("text")).collect::<Vec<_>>().join("\n")
        };
        if rule.get("help").is_some() {
            assert_eq!(rule["help"]["text"], joined("help"));
            assert_eq!(rule["fullDescription"]["text"], joined("why"));
        }
    }
}

#[test]
fn rules_are_listed_in_a_line_each_and_found_by_name() {
    let all = run(&["rule"]);
    let listed = run(&["rules"]);
    assert_eq!((all.code, &all.stdout), (0, &listed.stdout));
    let group = run(&["rule", "b"]);
    let codes: Vec<&str> =
        group.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert!(codes.len() > 5 && codes.iter().all(|code| code.starts_with('B')), "{codes:?}");
    let named = run(&["rule", "model-before-arguments"]);
    let coded = run(&["rule", "Z01"]);
    assert_eq!((named.code, &named.stdout), (0, &coded.stdout));
    assert!(coded.stdout.starts_with("Z01 "), "{}", coded.stdout);
    assert_eq!(pages(&["rule", "B", "--json"]).len(), codes.len());
}

#[test]
fn examples_of_jobs_show_their_files() {
    let page = run(&["rule", "Z06"]).stdout;
    let shown = "    deepspeed --num_gpus 2 t.py\n    t.py:\n        engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n        engine.module.save_pretrained('out')\n    ds.json:\n";
    assert!(page.contains(shown), "{page}");
    let page = &pages(&["rule", "Z06", "--json"])[0];
    assert_eq!(page["bad"][0]["files"][1]["name"], "ds.json");
}
