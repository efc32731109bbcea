//! What is said about whole files: verdict, values, and what is open.

use zeropilot_config::front_end::{Arguments, FrontEnd, ModelFacts, TrainerArguments};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{
    Outcome, Report, Script, Settings, Severity, Verdict, WorldSource, apply, check,
};
use zeropilot_text::Language;

fn judged(config: &str, settings: &Settings) -> Report {
    check(config.as_bytes(), settings)
}

fn at(world_size: usize) -> Settings {
    Settings { world_size: Some(world_size), ..Settings::default() }
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.diagnostics.iter().map(|found| found.rule.code).collect()
}

const PLACEHOLDERS: &str = r#"{
  "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2},
  "zero_optimization": {
    "stage": 3,
    "stage3_gather_16bit_weights_on_model_save": true,
    "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto"
  },
  "gradient_accumulation_steps": "auto",
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto"
}"#;

#[test]
fn placeholders_are_read_as_by_the_trainer_and_stay_open() {
    let report = judged(PLACEHOLDERS, &Settings::default());
    assert_eq!(report.verdict, Verdict::Accept);
    assert_eq!((report.front_end, report.front_end_guessed), (FrontEnd::HfTrainer, true));
    assert_eq!(codes(&report), [""; 0]);
    let resolved = report.resolved.expect("accepted");
    assert_eq!(resolved.train_batch_size, None);
    assert_eq!(resolved.micro_batch_size, None);
    assert_eq!(resolved.stage, 3);
    let zero = &resolved.zero_optimization;
    assert_eq!(zero.get("reduce_bucket_size"), Some(&PyValue::str("auto")));
    assert_eq!(zero.get("prefetch_bucket_size"), Some(&PyValue::str("auto")));
    let open: Vec<_> = report.pending.iter().map(|pending| pending.path.as_str()).collect();
    assert!(open.contains(&"fp16.enabled") && open.contains(&"train_batch_size"), "{open:?}");
}

#[test]
fn training_arguments_fill_placeholders() {
    let trainer = TrainerArguments {
        per_device_train_batch_size: Some(2),
        gradient_accumulation_steps: Some(4),
        fp16: Some(false),
        fp16_full_eval: Some(false),
        bf16: Some(true),
        ..TrainerArguments::default()
    };
    let settings = Settings {
        arguments: Arguments { trainer, ..Arguments::default() },
        model: Some(ModelFacts::with_hidden_size(4096)),
        ..at(8)
    };
    let report = judged(PLACEHOLDERS, &settings);
    assert_eq!(report.verdict, Verdict::Accept);
    let resolved = report.resolved.expect("accepted");
    assert_eq!(resolved.train_batch_size, Some(PyValue::from(64)));
    assert_eq!(
        resolved.zero_optimization.get("reduce_bucket_size"),
        Some(&PyValue::from(16_777_216))
    );
    assert!(report.pending.is_empty(), "{:?}", report.pending);
}

#[test]
fn half_a_batch_is_not_judged() {
    let config = r#"{"train_batch_size": 7, "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}"#;
    let report = judged(config, &at(4));
    assert_eq!(report.verdict, Verdict::Accept, "{:?}", codes(&report));
    let resolved = report.resolved.expect("accepted");
    assert_eq!(resolved.train_batch_size, Some(PyValue::from(7)));
    assert_eq!(resolved.micro_batch_size, None);
}

#[test]
fn plain_deepspeed_does_not_know_placeholders() {
    let settings = Settings { front_end: Some(FrontEnd::DeepSpeed), ..at(2) };
    let report = judged(PLACEHOLDERS, &settings);
    assert_eq!(report.verdict, Verdict::Reject);
    assert_eq!(codes(&report), ["A02", "A02", "A02", "A02", "A01", "A01", "A01"]);
}

#[test]
fn the_global_batch_counts_all_ranks() {
    let config = r#"{"train_batch_size": 64, "gradient_accumulation_steps": 32, "zero_optimization": {"stage": 3}}"#;
    let report = judged(config, &at(4));
    assert_eq!((report.verdict, codes(&report)), (Verdict::Reject, vec!["B03"]));
    let found = &report.diagnostics[0];
    assert_eq!(
        found.message(Language::English),
        "`train_batch_size` 64 is below 4 ranks × 32 gradient accumulation steps = 128: micro-batch size is 0"
    );
    assert!(found.help(Language::English).contains("2 × 32 × 4 = 256"));
    assert!(found.help(Language::Chinese).contains("2 × 32 × 4 = 256"));
    let fixed = apply(config, &found.fix.as_ref().expect("a fix").edits);
    let report = judged(&fixed, &at(4));
    assert_eq!(report.verdict, Verdict::Accept);
    assert_eq!(report.resolved.expect("accepted").micro_batch_size, Some(PyValue::from(2)));
}

#[test]
fn without_a_number_of_ranks_three_batch_sizes_tell_it() {
    let config = r#"{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}"#;
    let report = judged(config, &Settings::default());
    assert_eq!((report.verdict, report.world.size), (Verdict::Accept, 32));
    assert_eq!(report.world.source, WorldSource::Inferred);
    assert!(report.diagnostics.iter().all(|found| found.severity == Severity::Note));
    assert_eq!(judged(config, &at(8)).verdict, Verdict::Reject);

    let fits_none = r#"{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}"#;
    let report = judged(fits_none, &Settings::default());
    assert_eq!((report.verdict, codes(&report)), (Verdict::Reject, vec!["B01"]));
    assert!(report.diagnostics[0].message(Language::English).contains("1 rank (assumed"));
}

#[test]
fn what_nobody_reads_is_said_and_moved() {
    let config = r#"{
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {
    "stage": 3,
    "offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 5, "buffer_size": 1e8}
  },
  "memory_efficient_linear": false,
  "use_dynamic_tiling": true,
  "aio": {"block_size": 1048576, "queue_depth": 8},
  "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true}
}"#;
    let report = judged(config, &at(4));
    assert_eq!((report.verdict, codes(&report)), (Verdict::Accept, vec!["K02", "K01"]));
    let fixed = apply(config, &report.diagnostics[0].fix.as_ref().expect("a move").edits);
    let report = judged(&fixed, &at(4));
    assert_eq!(codes(&report), ["K01"]);
    let resolved = report.resolved.expect("accepted");
    let moved = resolved.zero_optimization.get("memory_efficient_linear");
    assert_eq!(moved, Some(&PyValue::Bool(false)));
}

#[test]
fn names_of_the_users_own_choosing_are_left_alone() {
    let config = r#"{
  "train_batch_size": 8,
  "optimizer": {"type": "MuAdam", "params": {"lr": 1e-4, "anything": 1}},
  "scheduler": {"type": "StepLR", "params": {"step_size": 2}},
  "datastates_ckpt": {"x": 1},
  "pipeline": {"my_key": 1},
  "data_efficiency": {"enabled": false, "data_sampling": {"enabled": false, "curriculum_learning":
    {"enabled": false, "data_cluster_path": "x", "curriculum_metrics": {"mine": {}}}}}
}"#;
    let report = judged(config, &at(1));
    assert_eq!(codes(&report), [""; 0]);
}

#[test]
fn remarks_are_notes() {
    let config = r##"{"_comment": "x", "//": "y", "#": "z", "train_batch_size": 8, "checkpoint": {"_note": 1}}"##;
    let report = judged(config, &at(1));
    assert_eq!(codes(&report), ["K13"; 4]);
    assert!(report.diagnostics.iter().all(|found| found.severity == Severity::Note));
}

#[test]
fn duplicates_end_one_reader_and_pass_the_other() {
    let config = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, "stage": 3,
            "stage3_gather_16bit_weights_on_model_save": true}}"#;
    let with = |front_end| judged(config, &Settings { front_end: Some(front_end), ..at(2) });
    let refused = with(FrontEnd::DeepSpeed);
    assert_eq!((refused.verdict, codes(&refused)), (Verdict::Reject, vec!["K11"]));
    let passed = with(FrontEnd::HfTrainer);
    assert_eq!(passed.verdict, Verdict::Accept);
    assert_eq!(passed.diagnostics[0].severity, Severity::Warning);
    assert_eq!(passed.resolved.expect("accepted").stage, 3);
}

#[test]
fn any_bytes_get_an_answer() {
    for bytes in [
        &b""[..],
        b"\xff\xfe{",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf{\"train_batch_size\": \"auto\"}",
        b"{\"a\": \xc3}",
        b"{}\0",
        b"\r\n\r",
        b"nonsense",
    ] {
        let report = check(bytes, &Settings::default());
        for found in &report.diagnostics {
            assert!(found.span.start <= bytes.len() && found.span.end <= bytes.len(), "{bytes:?}");
        }
    }
    let brackets = vec![b'['; 1 << 20];
    let report = check(&brackets, &Settings::default());
    assert_eq!(codes(&report), ["K17"]);
}

/// 0.14 takes the text `"auto"` for a switch that is on; what the Trainer fills in before is not known here.
#[test]
fn two_precision_switches_that_wait_for_the_trainer_are_not_both_on() {
    let config = r#"{
      "bf16": {"enabled": "auto"},
      "fp16": {"enabled": "auto"},
      "train_micro_batch_size_per_gpu": 1,
      "zero_optimization": {"stage": 2}
    }"#;
    let settings = Settings {
        version: EngineVersion::nearest("0.14.5").expect("a known version"),
        front_end: Some(FrontEnd::HfTrainer),
        ..at(2)
    };
    let report = judged(config, &settings);
    assert_eq!((report.verdict, codes(&report)), (Verdict::Accept, vec![]));
    let bare = Settings { front_end: Some(FrontEnd::DeepSpeed), ..settings };
    assert_eq!(judged(config, &bare).verdict, Verdict::Reject);
}

/// PyTorch Lightning adds a batch that is missing, bare DeepSpeed does not.
#[test]
fn a_missing_batch_is_an_error_where_it_is_known_who_reads_the_file() {
    let config = r#"{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}}"#;
    let told = |front_end| {
        let report = judged(config, &Settings { front_end, ..at(2) });
        assert_eq!((report.verdict, codes(&report)), (Verdict::Reject, vec!["B04"]));
        report.diagnostics[0].severity
    };
    assert_eq!(told(None), Severity::Warning);
    assert_eq!(told(Some(FrontEnd::DeepSpeed)), Severity::Error);
    assert_eq!(told(Some(FrontEnd::HfTrainer)), Severity::Error);
}

#[test]
fn settings_of_a_program_that_hold_a_config_get_one_note() {
    let config = r#"{"data_root": "/data", "train_batch_size": 1, "grad_clip": 1.0, "learning_rate": 1e-5,
        "deepspeed": {"zero_optimization": {"stage": 3}, "train_batch_size": 1}}"#;
    let report = judged(config, &Settings::default());
    let found: Vec<_> = report
        .diagnostics
        .iter()
        .map(|found| (found.rule.code, found.severity, found.path.to_string()))
        .collect();
    assert_eq!(found, [("K01", Severity::Note, "deepspeed".to_owned())]);
    // The engine itself reads none of the four keys.
    let bare = Settings { front_end: Some(FrontEnd::DeepSpeed), ..at(1) };
    assert_eq!(codes(&judged(config, &bare)), ["K01"; 4]);
    // A file with a ZeRO section of its own is a config, whatever else it holds.
    let with_copy = r#"{"train_batch_size": 8, "gradient_cliping": 1.0, "zero_optimization": {"stage": 0},
        "backup": {"zero_optimization": {"stage": 2}}}"#;
    assert_eq!(codes(&judged(with_copy, &Settings::default())), ["K01"; 2]);
}

#[test]
fn what_the_autotuner_writes_is_missing_only_without_it() {
    let config = r#"{"train_micro_batch_size_per_gpu": "auto", "autotuning": {"enabled": true}}"#;
    let report = judged(config, &Settings::default());
    assert_eq!((report.verdict, codes(&report)), (Verdict::Reject, vec!["I02", "K29"]));
    assert_eq!(report.diagnostics[0].severity, Severity::Warning);
    let off = config.replace("true", "false");
    assert_eq!(judged(&off, &Settings::default()).diagnostics[0].severity, Severity::Error);
}

#[test]
fn a_file_that_loads_and_ends_the_run_is_not_one_that_runs() {
    let muon = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "optimizer": {"type": "Muon"}}"#;
    let bare = |version: &str| Settings {
        front_end: Some(FrontEnd::DeepSpeed),
        version: EngineVersion::nearest(version).expect("a version"),
        ..at(8)
    };
    let report = judged(muon, &bare("0.19.8"));
    // The loader takes it; `deepspeed.initialize` does not.
    assert_eq!((report.verdict, report.outcome()), (Verdict::Accept, Outcome::Fails));
    assert!(codes(&report).contains(&"O25"));
    let untested = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "optimizer": {"type": "SGD"}}"#;
    let report = judged(untested, &bare("0.16.9"));
    assert_eq!((report.verdict, report.outcome()), (Verdict::Accept, Outcome::Fails));
    let refused = judged(r#"{"train_batch_size": 3}"#, &bare("0.19.8"));
    assert_eq!(refused.outcome(), Outcome::Rejected);
    let runs = judged(r#"{"train_batch_size": 8}"#, &bare("0.19.8"));
    assert_eq!(runs.outcome(), Outcome::Runs);
    // Whoever silences the finding says that it is wrong.
    let mut settings = bare("0.19.8");
    settings.selection.ignore = vec!["O25".to_owned()];
    assert_eq!(judged(muon, &settings).outcome(), Outcome::Runs);
}

/// DeepSpeed turns the deprecated key into `offload_optimizer` before it looks at the optimizer.
#[test]
fn an_optimizer_is_refused_under_the_deprecated_key_of_offload_too() {
    let of = |key: &str, class: &str| {
        let script = Script { client_optimizer: Some(class.to_owned()), ..Script::default() };
        let config =
            format!(r#"{{"train_batch_size": 8, "zero_optimization": {{"stage": 2, {key}}}}}"#);
        judged(&config, &Settings { script, ..at(2) })
    };
    let report = of(r#""cpu_offload": true"#, "torch.optim.AdamW");
    let found = report.diagnostics.iter().find(|found| found.rule.code == "O01").expect("O01");
    let words =
        "with `cpu_offload`, DeepSpeed rejects the `torch.optim.AdamW` that the script passes";
    assert_eq!(found.message(Language::English), words);
    assert_eq!(report.outcome(), Outcome::Fails);
    for (key, class) in [
        (r#""cpu_offload": false"#, "torch.optim.AdamW"),
        (r#""cpu_offload": true"#, "DeepSpeedCPUAdam"),
    ] {
        assert!(!codes(&of(key, class)).contains(&"O01"), "{key} {class}");
    }
    // accelerate replaces the Trainer's optimizer for the new key alone.
    let of_trainer = |key: &str| {
        let config = format!(
            r#"{{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {{"stage": 2, {key}}}}}"#
        );
        let settings = Settings { front_end: Some(FrontEnd::HfTrainer), ..at(2) };
        codes(&judged(&config, &settings)).contains(&"O01")
    };
    assert!(of_trainer(r#""cpu_offload": true"#));
    assert!(!of_trainer(r#""offload_optimizer": {"device": "cpu"}"#));
}

#[test]
fn what_hangs_on_no_refused_key_is_still_known() {
    let values = |config: &str| {
        let report = judged(config, &at(2));
        assert!(report.verdict == Verdict::Reject && report.resolved.is_none(), "{config}");
        report
            .partial
            .map(|values| (values.gradient_accumulation_steps.clone(), values.known_stage()))
    };
    let eight = Some(PyValue::Int(8.into()));
    let of = |more: &str, stage: &str| {
        values(&format!(
            r#"{{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, {more}, "zero_optimization": {{"stage": {stage}}}}}"#
        ))
    };
    assert_eq!(
        of(r#""fp16": {"enabled": true, "loss_scale": "big"}"#, "2"),
        Some((eight.clone(), Some(2)))
    );
    assert_eq!(of(r#""train_batch_size": 7"#, "2"), Some((eight.clone(), Some(2))));
    assert_eq!(of(r#""steps_per_print": 1"#, "4"), Some((eight.clone(), None)));
    let both = r#""fp16": {"enabled": true}, "bf16": {"enabled": true}"#;
    assert_eq!(of(both, "1"), Some((eight, Some(1))));
    assert_eq!(
        values(r#"{"train_batch_size": 8, "gradient_accumulation_steps": "two"}"#),
        Some((None, Some(0)))
    );
    assert_eq!(values("[1]"), None);
}
