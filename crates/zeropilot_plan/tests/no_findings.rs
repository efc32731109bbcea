//! Whatever is asked for: it is refused, or what is written passes our own rules without a finding.

mod requests;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use zeropilot_config::front_end::{
    AccelerateArguments, Arguments, ModelFacts, Number, TrainerArguments,
};
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Report, Settings, Severity, Verdict, check};
use zeropilot_plan::{
    Argument, Knob, KnobKind, KnobValue, Precision, Preset, Recipe, Request, Target, Tier, Wish,
};

/// The arguments a person passes who does what [`Recipe::arguments`] says.
fn told(recipe: &Recipe) -> Arguments {
    let arguments = recipe.arguments();
    let find = |name: &str| {
        let found = arguments.iter().find(|argument| argument.name == name);
        found.map(|Argument { value, .. }| value.as_str())
    };
    let whole = |name: &str| find(name).map(|text| text.parse::<i64>().expect("a whole number"));
    let number = |name: &str, default: f64| {
        Some(Number::Float(find(name).map_or(default, |text| text.parse().expect("a number"))))
    };
    let precision = recipe.precision.name();
    let trainer = TrainerArguments {
        per_device_train_batch_size: whole("per_device_train_batch_size")
            .or(whole("micro_batch_size")),
        gradient_accumulation_steps: whole("gradient_accumulation_steps"),
        bf16: Some(precision == "bf16"),
        fp16: Some(precision == "fp16"),
        learning_rate: number("learning_rate", 5e-5),
        adam_beta1: number("adam_beta1", 0.9),
        adam_beta2: number("adam_beta2", 0.999),
        adam_epsilon: number("adam_epsilon", 1e-8),
        weight_decay: number("weight_decay", 0.0),
        max_grad_norm: number("max_grad_norm", 1.0),
        warmup_steps: Some(Number::Int(whole("warmup_steps").unwrap_or(0))),
        num_training_steps: Some(whole("max_steps").unwrap_or(1000)),
        ..TrainerArguments::library_defaults()
    };
    let micro = whole("batch_size").and_then(|size| u64::try_from(size).ok());
    let accelerate = AccelerateArguments {
        dataloader_batch_sizes: micro.map(|size| vec![Some(size)]),
        ..AccelerateArguments::library_defaults()
    };
    Arguments { trainer, accelerate, ..Arguments::default() }
}

fn judge(recipe: &Recipe, arguments: Arguments, version: EngineVersion) -> (String, Report) {
    let text = serde_json::to_string_pretty(&recipe.config()).expect("JSON");
    let settings = Settings {
        version,
        world_size: recipe.batch.world.and_then(|world| usize::try_from(world.get()).ok()),
        front_end: Some(recipe.target.front_end()),
        arguments,
        model: Some(ModelFacts::with_hidden_size(4096)),
        ..Settings::default()
    };
    let report = check(text.as_bytes(), &settings);
    (text, report)
}

fn findings(report: &Report) -> Vec<String> {
    let counts = |severity| matches!(severity, Severity::Error | Severity::Warning);
    let found = report.diagnostics.iter().filter(|found| counts(found.severity));
    found.map(|found| found.message(zeropilot_text::Language::English)).collect()
}

fn assert_clean(recipe: &Recipe, version: EngineVersion) {
    for arguments in [Arguments::default(), told(recipe)] {
        let (text, report) = judge(recipe, arguments, version);
        let found = findings(&report);
        assert!(
            report.verdict == Verdict::Accept && found.is_empty(),
            "{} for {}: {found:#?}\n{text}",
            version.name(),
            recipe.target
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_has_no_findings(request in requests::wishes()) {
        if let Ok(recipe) = request.recipe() {
            assert_clean(&recipe, EngineVersion::NEWEST);
            for tier in Tier::ALL {
                assert_clean(&recipe.tier(tier), EngineVersion::NEWEST);
            }
        }
    }
}

/// Random wishes seldom set two flags at once; here every two meet, on and off, in every stage.
#[test]
fn two_flags_at_once_have_no_findings() {
    let flags = Knob::ALL.iter().copied().filter(|knob| knob.kind() == KnobKind::Flag);
    let flags: Vec<(Knob, bool)> = flags.flat_map(|knob| [(knob, true), (knob, false)]).collect();
    let mut made = 0;
    for preset in [Preset::Zero2, Preset::Zero3, Preset::Zero2Offload, Preset::Zero3Nvme] {
        for (first, second) in flags.iter().flat_map(|a| flags.iter().map(move |b| (a, b))) {
            if first.0 == second.0 {
                continue;
            }
            let mut request = Request { preset: Some(preset), ..Request::default() };
            if preset == Preset::Zero3Nvme {
                request.offload.nvme_path = Some("/nvme".to_owned());
            }
            for (knob, on) in [first, second] {
                request.knobs.set(*knob, KnobValue::Flag(*on)).expect("it is a flag");
            }
            if let Ok(recipe) = request.recipe() {
                assert_clean(&recipe, EngineVersion::NEWEST);
                made += 1;
            }
        }
    }
    assert!(made > 500, "{made}");
}

/// Most random wishes must give a config, or the property above says nothing.
#[test]
fn most_wishes_are_not_refused() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = requests::wishes();
    let made = (0..500)
        .map(|_| strategy.new_tree(&mut runner).expect("a wish").current())
        .filter(|request| request.recipe().is_ok())
        .count();
    assert!(made > 200, "{made} of 500");
}

#[test]
fn every_preset_suits_every_engine_and_every_program() {
    for version in EngineVersion::all() {
        for preset in Preset::ALL {
            for target in Target::ALL {
                for precision in
                    [Precision::Bf16, Precision::Fp16(Default::default()), Precision::Fp32]
                {
                    let mut request = Request {
                        preset: Some(preset),
                        target,
                        precisions: vec![precision],
                        ..Request::default()
                    };
                    if preset == Preset::Zero3Nvme {
                        request.offload.nvme_path = Some("/nvme".to_owned());
                    }
                    assert_clean(&request.recipe().expect("a preset holds together"), version);
                }
            }
        }
    }
}

#[test]
fn nobody_but_a_front_end_gets_a_placeholder() {
    for preset in [Preset::Zero1, Preset::Zero2Offload, Preset::Zero3Offload] {
        let request = Request {
            preset: Some(preset),
            scheduler: Wish::Yes(zeropilot_plan::SchedulerKind::WarmupLr),
            ..Request::default()
        };
        let recipe = request.recipe().expect("it holds together");
        let text = serde_json::Value::Object(recipe.config()).to_string();
        assert!(!text.contains("auto"), "{text}");
    }
}
