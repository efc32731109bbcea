//! What engines assert after they have loaded a config, in `deepspeed.initialize`, version by version.
//!
//! Configs that load are drawn at random: from those of `engine_parity`, and from features people
//! combine. Every version starts them on one CPU rank. Whatever it refuses must have an error for that
//! version, and whatever has one must not run. `ZEROPILOT_START_CASES` sets how many per version,
//! `ZEROPILOT_PARITY_VERSION` picks one version.

#[path = "engine_start_parity/features.rs"]
mod features;
#[path = "../../zeropilot_config/tests/engine_parity/generator.rs"]
mod generator;
#[path = "../../zeropilot_config/tests/engine_parity/tree.rs"]
mod tree;

use generator::Generator;
use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Report, Settings, Severity, Verdict, check};
use zeropilot_oracle::{Oracle, Random};

/// What an engine says on a CPU, or where a package is not installed, and would not say on a GPU that has everything.
const NOT_HERE: &[(&str, &str)] = &[
    ("No module named", "a package that the config asks for is not installed"),
    ("not been implemented on CPU backend", "fused Lamb and quantizers exist only on GPUs"),
    ("'CROSS_SIZE'", "the launcher sets it for checkpoint writers"),
    ("Type fp16 is not supported", "0.14 has no fp16 on CPUs"),
    ("Please install", "a package that the config asks for is not installed"),
    ("total_layer_num", "random layerwise token dropping needs a model that is built for it"),
    ("variable 'Mu", "mup is not installed"),
    ("Unable to import apex", "apex is not installed"),
    ("unable to locate", "an operator that a CPU does not have"),
    ("libaio", "NVMe needs libaio"),
    ("async_io", "NVMe needs libaio"),
    ("CUDA", "needs a GPU"),
    ("not supported on your device", "needs another device"),
    ("not supported by your current accelerator", "needs another device"),
    ("can only be used with", "needs another device"),
    ("NoneType' object has no attribute 'barrier'", "a backend that CPUs do not have"),
    ("Permission denied", "a path of another machine"),
    ("Read-only file system", "a path of another machine"),
    ("No such file or directory", "a path of another machine"),
];

/// Errors that a CPU rank outlives, and why.
const OUTLIVED: &[(&str, &str)] = &[
    ("X01", "what groups of several ranks share is not asked of one"),
    ("F15", "without a GPU all parameters are on the CPU already"),
];

fn settings(version: EngineVersion, config: &str) -> Settings {
    // What `start_server.py` brings where the config has no optimizer.
    let parsed: Value = serde_json::from_str(config).unwrap_or_default();
    let zero = &parsed["zero_optimization"];
    let is_offloaded = matches!(zero["offload_optimizer"]["device"].as_str(), Some("cpu" | "nvme"))
        || zero["cpu_offload"] == true;
    let brought = if is_offloaded { "DeepSpeedCPUAdam" } else { "torch.optim.AdamW" };
    let mut settings = Settings {
        version,
        world_size: Some(1),
        front_end: Some(FrontEnd::DeepSpeed),
        ..Settings::default()
    };
    if parsed.get("optimizer").is_none() {
        settings.script.client_optimizer = Some(brought.to_owned());
    }
    settings
}

fn errors(report: &Report) -> Vec<&'static str> {
    let found = report.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    found.map(|found| found.rule.code).collect()
}

/// How an engine's answer contradicts ours, or `None`.
fn contradiction(report: &Report, answer: &Value) -> Option<String> {
    let errors = errors(report);
    let message = answer["message"].as_str().unwrap_or_default();
    if answer["runs"] == true {
        let held: Vec<_> = errors
            .into_iter()
            .filter(|code| !OUTLIVED.iter().any(|(outlived, _)| outlived == code))
            .collect();
        return (!held.is_empty()).then(|| format!("runs, and we report {held:?}"));
    }
    let is_start = answer["phase"] == "initialize";
    let is_here = !NOT_HERE.iter().any(|(part, _)| message.contains(part));
    (is_start && is_here && errors.is_empty())
        .then(|| format!("refuses to start: {} {message}", answer["error"]))
}

#[test]
fn what_refuses_to_start_has_an_error_and_what_has_one_does_not_start() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let files = zeropilot_oracle::corpus().unwrap_or_default();
    let seed = zeropilot_oracle::seed();
    let wanted = zeropilot_oracle::setting("ZEROPILOT_START_CASES").unwrap_or(8);
    let only = std::env::var("ZEROPILOT_PARITY_VERSION").ok();
    let mut wrong = Vec::new();
    for version in EngineVersion::all() {
        if only.as_ref().is_some_and(|only| only != version.name()) {
            continue;
        }
        let mut generator = Generator::new(seed, &files);
        let mut random = Random::new(seed);
        let mut cases = Vec::new();
        while cases.len() < wanted {
            let text = if random.one_in(3) {
                features::tamed(generator.config(version.schema()))
            } else {
                Some(features::config(&mut random))
            };
            let Some(text) = text else { continue };
            let report = check(text.as_bytes(), &settings(version, &text));
            if report.verdict == Verdict::Accept {
                cases.push((text, report));
            }
        }
        let question = |(text, _): &(String, Report)| json!({"text": text, "world_size": 1});
        let questions = cases.iter().map(question).collect();
        let mut oracle = Oracle::start_with_engine(&home, "start_server.py", version.name());
        for ((text, report), answer) in cases.iter().zip(oracle.answers(questions)) {
            if let Some(how) = contradiction(report, &answer) {
                wrong.push(format!("{version}: {how}\n    {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} contradict:\n{}", wrong.len(), wrong.join("\n"));
}
