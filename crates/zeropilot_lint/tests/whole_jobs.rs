//! Whole jobs: correct ones get no error, and of those with one mistake each nearly all are found.
//!
//! A job with a mistake is a correct one with one change, so that each finding is that of the change. Configs of correct
//! jobs that bare DeepSpeed reads are also loaded by the real engine.

#![cfg(feature = "job")]

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::Outside;
use zeropilot_lint::job::{JobReport, judge};
use zeropilot_lint::{Outcome, Settings, Severity};
use zeropilot_oracle::Oracle;

/// Files by name; the launch script has none.
type Job = BTreeMap<String, String>;

/// A change that makes a correct job a wrong one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    /// The rule that must report it.
    code: String,
    job: String,
    file: String,
    old: String,
    new: String,
}

/// Their ranks share samples, and the loader is told by a unit how many groups there are.
const SHARING: [&str; 4] = ["model-parallel-unit", "pipeline", "sequence-mesh", "ulysses"];

fn jobs() -> BTreeMap<String, Job> {
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut jobs = BTreeMap::<String, Job>::new();
    let (mut part, mut place): (Option<String>, Option<(String, String)>) = (None, None);
    for line in include_str!("whole_jobs/correct.txt").lines() {
        if let Some(name) = line.strip_prefix('@') {
            parts.push((format!("<{name}>"), String::new()));
            part = Some(name.to_owned());
        } else if let Some(name) = line.strip_prefix("=== ") {
            part = None;
            place = Some((name.to_owned(), String::new()));
            assert!(jobs.insert(name.to_owned(), Job::new()).is_none(), "{name} is there twice");
        } else if let (Some(file), Some((_, open))) = (line.strip_prefix("--- "), &mut place) {
            *open = file.to_owned();
        } else if part.is_some()
            && let Some((_, text)) = parts.last_mut()
        {
            text.push_str(line);
            text.push('\n');
        } else if let Some((job, file)) = &place {
            let text = jobs.entry(job.clone()).or_default().entry(file.clone()).or_default();
            let whole = parts.iter().find(|(name, _)| name == line);
            text.push_str(whole.map_or(line, |(_, text)| text.trim_end()));
            text.push('\n');
        }
    }
    jobs
}

fn judged(job: &Job) -> JobReport {
    let settings = Settings::default();
    judge(&job[""], &Outside::default(), &settings, &|name| job.get(name).cloned())
}

fn codes(report: &JobReport) -> BTreeSet<&'static str> {
    let found = report.files.iter().flat_map(|file| &file.report.diagnostics);
    found.map(|found| found.rule.code).collect()
}

#[test]
fn correct_jobs_get_no_error() {
    let jobs = jobs();
    assert!(jobs.len() >= 60, "{}", jobs.len());
    let mut wrong = Vec::new();
    for (name, job) in &jobs {
        let report = judged(job);
        assert!(!report.job.launches.is_empty(), "{name} starts nothing");
        for file in &report.files {
            let found = &file.report.diagnostics;
            let alarms = found.iter().filter(|found| found.severity != Severity::Note);
            wrong.extend(alarms.map(|found| format!("{name}: {}", found.rule.code)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_are_found() {
    let jobs = jobs();
    let mistakes: Vec<Mistake> = include_str!("whole_jobs/mistakes.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(mistakes.len() >= 60, "{}", mistakes.len());
    let mut missed = Vec::new();
    for mistake in &mistakes {
        let mut job = jobs[&mistake.job].clone();
        assert!(!codes(&judged(&job)).contains(mistake.code.as_str()), "{mistake:?}");
        let text = job.get_mut(&mistake.file).unwrap_or_else(|| panic!("{mistake:?}"));
        assert!(text.contains(&mistake.old), "{mistake:?}");
        *text = text.replacen(&mistake.old, &mistake.new, 1);
        let found = codes(&judged(&job));
        if !found.contains(mistake.code.as_str()) {
            missed.push(format!("{} in {}: {found:?}", mistake.code, mistake.job));
        }
    }
    let found = mistakes.len() - missed.len();
    println!("{found} of {} mistakes found, but not\n{}", mistakes.len(), missed.join("\n"));
    assert!(found >= 54 && found * 10 >= mistakes.len() * 9, "{}", missed.join("\n"));
}

/// What nothing is found in, the engine loads.
#[test]
fn the_engine_loads_the_configs_of_correct_jobs() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut questions = Vec::new();
    let alone = jobs().into_iter().filter(|(name, _)| !SHARING.contains(&name.as_str()));
    for (name, job) in alone {
        for file in judged(&job).files.iter().filter(|file| file.is_config) {
            let text = file.name.as_ref().and_then(|name| job.get(name));
            let is_bare = file.report.front_end == FrontEnd::DeepSpeed;
            if let Some(text) = text.filter(|_| is_bare && file.report.outcome() == Outcome::Runs) {
                let ranks = file.report.world.size;
                questions.push((name.clone(), json!({"text": text, "world_size": ranks})));
            }
        }
    }
    assert!(questions.len() >= 30, "only {}", questions.len());
    let asked = questions.iter().map(|(_, question)| question.clone()).collect();
    let answers = Oracle::start(&home, "verdict_server.py").answers(asked);
    for ((name, question), answer) in questions.iter().zip(answers) {
        assert_eq!(answer["accept"], Value::Bool(true), "{name}: {question} → {answer}");
    }
    println!("{} configs loaded", questions.len());
}

/// Another error of the config is no reason to tell of a mistake in the script only after that is fixed.
#[test]
fn an_error_of_the_config_hides_no_mistake_of_the_script() {
    let script = "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nloss = engine(batch)\nloss = loss / args.gradient_accumulation_steps\nengine.backward(loss)\nengine.step()\n";
    let of = |config: &str| {
        let job = Job::from([
            (String::new(), "deepspeed --num_gpus 2 t.py --deepspeed_config ds.json\n".to_owned()),
            ("t.py".to_owned(), script.to_owned()),
            ("ds.json".to_owned(), config.to_owned()),
        ]);
        codes(&judged(&job))
    };
    let found = of(
        r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 5}}"#,
    );
    assert!(found.contains("B07") && found.len() == 2, "{found:?}");
    let open = of(r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": "8"}"#);
    assert!(!open.contains("B07"), "the steps are what is refused: {open:?}");
}
