//! What the front ends do, case by case. The numbers come from runs of the real classes, or from
//! the arithmetic shown.

use num_bigint::BigInt;
use serde_json::{Value as Json, json};

use super::*;
use crate::syntax::{Member, Span, Value};

/// A tree in which every value has a span of its own.
fn tree(json: &Json) -> Node {
    fn build(json: &Json, next: &mut usize) -> Node {
        *next += 1;
        let span = Span::new(*next * 10, *next * 10 + 5);
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(BigInt::from(number)),
                None => Value::Float(number.as_f64().unwrap()),
            },
            Json::String(text) => Value::Str(text.clone()),
            Json::Array(items) => {
                Value::Array(items.iter().map(|item| build(item, next)).collect())
            }
            Json::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| Member {
                        key: key.clone(),
                        key_span: span,
                        value: build(value, next),
                    })
                    .collect(),
            ),
        };
        Node { span, value }
    }
    build(json, &mut 0)
}

fn at<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    config_tree::find(root, path).ok().flatten()
}

fn int(number: i64) -> Value {
    Value::Int(BigInt::from(number))
}

fn value_at(filled: &Filled, path: &str) -> Option<Value> {
    at(&filled.root, path).map(|node| node.value.clone())
}

fn known() -> Arguments {
    let mut arguments = Arguments::library_defaults();
    arguments.trainer.num_training_steps = Some(99);
    arguments.accelerate.dataloader_batch_sizes = Some(vec![Some(8), Some(4)]);
    arguments
}

fn with_trainer(json: &Json, arguments: &Arguments) -> Filled {
    fill(
        FrontEnd::HfTrainer,
        &tree(json),
        arguments,
        Some(&ModelFacts::with_hidden_size(4096)),
        Some(4),
    )
}

fn with_accelerate(json: &Json, arguments: &Arguments) -> Filled {
    fill(
        FrontEnd::Accelerate,
        &tree(json),
        arguments,
        Some(&ModelFacts::with_hidden_size(4096)),
        Some(4),
    )
}

fn kinds(filled: &Filled) -> Vec<(&str, &ProblemKind)> {
    filled.problems.iter().map(|problem| (problem.path.as_str(), &problem.kind)).collect()
}

#[test]
fn names_of_front_ends_are_read_back() {
    for front_end in FrontEnd::ALL {
        assert_eq!(front_end.to_string().parse(), Ok(front_end));
    }
    assert_eq!("lightning".parse::<FrontEnd>(), Err(UnknownFrontEnd("lightning".to_owned())));
}

#[test]
fn plain_deepspeed_changes_nothing() {
    let config = tree(&json!({"train_batch_size": "auto", "fp16": "auto"}));
    let filled = fill(FrontEnd::DeepSpeed, &config, &known(), None, None);
    assert_eq!(filled.root, config);
    assert!(filled.problems.is_empty() && filled.pending.is_empty() && filled.filled.is_empty());
}

#[test]
fn the_trainer_fills_the_batch_triple_from_its_arguments() {
    let mut arguments = known();
    arguments.trainer.gradient_accumulation_steps = Some(2);
    let config = json!({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {}});
    let filled = with_trainer(&config, &arguments);
    assert_eq!(filled.problems, []);
    // 4 processes * 8 * 2
    assert_eq!(value_at(&filled, "train_batch_size"), Some(int(64)));
    assert_eq!(value_at(&filled, "train_micro_batch_size_per_gpu"), Some(int(8)));
    assert_eq!(value_at(&filled, "gradient_accumulation_steps"), Some(int(2)));
}

#[test]
fn a_filled_value_keeps_the_place_of_the_placeholder_and_an_inserted_one_stands_at_its_object() {
    let config = json!({"gradient_clipping": "auto", "zero_optimization": {}});
    let written = tree(&config);
    let filled = with_trainer(&config, &known());
    assert_eq!(
        at(&filled.root, "gradient_clipping").unwrap().span,
        at(&written, "gradient_clipping").unwrap().span
    );
    let start = written.span.start;
    assert_eq!(at(&filled.root, "fp16.enabled").unwrap().span, Span::new(start, start));
    let how: Vec<_> =
        filled.filled.iter().map(|filled| (filled.path.as_str(), filled.how)).collect();
    assert!(
        how.contains(&("gradient_clipping", How::Placeholder))
            && how.contains(&("fp16", How::Inserted))
    );
}

#[test]
fn absent_keys_are_neither_filled_nor_compared_but_accumulation_becomes_one() {
    let mut arguments = known();
    arguments.trainer.gradient_accumulation_steps = Some(7);
    let filled = with_trainer(&json!({"zero_optimization": {}}), &arguments);
    assert_eq!(filled.problems, []);
    assert_eq!(value_at(&filled, "gradient_clipping"), None);
    assert_eq!(value_at(&filled, "gradient_accumulation_steps"), Some(int(1)));
}

#[test]
fn searching_for_a_batch_size_compares_the_accumulation_accelerate_inserted() {
    let mut arguments = known();
    arguments.trainer.gradient_accumulation_steps = Some(7);
    arguments.trainer.auto_find_batch_size = Some(true);
    let config = json!({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {}});
    let filled = with_trainer(&config, &arguments);
    let mismatch = ProblemKind::Mismatch {
        written: int(1),
        expected: int(7),
        argument: "gradient_accumulation_steps",
    };
    assert_eq!(kinds(&filled), [("gradient_accumulation_steps", &mismatch)]);
}

#[test]
fn searching_for_a_batch_size_is_refused_on_stage_3_even_if_only_the_plugin_says_so() {
    let mut arguments = known();
    arguments.trainer.auto_find_batch_size = Some(true);
    arguments.plugin.zero_stage = Some(3);
    let filled = with_trainer(&json!({"zero_optimization": {}}), &arguments);
    assert_eq!(kinds(&filled), [("", &ProblemKind::AutoFindBatchSizeWithStage3)]);
}

#[test]
fn every_mismatch_is_noted_with_both_values() {
    let config = json!({"gradient_clipping": 0.5, "optimizer": {"type": "AdamW", "params": {"lr": 5e-5, "weight_decay": 0, "betas": [0.9, 0.98]}}, "zero_optimization": {}});
    let filled = with_trainer(&config, &known());
    let noted: Vec<_> = filled.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(noted, ["gradient_clipping", "optimizer.params.betas"]);
    let mismatch = ProblemKind::Mismatch {
        written: Value::Float(0.5),
        expected: Value::Float(1.0),
        argument: "max_grad_norm",
    };
    assert_eq!(filled.problems[0].kind, mismatch);
    assert_eq!(filled.problems[0].span, at(&tree(&config), "gradient_clipping").unwrap().span);
}

#[test]
fn mismatches_do_not_hide_placeholders_nobody_fills() {
    let config = json!({"gradient_clipping": 0.5, "zero_optimization": {"overlap_comm": "auto", "sub_group_size": "auto"}});
    let filled = with_trainer(&config, &known());
    let noted: Vec<_> = filled.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        noted,
        ["gradient_clipping", "zero_optimization.overlap_comm", "zero_optimization.sub_group_size"]
    );
}

#[test]
fn a_quoted_micro_batch_fails_in_arithmetic_before_its_mismatch_is_shown() {
    let config = json!({"train_micro_batch_size_per_gpu": "8", "zero_optimization": {}});
    let filled = with_trainer(&config, &known());
    let mismatch = ProblemKind::Mismatch {
        written: Value::Str("8".to_owned()),
        expected: int(8),
        argument: "per_device_train_batch_size",
    };
    let unusable = ProblemKind::Unusable { found: "str", operation: Operation::Multiply };
    let path = "train_micro_batch_size_per_gpu";
    assert_eq!(kinds(&filled), [(path, &mismatch), (path, &unusable)]);
}

#[test]
fn bucket_keys_come_from_the_hidden_size() {
    let config = json!({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}});
    for filled in [with_trainer(&config, &known()), with_accelerate(&config, &known())] {
        assert_eq!(filled.problems, []);
        // 4096 * 4096, int(0.9 * 4096 * 4096), 10 * 4096
        assert_eq!(
            value_at(&filled, "zero_optimization.reduce_bucket_size"),
            Some(int(16_777_216))
        );
        assert_eq!(
            value_at(&filled, "zero_optimization.stage3_prefetch_bucket_size"),
            Some(int(15_099_494))
        );
        assert_eq!(
            value_at(&filled, "zero_optimization.stage3_param_persistence_threshold"),
            Some(int(40_960))
        );
    }
}

#[test]
fn below_stage_3_a_size_only_in_the_text_config_leaves_the_stage_3_keys_to_accelerate_which_refuses()
 {
    let text = TextConfigFacts { hidden_size: Some(64), hidden_sizes: None };
    let model = ModelFacts { text_config: Some(text), ..ModelFacts::without_sizes() };
    let config = |stage: i64| json!({"zero_optimization": {"stage": stage, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}});
    let run =
        |stage| fill(FrontEnd::HfTrainer, &tree(&config(stage)), &known(), Some(&model), Some(1));
    assert_eq!(run(3).problems, []);
    let refused = run(2);
    let kind =
        ProblemKind::NoHiddenSize { keys: vec!["zero_optimization.stage3_prefetch_bucket_size"] };
    assert_eq!(kinds(&refused), [("zero_optimization.stage3_prefetch_bucket_size", &kind)]);
}

#[test]
fn warmup_is_a_share_below_one_and_at_least_one_step() {
    let warmup = |steps: Number, written: Json| {
        let mut arguments = known();
        arguments.trainer.warmup_steps = Some(steps);
        let config = json!({"scheduler": {"params": {"warmup_num_steps": written}}, "zero_optimization": {}});
        with_trainer(&config, &arguments)
    };
    let value = |filled: &Filled| value_at(filled, "scheduler.params.warmup_num_steps");
    // ceil(99 * 0.03) = ceil(2.97)
    assert_eq!(value(&warmup(Number::Float(0.03), json!("auto"))), Some(int(3)));
    assert_eq!(value(&warmup(Number::Float(250.7), json!("auto"))), Some(int(250)));
    assert_eq!(value(&warmup(Number::Int(0), json!("auto"))), Some(int(1)));
    let mismatch =
        ProblemKind::Mismatch { written: int(0), expected: int(1), argument: "warmup_steps" };
    assert_eq!(
        kinds(&warmup(Number::Int(0), json!(0))),
        [("scheduler.params.warmup_num_steps", &mismatch)]
    );
}

#[test]
fn unknown_arguments_leave_placeholders_pending_and_are_no_problem() {
    let mut arguments = known();
    arguments.trainer.per_device_train_batch_size = None;
    arguments.trainer.num_training_steps = None;
    let config = json!({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "scheduler": {"params": {"total_num_steps": "auto", "warmup_num_steps": "auto"}}, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}});
    let filled = fill(FrontEnd::HfTrainer, &tree(&config), &arguments, None, Some(4));
    assert_eq!(filled.problems, []);
    let pending: Vec<_> =
        filled.pending.iter().map(|pending| (pending.path.as_str(), pending.argument)).collect();
    assert_eq!(
        pending,
        [
            ("train_micro_batch_size_per_gpu", "per_device_train_batch_size"),
            ("train_batch_size", "train_batch_size (calculated)"),
            ("zero_optimization.reduce_bucket_size", "model.config.hidden_size"),
            ("zero_optimization.stage3_prefetch_bucket_size", "model.config.hidden_size"),
            ("scheduler.params.total_num_steps", "num_training_steps (calculated)"),
        ]
    );
    assert_eq!(value_at(&filled, "train_batch_size"), Some(Value::Str("auto".to_owned())));
    assert!(
        filled.is_pending("train_batch_size") && !filled.is_pending("gradient_accumulation_steps")
    );
    assert_eq!(value_at(&filled, "gradient_accumulation_steps"), Some(int(1)));
}

#[test]
fn nothing_known_refuses_nothing_that_could_still_be_right() {
    let config = json!({"train_batch_size": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": 0.5, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}, "scheduler": {"params": {"total_num_steps": "auto"}}, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}});
    for front_end in [FrontEnd::HfTrainer, FrontEnd::Accelerate] {
        let mut config = config.clone();
        if front_end == FrontEnd::Accelerate {
            config["train_micro_batch_size_per_gpu"] = json!("auto");
        }
        let filled = fill(front_end, &tree(&config), &Arguments::default(), None, None);
        assert_eq!(filled.problems, [], "{front_end}");
        assert!(
            filled.is_pending("train_batch_size") && filled.is_pending("optimizer.params.lr"),
            "{front_end}"
        );
    }
}

#[test]
fn an_unknown_precision_puts_a_pending_section_where_one_will_be_inserted() {
    let filled = fill(
        FrontEnd::Accelerate,
        &tree(&json!({"zero_optimization": {}})),
        &Arguments::default(),
        None,
        None,
    );
    assert_eq!(filled.problems, []);
    assert!(filled.is_pending("fp16.enabled") && filled.is_pending("bf16.enabled"));
}

#[test]
fn asking_for_one_precision_with_the_other_switched_on_is_refused() {
    let mut arguments = known();
    arguments.accelerate.mixed_precision = Some(MixedPrecision::Fp16);
    let filled =
        with_accelerate(&json!({"bf16": {"enabled": "True"}, "zero_optimization": {}}), &arguments);
    let kind = ProblemKind::BothPrecisions { requested: MixedPrecision::Fp16 };
    assert_eq!(kinds(&filled), [("bf16.enabled", &kind)]);
}

#[test]
fn a_null_precision_section_is_refused() {
    let filled = with_accelerate(&json!({"fp16": null, "zero_optimization": {}}), &known());
    assert_eq!(kinds(&filled), [("fp16", &ProblemKind::NotAnObject { found: "NoneType" })]);
}

#[test]
fn fp8_takes_a_null_bf16_section_so_an_unknown_precision_does_not_decide() {
    let null = ProblemKind::NotAnObject { found: "NoneType" };
    let with = |section: &str, precision| {
        let mut arguments = known();
        arguments.accelerate.mixed_precision = precision;
        with_accelerate(&json!({section: null, "zero_optimization": {}}), &arguments)
    };
    for refused in [MixedPrecision::No, MixedPrecision::Fp16, MixedPrecision::Bf16] {
        assert_eq!(kinds(&with("bf16", Some(refused))), [("bf16", &null)], "{refused:?}");
    }
    assert_eq!(with("bf16", Some(MixedPrecision::Fp8)).problems, []);
    assert_eq!(with("bf16", None).problems, []);
    assert_eq!(kinds(&with("fp16", None)), [("fp16", &null)]);
}

#[test]
fn a_config_without_zero_section_is_refused_but_a_null_section_only_fails_with_an_optimizer_in_code()
 {
    let filled = with_accelerate(&json!({}), &known());
    assert_eq!(kinds(&filled), [("", &ProblemKind::NoZeroSection)]);
    let filled = with_accelerate(&json!({"zero_optimization": null}), &known());
    assert_eq!(
        kinds(&filled),
        [("zero_optimization", &ProblemKind::NotAnObject { found: "NoneType" })]
    );
    let filled = with_accelerate(&json!({"zero_optimization": null, "optimizer": {}}), &known());
    assert_eq!(filled.problems, []);
}

#[test]
fn a_null_offload_section_fails_when_the_trainer_makes_the_optimizer() {
    let config = json!({"zero_optimization": {"stage": 2, "offload_optimizer": null}});
    let filled = with_trainer(&config, &known());
    let path = "zero_optimization.offload_optimizer";
    assert_eq!(kinds(&filled), [(path, &ProblemKind::NotAnObject { found: "NoneType" })]);
}

#[test]
fn a_section_of_another_type_is_refused_where_it_is_read() {
    for (config, path, found) in [
        (json!({"fp16": "auto", "zero_optimization": {}}), "fp16", "str"),
        (json!({"optimizer": [], "zero_optimization": {}}), "optimizer", "list"),
        (json!({"zero_optimization": 2}), "zero_optimization", "int"),
        (
            json!({"zero_optimization": {"offload_param": false}}),
            "zero_optimization.offload_param",
            "bool",
        ),
        (json!([]), "", "list"),
    ] {
        let filled = with_trainer(&config, &known());
        assert_eq!(kinds(&filled), [(path, &ProblemKind::NotAnObject { found })], "{config}");
    }
}

#[test]
fn accelerate_takes_the_smallest_loader_and_lets_literals_win() {
    let config = json!({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 3, "gradient_clipping": "auto", "zero_optimization": {"stage": "auto"}});
    let filled = with_accelerate(&config, &known());
    assert_eq!(filled.problems, []);
    assert_eq!(value_at(&filled, "train_micro_batch_size_per_gpu"), Some(int(4)));
    // 4 * 3 * 4 processes
    assert_eq!(value_at(&filled, "train_batch_size"), Some(int(48)));
    assert_eq!(value_at(&filled, "gradient_clipping"), Some(Value::Float(1.0)));
    assert_eq!(value_at(&filled, "zero_optimization.stage"), Some(int(2)));
    assert_eq!(value_at(&filled, "steps_per_print"), Some(Value::Float(f64::INFINITY)));
    assert_eq!(value_at(&filled, "zero_allow_untested_optimizer"), Some(Value::Bool(true)));
}

#[test]
fn accelerate_fills_neither_betas_nor_eps() {
    let config = json!({"optimizer": {"params": {"lr": "auto", "betas": "auto", "eps": "auto"}}, "zero_optimization": {}});
    let filled = with_accelerate(&config, &known());
    let leftover = &ProblemKind::LeftoverAuto;
    assert_eq!(
        kinds(&filled),
        [("optimizer.params.betas", leftover), ("optimizer.params.eps", leftover)]
    );
    assert_eq!(with_trainer(&config, &known()).problems, []);
}

#[test]
fn the_engines_own_uses_of_auto_are_refused_too() {
    let config = json!({"pipeline": {"stages": "auto"}, "zero_optimization": {}});
    assert_eq!(
        kinds(&with_trainer(&config, &known())),
        [("pipeline.stages", &ProblemKind::LeftoverAuto)]
    );
}

#[test]
fn placeholders_in_lists_and_under_keys_with_dots_are_never_found() {
    let config = json!({"a": ["auto"], "b.c": {"d": "auto"}, "zero_optimization": {}});
    assert_eq!(with_accelerate(&config, &known()).problems, []);
}

#[test]
fn split_batches_must_divide_among_the_processes() {
    let mut arguments = known();
    arguments.accelerate.split_batches = Some(true);
    let config = json!({"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}});
    let filled = with_accelerate(&config, &arguments);
    // the smaller loader has 4 rows for 4 processes
    assert_eq!(value_at(&filled, "train_micro_batch_size_per_gpu"), Some(int(1)));
    arguments.accelerate.dataloader_batch_sizes = Some(vec![Some(6)]);
    let kind = ProblemKind::UnevenSplit { batch_size: 6, world_size: 4 };
    assert_eq!(kinds(&with_accelerate(&config, &arguments)), [("", &kind)]);
}

#[test]
fn of_a_repeated_key_the_last_value_counts() {
    let mut config = tree(&json!({"gradient_clipping": 9, "zero_optimization": {}}));
    let Value::Object(members) = &mut config.value else { panic!("an object") };
    let last = Node { span: Span::new(900, 901), value: Value::Float(1.0) };
    members.push(Member {
        key: "gradient_clipping".to_owned(),
        key_span: Span::new(880, 890),
        value: last.clone(),
    });
    let filled = fill(FrontEnd::HfTrainer, &config, &known(), None, None);
    assert_eq!(filled.problems, []);
    let Value::Object(members) = &filled.root.value else { panic!("an object") };
    assert_eq!((members[0].key.as_str(), &members[0].value), ("gradient_clipping", &last));
}
