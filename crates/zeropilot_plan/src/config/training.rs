//! Optimizer, schedule, activation checkpointing, disk and log.

use serde_json::{Map, Value, json};

use super::{AUTO, object};
use crate::checkpointing::{ActivationCheckpointing, AsyncIo};
use crate::optimizer::OptimizerKind;
use crate::recipe::Recipe;
use crate::scheduler::SchedulerKind;
use crate::target::Target;

pub(super) fn sections(recipe: &Recipe) -> Map<String, Value> {
    object([
        ("optimizer", recipe.optimizer.map(|kind| optimizer(recipe, kind))),
        ("scheduler", recipe.scheduler.map(|kind| scheduler(recipe, kind))),
        ("activation_checkpointing", recipe.checkpointing.as_ref().map(checkpointing)),
        ("aio", recipe.async_io.as_ref().map(async_io)),
        ("steps_per_print", recipe.steps_per_print.map(Value::from)),
    ])
}

fn of_type(name: &str, params: Map<String, Value>) -> Value {
    json!({"type": name, "params": params})
}

/// A number, or who fills it: the Trainer always does, accelerate if nobody said a number.
fn number_or_auto(recipe: &Recipe, given: Option<Value>) -> Option<Value> {
    match recipe.target {
        Target::DeepSpeed => given,
        Target::Accelerate => Some(given.unwrap_or_else(|| Value::from(AUTO))),
        _ => Some(Value::from(AUTO)),
    }
}

fn optimizer(recipe: &Recipe, kind: OptimizerKind) -> Value {
    let given = recipe.hyper_parameters;
    let is_trainer = recipe.target.is_trainer();
    // accelerate fills neither of these.
    let literal = |value: Option<Value>| if is_trainer { Some(Value::from(AUTO)) } else { value };
    let learning_rate = match recipe.target {
        Target::DeepSpeed => Some(given.learning_rate_or_default()),
        _ => given.learning_rate,
    };
    let betas = given.betas.map(|(first, second)| json!([first, second]));
    let params = object([
        ("lr", number_or_auto(recipe, learning_rate.map(Value::from))),
        ("betas", kind.has_betas().then(|| literal(betas)).flatten()),
        ("eps", kind.has_epsilon().then(|| literal(given.epsilon.map(Value::from))).flatten()),
        ("weight_decay", number_or_auto(recipe, given.weight_decay.map(Value::from))),
        // Without this the engine's Adam decays weights as AdamW does.
        ("adam_w_mode", (kind == OptimizerKind::Adam).then(|| Value::from(false))),
    ]);
    of_type(kind.type_name(), params)
}

fn scheduler(recipe: &Recipe, kind: SchedulerKind) -> Value {
    let steps = recipe.steps;
    let warmup = steps.warmup.map(|steps| Value::from(steps.get()));
    let total = steps.total.map(|steps| Value::from(steps.get()));
    let shape = steps.shape.map(|shape| Value::from(shape.name()));
    let peak = match recipe.target {
        Target::DeepSpeed => Some(recipe.hyper_parameters.learning_rate_or_default()),
        _ => recipe.hyper_parameters.learning_rate,
    };
    let filled = |given| number_or_auto(recipe, given);
    let rise = [
        ("warmup_min_lr", filled(None)),
        ("warmup_max_lr", filled(peak.map(Value::from))),
        ("warmup_num_steps", filled(warmup.clone())),
        ("warmup_type", shape.clone()),
    ];
    let params = match kind {
        SchedulerKind::WarmupLr => object(rise),
        SchedulerKind::WarmupDecayLr => {
            object([("total_num_steps", filled(total))].into_iter().chain(rise))
        }
        // Its height is the optimizer's learning rate.
        SchedulerKind::WarmupCosineLr => object([
            ("total_num_steps", filled(total)),
            ("warmup_num_steps", filled(warmup)),
            ("warmup_type", shape),
        ]),
        // Nobody fills the keys of this one.
        SchedulerKind::OneCycle => object([
            ("cycle_min_lr", Some(Value::from(0.0))),
            ("cycle_max_lr", Some(Value::from(recipe.hyper_parameters.learning_rate_or_default()))),
            ("cycle_first_step_size", warmup),
        ]),
    };
    of_type(kind.type_name(), params)
}

fn checkpointing(section: &ActivationCheckpointing) -> Value {
    let flag = |on: bool| on.then(|| Value::from(true));
    Value::Object(object([
        ("partition_activations", Some(Value::from(section.partition_activations))),
        ("cpu_checkpointing", flag(section.cpu_checkpointing)),
        ("contiguous_memory_optimization", flag(section.number_checkpoints.is_some())),
        ("number_checkpoints", section.number_checkpoints.map(Value::from)),
        ("synchronize_checkpoint_boundary", flag(section.synchronize_checkpoint_boundary)),
        ("profile", flag(section.profile)),
    ]))
}

fn async_io(section: &AsyncIo) -> Value {
    Value::Object(object([
        ("block_size", section.block_size.map(Value::from)),
        ("queue_depth", section.queue_depth.map(Value::from)),
        ("intra_op_parallelism", section.intra_op_parallelism.map(Value::from)),
        ("single_submit", section.single_submit.map(Value::from)),
        ("overlap_events", section.overlap_events.map(Value::from)),
    ]))
}
