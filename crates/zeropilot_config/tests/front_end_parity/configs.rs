//! Configs in the style people write them, and the ways to get them wrong.

use num_bigint::BigInt;
use serde_json::{Value as Json, json};
use zeropilot_config::front_end::{Arguments, FrontEnd, Number};
use zeropilot_config::syntax::{Node, Span, Value};

use super::tree::{lookup, node, push, set, text};
use zeropilot_oracle::Random;

/// Keys a front end looks at, and some it does not.
pub(crate) const KEYS: [&str; 47] = [
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "steps_per_print",
    "wall_clock_breakdown",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "communication_data_type",
    "prescale_gradients",
    "optimizer",
    "optimizer.type",
    "optimizer.params",
    "optimizer.params.lr",
    "optimizer.params.betas",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
    "optimizer.params.torch_adam",
    "scheduler",
    "scheduler.type",
    "scheduler.params",
    "scheduler.params.warmup_min_lr",
    "scheduler.params.warmup_max_lr",
    "scheduler.params.warmup_num_steps",
    "scheduler.params.total_num_steps",
    "fp16",
    "fp16.enabled",
    "fp16.loss_scale",
    "bf16",
    "bf16.enabled",
    "zero_optimization",
    "zero_optimization.stage",
    "zero_optimization.overlap_comm",
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_param_persistence_threshold",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.offload_optimizer",
    "zero_optimization.offload_optimizer.device",
    "zero_optimization.offload_optimizer.nvme_path",
    "zero_optimization.offload_param",
    "zero_optimization.offload_param.device",
    "zero_optimization.offload_param.nvme_path",
    "checkpoint",
    "checkpoint.use_node_local_storage",
    "tensor_parallel",
    "tensor_parallel.autotp_size",
];

/// Those of them that no front end has anything for.
const NEVER_FILLED: [&str; 12] = [
    "wall_clock_breakdown",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "communication_data_type",
    "prescale_gradients",
    "optimizer.type",
    "optimizer.params.torch_adam",
    "scheduler.type",
    "fp16.loss_scale",
    "zero_optimization.overlap_comm",
    "checkpoint.use_node_local_storage",
    "tensor_parallel.autotp_size",
];

/// Starting points in the style people write them.
pub(crate) fn templates() -> Vec<Node> {
    let adamw = json!({"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}});
    let warmup = json!({"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}});
    let decay = json!({"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}});
    let batch = json!({"gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"});
    let stage_3 = json!({"stage": 3, "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "stage3_gather_16bit_weights_on_model_save": true, "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu"}});
    let stage_2 = json!({"stage": 2, "allgather_bucket_size": 2e8, "reduce_bucket_size": "auto", "offload_optimizer": {"device": "none"}});
    let either = json!({"fp16": {"enabled": "auto", "loss_scale": 0}, "bf16": {"enabled": "auto"}});
    let mut templates = vec![
        merged(&[
            &batch,
            &either,
            &json!({"zero_optimization": stage_3.clone(), "optimizer": adamw, "scheduler": decay}),
        ]),
        merged(&[&batch, &either, &json!({"zero_optimization": stage_2, "steps_per_print": 100})]),
        merged(&[
            &batch,
            &json!({"bf16": {"enabled": "auto"}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}, "scheduler": warmup, "zero_optimization": {"stage": "auto", "offload_optimizer": {"device": "auto", "nvme_path": "auto"}, "offload_param": {"device": "auto", "nvme_path": "auto"}, "stage3_gather_16bit_weights_on_model_save": "auto"}}),
        ]),
        merged(&[&batch, &json!({"zero_optimization": {"stage": 1}})]),
        json!({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}}),
        merged(&[
            &json!({"train_batch_size": "auto", "zero_allow_untested_optimizer": true, "wall_clock_breakdown": false}),
            &json!({"zero_optimization": stage_3}),
            &either,
        ]),
    ];
    let corpus = zeropilot_oracle::corpus().unwrap_or_default();
    templates.extend(corpus.iter().filter_map(|file| serde_json::from_slice(&file.data).ok()));
    templates.iter().map(node).collect()
}

fn merged(parts: &[&Json]) -> Json {
    parts.iter().filter_map(|part| part.as_object().cloned()).flatten().collect()
}

/// Changes one thing.
pub(crate) fn mutate(
    random: &mut Random,
    config: &mut Node,
    arguments: &Arguments,
    world_size: u64,
    wild: bool,
) {
    let mut key = *random.pick(&KEYS);
    // A section that is no object ends most runs at once; tame configs do without.
    while !wild && is_section(key) {
        key = *random.pick(&KEYS);
    }
    match random.below(if wild { 16 } else { 10 }) {
        0..=2 => {
            while !wild && (is_section(key) || NEVER_FILLED.contains(&key) && !random.one_in(8)) {
                key = *random.pick(&KEYS);
            }
            set(config, key, Some(text("auto")));
        }
        3..=4 => set(config, key, None),
        5..=7 => {
            let value = plausible(random, key, arguments, world_size);
            set(config, key, Some(value));
        }
        8 => {
            let stage = random
                .pick(&[json!(0), json!(1), json!(2), json!(3), json!("auto"), json!(3.0)])
                .clone();
            set(config, "zero_optimization.stage", Some(node(&stage).value));
        }
        9 => {
            let key = *random.pick(&[
                "zero_optimization.overlap_comm",
                "pipeline.stages",
                "aio.block_size",
                "tensorboard.enabled",
            ]);
            let value = random
                .pick(&[json!("auto"), json!(true), json!({"deep": "auto"}), json!(["auto"])])
                .clone();
            set(config, key, Some(node(&value).value));
        }
        _ => distort(random, config, key, arguments, world_size),
    }
}

/// A change such as nobody would make on purpose.
fn distort(
    random: &mut Random,
    config: &mut Node,
    key: &str,
    arguments: &Arguments,
    world_size: u64,
) {
    match random.below(6) {
        0..=2 => {
            let value = junk(random);
            set(config, key, Some(value));
        }
        3 => {
            let key = *random.pick(&[
                "a.b",
                "zero_optimization.stage",
                "optimizer.params.lr",
                ".",
                "fp16.",
                "",
                "train_batch_size.x",
            ]);
            let value = if random.one_in(2) { text("auto") } else { junk(random) };
            push(config, key, value);
        }
        4 => {
            let value = plausible(random, key, arguments, world_size);
            push(config, key.split('.').next().unwrap_or(key), value);
        }
        _ => {
            if random.one_in(20) {
                config.value = junk(random);
            }
        }
    }
}

fn is_section(key: &str) -> bool {
    KEYS.iter().any(|other| other.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}

/// Makes most compared keys agree and fills what nobody would, so that many configs get through.
pub(crate) fn reconcile(
    random: &mut Random,
    front_end: FrontEnd,
    config: &mut Node,
    arguments: &Arguments,
    world_size: u64,
) {
    let never_filled = match front_end {
        FrontEnd::Accelerate => ["optimizer.params.betas", "optimizer.params.eps"].as_slice(),
        _ => &[],
    };
    for key in KEYS {
        let Some(expected) = expected(key, arguments, world_size) else { continue };
        let literal = match lookup(config, key) {
            Some(Value::Null) | None => continue,
            Some(Value::Str(_)) => never_filled.contains(&key),
            Some(_) => true,
        };
        if literal && !random.one_in(30) {
            set(config, key, Some(expected));
        }
    }
}

/// What the Trainer would want for a key.
fn expected(key: &str, arguments: &Arguments, world_size: u64) -> Option<Value> {
    let trainer = &arguments.trainer;
    let int = |number: i64| Value::Int(BigInt::from(number));
    let number = |number: Option<Number>| match number {
        Some(Number::Int(number)) => Some(Value::Int(BigInt::from(number))),
        Some(Number::Float(number)) => Some(Value::Float(number)),
        None => None,
    };
    let (micro, steps) =
        (trainer.per_device_train_batch_size?, trainer.gradient_accumulation_steps?);
    match key {
        "train_micro_batch_size_per_gpu" => Some(int(micro)),
        "gradient_accumulation_steps" => Some(int(steps)),
        "train_batch_size" => Some(int(micro * steps * world_size as i64)),
        "gradient_clipping" => number(trainer.max_grad_norm),
        "optimizer.params.lr" | "scheduler.params.warmup_max_lr" => number(trainer.learning_rate),
        "optimizer.params.betas" => {
            let betas = [number(trainer.adam_beta1)?, number(trainer.adam_beta2)?];
            Some(Value::Array(
                betas.into_iter().map(|value| Node { span: Span::default(), value }).collect(),
            ))
        }
        "optimizer.params.eps" => number(trainer.adam_epsilon),
        "optimizer.params.weight_decay" => number(trainer.weight_decay),
        "scheduler.params.total_num_steps" => trainer.num_training_steps.map(int),
        "scheduler.params.warmup_num_steps" => match trainer.warmup_steps? {
            Number::Int(steps) => Some(int(steps.max(1))),
            Number::Float(steps) => Some(int((steps as i64).max(1))),
        },
        "fp16.enabled" => Some(Value::Bool(trainer.fp16? || trainer.fp16_full_eval?)),
        "bf16.enabled" => Some(Value::Bool(trainer.bf16? || trainer.bf16_full_eval?)),
        _ => None,
    }
}

/// A value somebody might write, often the right one, sometimes in another type.
fn plausible(random: &mut Random, key: &str, arguments: &Arguments, world_size: u64) -> Value {
    let Some(value) = expected(key, arguments, world_size) else {
        return match key.rsplit('.').next() {
            Some("device") => text(random.pick::<&str>(&["cpu", "nvme", "none"])),
            Some("autotp_size") => node(random.pick(&[json!(0), json!(1), json!(2)])).value,
            Some("enabled") => Value::Bool(random.one_in(2)),
            _ if random.one_in(2) => junk(random),
            _ => {
                node(random.pick(&[
                    json!(true),
                    json!(500_000),
                    json!(5e8),
                    json!("x"),
                    json!(null),
                ]))
                .value
            }
        };
    };
    match (random.below(6), value) {
        (0, Value::Int(value)) => Value::Float(value.to_string().parse().unwrap_or(0.0)),
        (1, Value::Int(value)) => text(&value.to_string()),
        (2, Value::Int(value)) => Value::Int(value + 1),
        (0, Value::Float(1.0)) => Value::Bool(true),
        (0, Value::Float(value)) if value.fract() == 0.0 => Value::Int(BigInt::from(value as i64)),
        (1, Value::Float(value)) => text(&format!("{value:?}")),
        (2, Value::Float(value)) => Value::Float(value * 1.000_000_000_1),
        (0, Value::Bool(value)) => Value::Int(BigInt::from(u8::from(value))),
        (1, Value::Bool(value)) => text(if value { "True" } else { "false" }),
        (2, Value::Bool(value)) => Value::Bool(!value),
        (_, value) => value,
    }
}

fn junk(random: &mut Random) -> Value {
    let choices = [
        json!(null),
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(8),
        json!(-3),
        json!(2.5),
        json!(1e300),
        json!("auto"),
        json!("8"),
        json!("TRUE"),
        json!(""),
        json!("none"),
        json!([]),
        json!([1]),
        json!(["auto"]),
        json!({}),
        json!({"enabled": "auto"}),
        json!({"enabled": true, "params": null}),
        json!({"params": {"lr": "auto"}}),
    ];
    match random.below(26) {
        0 => Value::Int("1000000000000000000000000000000".parse().unwrap_or_default()),
        1 => Value::Float(f64::INFINITY),
        2 => Value::Float(f64::NAN),
        3 => Value::Float(-0.0),
        index => node(&choices[(index - 4) % choices.len()]).value,
    }
}

#[test]
fn every_key_of_the_generator_is_listed_once() {
    let distinct: std::collections::BTreeSet<&str> = KEYS.into_iter().collect();
    assert_eq!(distinct.len(), KEYS.len());
}
