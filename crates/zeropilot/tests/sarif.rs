//! `--output-format sarif` is SARIF, as the standard's own schema says.

mod bench;

use bench::Bench;
use serde_json::Value;

const SCHEMA: &str = include_str!("data/sarif-schema-2.1.0.json");

/// Findings with a fix, with another place, at the file as a whole, in a script; and none.
const FILES: [(&str, &str); 5] = [
    (
        "fix.json",
        r#"{"train_batch_size": 64, "gradient_accumulation_steps": 32, "memory_efficient_linear": true}"#,
    ),
    ("twice é.json", "{\"train_batch_size\": 8,\n \"train_batch_size\": 16}"),
    ("broken.json", "{\"train_batch_size\": "),
    ("good.json", r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#),
    (
        "train.sh",
        "export CUDA_VISIBLE_DEVICES=0\ndeepspeed --num_gpus 2 train.py --deepspeed_config fix.json\n",
    ),
];

#[test]
fn what_is_written_validates_against_the_official_schema() {
    // Two patterns of the standard have a bracket too many, which is a character to JavaScript and an error to others.
    let schema = SCHEMA.replace("{2}]?$", "{2}\\\\]?$");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let bench = Bench::new(&FILES);
    for arguments in [&["."][..], &["good.json"], &["train.sh"], &[".", "--lang", "zh"]] {
        let mut all = vec!["check", "--world-size", "4", "--output-format", "sarif"];
        all.extend(arguments);
        let run = bench.run(&all);
        let log: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let errors: Vec<String> = validator
            .iter_errors(&log)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{arguments:?}: {}", errors.join("\n"));
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.is_empty(), arguments == ["good.json"], "{arguments:?}");
    }
    let broken = serde_json::json!({"version": "2.1.0", "runs": [{"results": []}]});
    assert!(!validator.is_valid(&broken), "a run without a tool is no SARIF");
}
