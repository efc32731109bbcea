//! Fixes where a front end reads the file: the real one takes what is fixed. What engines do with
//! fixed files is asked in `claims.rs`.

#![allow(dead_code, reason = "the shared parts serve other tests too")]

#[path = "../../zeropilot_config/tests/front_end_parity/arguments.rs"]
mod arguments;
#[path = "../../zeropilot_config/tests/front_end_parity/case.rs"]
mod case;
#[path = "../../zeropilot_config/tests/front_end_parity/configs.rs"]
mod configs;
#[path = "../../zeropilot_config/tests/front_end_parity/tree.rs"]
mod tree;

use case::Case;
use zeropilot_config::front_end::{Arguments, FrontEnd, ModelFacts, TrainerArguments};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_lint::{RULES, Settings, Verdict, check, fix};
use zeropilot_oracle::Oracle;

/// An example after its fixes, with what is known around it.
struct Fixed {
    code: &'static str,
    before: &'static str,
    after: String,
    settings: Settings,
}

/// Every example that a front end reads, where its fixes lead to a file we accept.
fn fixed_examples() -> Vec<Fixed> {
    let examples = RULES.iter().flat_map(|rule| rule.examples.iter().map(move |one| (rule, one)));
    examples
        .filter(|(_, example)| !example.is_job && example.front_end != FrontEnd::DeepSpeed)
        .filter_map(|(rule, example)| {
            let settings = example.settings();
            let finds = |text: &str| {
                let report = check(text.as_bytes(), &settings);
                report.diagnostics.iter().any(|found| found.rule.code == rule.code)
            };
            let is_meant = settings.version == EngineVersion::NEWEST;
            let fixed =
                is_meant.then(|| fix(example.config.as_bytes(), &settings, true)).flatten()?;
            assert!(!finds(&fixed.text), "{} stays in {}", rule.code, fixed.text);
            let is_accepted = fixed.report.verdict == Verdict::Accept;
            is_accepted.then_some(Fixed {
                code: rule.code,
                before: example.config,
                after: fixed.text,
                settings,
            })
        })
        .collect()
}

/// What the script says, completed by what it would be if the script said nothing.
fn completed(arguments: &Arguments) -> Arguments {
    let defaults = Arguments::library_defaults();
    let known = &arguments.trainer;
    let usual = &defaults.trainer;
    let trainer = TrainerArguments {
        per_device_train_batch_size: known
            .per_device_train_batch_size
            .or(usual.per_device_train_batch_size),
        gradient_accumulation_steps: known
            .gradient_accumulation_steps
            .or(usual.gradient_accumulation_steps),
        max_grad_norm: known.max_grad_norm.or(usual.max_grad_norm),
        learning_rate: known.learning_rate.or(usual.learning_rate),
        adam_beta1: known.adam_beta1.or(usual.adam_beta1),
        adam_beta2: known.adam_beta2.or(usual.adam_beta2),
        adam_epsilon: known.adam_epsilon.or(usual.adam_epsilon),
        weight_decay: known.weight_decay.or(usual.weight_decay),
        warmup_steps: known.warmup_steps.or(usual.warmup_steps),
        num_training_steps: known.num_training_steps.or(Some(100)),
        fp16: known.fp16.or(usual.fp16),
        bf16: known.bf16.or(usual.bf16),
        fp16_full_eval: known.fp16_full_eval.or(usual.fp16_full_eval),
        bf16_full_eval: known.bf16_full_eval.or(usual.bf16_full_eval),
        save_on_each_node: known.save_on_each_node.or(usual.save_on_each_node),
        auto_find_batch_size: known.auto_find_batch_size.or(usual.auto_find_batch_size),
        environment_mixed_precision: known
            .environment_mixed_precision
            .or(usual.environment_mixed_precision),
    };
    let mut accelerate = arguments.accelerate.clone();
    accelerate.mixed_precision = accelerate.mixed_precision.or(defaults.accelerate.mixed_precision);
    accelerate.gradient_accumulation_steps =
        accelerate.gradient_accumulation_steps.or(defaults.accelerate.gradient_accumulation_steps);
    accelerate.split_batches = accelerate.split_batches.or(Some(false));
    accelerate.dataloader_batch_sizes =
        accelerate.dataloader_batch_sizes.or_else(|| Some(vec![Some(1)]));
    Arguments { trainer, accelerate, plugin: arguments.plugin.clone() }
}

#[test]
fn fixed_examples_are_accepted_by_the_front_end_that_reads_them() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut questions = Vec::new();
    let mut cases = Vec::new();
    for mut fixed in fixed_examples() {
        let model = ModelFacts::with_hidden_size(64);
        fixed.settings.arguments = completed(&fixed.settings.arguments);
        fixed.settings.model = fixed.settings.model.or(Some(model));
        // Arguments that nobody named may contradict a literal in the file.
        let report = check(fixed.after.as_bytes(), &fixed.settings);
        if report.verdict == Verdict::Reject {
            continue;
        }
        let case = Case {
            front_end: fixed.settings.front_end.unwrap_or(FrontEnd::HfTrainer),
            config: parse_json(&fixed.after).expect("strict JSON").root().clone(),
            arguments: fixed.settings.arguments.clone(),
            model: fixed.settings.model.clone().unwrap_or(ModelFacts::without_sizes()),
            world_size: fixed.settings.world_size.unwrap_or(1) as u64,
        };
        let mut question = case.request();
        question["config"] = fixed.after.clone().into();
        questions.push(question);
        cases.push(fixed);
    }
    assert!(cases.len() >= 10, "only {}", cases.len());
    let answers = Oracle::start(&home, "front_end_server.py").answers(questions);
    for (case, answer) in cases.iter().zip(answers) {
        let (code, before, after) = (case.code, case.before, &case.after);
        assert_eq!(answer["ok"], true, "{code}: {before} fixed to {after}: {}", answer["error"]);
    }
    println!("{} fixed examples accepted by their front end", cases.len());
}

/// What a front end is said to refuse, it refuses: every example whose finding is a refusal of its
/// own, with arguments completed by the library's defaults.
#[test]
fn what_a_front_end_is_said_to_refuse_it_refuses() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let mut questions = Vec::new();
    let mut cases = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.looks_at_configs()) {
        for example in rule.examples.iter().filter(|one| !one.is_job && one.version.is_none()) {
            let mut settings = example.settings();
            if example.front_end == FrontEnd::DeepSpeed {
                continue;
            }
            settings.arguments = completed(&settings.arguments);
            settings.model = settings.model.or(Some(ModelFacts::with_hidden_size(64)));
            let report = check(example.config.as_bytes(), &settings);
            let is_told = report.diagnostics.iter().any(|found| found.rule.code == rule.code);
            let Ok(document) = parse_json(example.config) else { continue };
            if report.verdict == Verdict::Accept || !is_told {
                continue;
            }
            let case = Case {
                front_end: example.front_end,
                config: document.root().clone(),
                arguments: settings.arguments,
                model: settings.model.unwrap_or(ModelFacts::without_sizes()),
                world_size: example.world_size.unwrap_or(1) as u64,
            };
            questions.push(case.request());
            cases.push((rule.code, example));
        }
    }
    assert!(cases.len() >= 10, "only {}", cases.len());
    let answers = Oracle::start(&home, "front_end_server.py").answers(questions);
    let mut refused = 0;
    for ((code, example), answer) in cases.iter().zip(answers) {
        refused += usize::from(answer["ok"] == false);
        // What reaches the engine is refused there, which `claims.rs` asks about.
        let is_the_engines = ["B", "K", "V", "P"].iter().any(|group| code.starts_with(group));
        assert!(answer["ok"] == false || is_the_engines, "{code}: {}", example.config);
    }
    println!("{refused} of {} refused by the front end itself", cases.len());
    assert!(refused >= 10, "only {refused}");
}

#[test]
fn a_file_that_a_front_end_reads_is_fixed_until_nothing_is_left_to_fix() {
    let Some(files) = zeropilot_oracle::corpus() else {
        return zeropilot_oracle::missing("ZEROPILOT_CORPUS");
    };
    for file in &files {
        let settings = Settings { world_size: Some(8), ..Settings::default() };
        let before = check(&file.data, &settings);
        let Some(fixed) = fix(&file.data, &settings, true) else { continue };
        let is_broken =
            before.verdict == Verdict::Accept && fixed.report.verdict == Verdict::Reject;
        assert!(!is_broken, "{}: {}", file.name, fixed.text);
        let again = fix(fixed.text.as_bytes(), &settings, true).map(|again| again.text);
        assert_eq!(again, None, "{}", file.name);
    }
}
