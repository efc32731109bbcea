//! The HF Trainer: its own pass over the config, then accelerate's.
//!
//! In the order of a real run: `TrainingArguments` processes the config and builds accelerate's
//! plugin, `Trainer` makes the `Accelerator`, the training loop prepares its loader, finishes the
//! config now that model and steps are known, and prepares the model.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use super::arguments::{Number, OptimizerInCode, SchedulerInCode, TrainerArguments};
use super::model::{Buckets, PERSISTENCE_THRESHOLD, PREFETCH_BUCKET_SIZE, REDUCE_BUCKET_SIZE};
use super::plugin;
use super::prepare::{self, Given};
use super::problem::{Operation, ProblemKind};
use super::run::{Offer, Read, Run, Step, Surroundings};
use crate::python::{self, python_type};
use crate::syntax::{Node, Value};

/// Takes the config through.
pub(super) fn run(root: &Node, surroundings: &Surroundings<'_>) -> Run {
    let mut run = Run::new(root);
    // Whatever stopped it is in the notes.
    let _ = walk(&mut run, surroundings);
    run
}

fn walk(run: &mut Run, surroundings: &Surroundings<'_>) -> Step {
    let arguments = &surroundings.arguments.trainer;
    refuse_conflicting_arguments(run, arguments)?;
    plugin::read_stage_and_offload(run)?;
    process(run, surroundings, true)?;
    let plugin_arguments = &surroundings.arguments.plugin;
    let plugin = plugin::construct(run, plugin_arguments)?;
    plugin::set_mixed_precision(
        run,
        arguments.mixed_precision(),
        plugin_arguments.rocm == Some(true),
    )?;
    if arguments.auto_find_batch_size == Some(true) {
        if plugin.plugin_is_stage_3 {
            return Err(run.stop_at_root(ProblemKind::AutoFindBatchSizeWithStage3));
        }
        // A fresh config object is made from the filled one, with an empty list of mismatches.
        run.forget_mismatches();
        process(run, surroundings, false)?;
    }
    prepare_loader(run, surroundings)?;
    refuse_zero_tensor_parallel_size(run)?;
    finalize(run, surroundings, plugin.config_is_stage_3)?;
    if run.problems.is_empty() {
        prepare_model(run, surroundings)
    } else {
        note_leftovers(run, surroundings);
        Ok(())
    }
}

fn refuse_conflicting_arguments(run: &mut Run, arguments: &TrainerArguments) -> Step {
    let pairs = [
        (arguments.fp16, "fp16", arguments.bf16, "bf16"),
        (arguments.fp16_full_eval, "fp16_full_eval", arguments.bf16_full_eval, "bf16_full_eval"),
    ];
    for (one, first, other, second) in pairs {
        if one == Some(true) && other == Some(true) {
            return Err(run.stop_at_root(ProblemKind::ConflictingArguments { first, second }));
        }
    }
    let negative = match arguments.warmup_steps {
        Some(Number::Int(steps)) => steps < 0,
        Some(Number::Float(steps)) => steps < 0.0,
        None => false,
    };
    if negative {
        return Err(run.stop_at_root(ProblemKind::UnusableArgument { argument: "warmup_steps" }));
    }
    Ok(())
}

/// What is known when the arguments are made.
fn process(run: &mut Run, surroundings: &Surroundings<'_>, compare_batch: bool) -> Step {
    let arguments = &surroundings.arguments.trainer;
    let number = |number: Option<Number>| number.map(Number::to_value);
    let int = |number: Option<i64>| number.map(|number| Value::Int(BigInt::from(number)));
    let micro =
        Offer::new(int(arguments.per_device_train_batch_size), "per_device_train_batch_size");
    run.fill_or_compare("train_micro_batch_size_per_gpu", micro, compare_batch)?;
    let steps =
        Offer::new(int(arguments.gradient_accumulation_steps), "gradient_accumulation_steps");
    run.fill_or_match("gradient_accumulation_steps", steps)?;
    run.fill_or_compare("train_batch_size", global_batch(surroundings), compare_batch)?;
    run.fill_or_match(
        "gradient_clipping",
        Offer::new(number(arguments.max_grad_norm), "max_grad_norm"),
    )?;

    let learning_rate = Offer::new(number(arguments.learning_rate), "learning_rate");
    run.fill_or_match("optimizer.params.lr", learning_rate.clone())?;
    run.fill_or_match("optimizer.params.betas", betas(run, arguments))?;
    run.fill_or_match(
        "optimizer.params.eps",
        Offer::new(number(arguments.adam_epsilon), "adam_epsilon"),
    )?;
    run.fill_or_match(
        "optimizer.params.weight_decay",
        Offer::new(number(arguments.weight_decay), "weight_decay"),
    )?;
    run.fill(
        "scheduler.params.warmup_min_lr",
        Offer::known(Value::Int(BigInt::from(0)), "always 0"),
    )?;
    run.fill_or_match("scheduler.params.warmup_max_lr", learning_rate)?;

    if arguments.save_on_each_node == Some(true) {
        if !run.has("checkpoint") {
            run.assign("", "checkpoint", Value::Object(Vec::new()), "save_on_each_node")?;
        }
        run.assign("checkpoint", "use_node_local_storage", Value::Bool(true), "save_on_each_node")?;
    }
    let fp16 = either(arguments.fp16, arguments.fp16_full_eval);
    run.fill_or_match("fp16.enabled", Offer::new(fp16.map(Value::Bool), "fp16|fp16_full_eval"))?;
    let bf16 = either(arguments.bf16, arguments.bf16_full_eval);
    run.fill_or_match("bf16.enabled", Offer::new(bf16.map(Value::Bool), "bf16|bf16_full_eval"))
}

fn either(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn global_batch(surroundings: &Surroundings<'_>) -> Offer {
    let arguments = &surroundings.arguments.trainer;
    let product = || {
        let world = BigInt::from(surroundings.world_size?);
        Some(
            world
                * arguments.per_device_train_batch_size?
                * arguments.gradient_accumulation_steps?,
        )
    };
    Offer::new(product().map(Value::Int), "train_batch_size (calculated)")
}

fn betas(run: &Run, arguments: &TrainerArguments) -> Offer {
    let span = run.span_of("optimizer.params.betas");
    let pair = || {
        let betas = [arguments.adam_beta1?, arguments.adam_beta2?];
        Some(Value::Array(
            betas.into_iter().map(|beta| Node { span, value: beta.to_value() }).collect(),
        ))
    };
    Offer::new(pair(), "adam_beta1+adam_beta2")
}

/// The training loop prepares its loader alone, before anything else is looked at.
fn prepare_loader(run: &mut Run, surroundings: &Surroundings<'_>) -> Step {
    prepare::batch(run, &given(run), surroundings.world_size).map(|_| ())
}

/// The Trainer divides the number of processes by the size of the tensor-parallel group.
fn refuse_zero_tensor_parallel_size(run: &mut Run) -> Step {
    if let Read::There(node) = run.read_strictly("tensor_parallel", "autotp_size")?
        && python::Number::of(&node.value).is_some_and(|size| size.is_zero())
    {
        let (found, span) = (python_type(&node.value), node.span);
        let kind = ProblemKind::Unusable { found, operation: Operation::DivideBy };
        return Err(run.stop(kind, "tensor_parallel.autotp_size", span));
    }
    Ok(())
}

/// What is known once there are a model and a number of steps.
fn finalize(run: &mut Run, surroundings: &Surroundings<'_>, stage_3: bool) -> Step {
    fill_buckets(run, surroundings, stage_3)?;
    let arguments = &surroundings.arguments.trainer;
    let total = arguments.num_training_steps.map(|steps| Number::Int(steps).to_value());
    run.fill_or_match(
        "scheduler.params.total_num_steps",
        Offer::new(total, "num_training_steps (calculated)"),
    )?;
    let warmup = match warmup_steps(arguments) {
        Ok(steps) => steps.map(|steps| Value::Int(steps.max(BigInt::from(1)))),
        Err(argument) => return Err(run.stop_at_root(ProblemKind::UnusableArgument { argument })),
    };
    run.fill_or_match("scheduler.params.warmup_num_steps", Offer::new(warmup, "warmup_steps"))
}

fn fill_buckets(run: &mut Run, surroundings: &Surroundings<'_>, stage_3: bool) -> Step {
    let keys = prepare::bucket_keys_on_auto(run)?;
    if keys.is_empty() {
        return Ok(());
    }
    let Some(model) = surroundings.model else {
        for key in keys {
            run.fill(key, Offer::new(None, "model.config.hidden_size"))?;
        }
        return Ok(());
    };
    let Some(hidden_size) = model.hidden_size_for_trainer() else {
        let span = run.span_of(keys[0]);
        return Err(run.stop(ProblemKind::NoHiddenSize { keys: keys.clone() }, keys[0], span));
    };
    let buckets = Buckets::of(hidden_size);
    run.fill(REDUCE_BUCKET_SIZE, Offer::known(buckets.reduce, "model.config.hidden_size"))?;
    if stage_3 {
        run.fill(PREFETCH_BUCKET_SIZE, Offer::known(buckets.prefetch, "model.config.hidden_size"))?;
        run.fill(
            PERSISTENCE_THRESHOLD,
            Offer::known(buckets.persistence, "model.config.hidden_size"),
        )?;
    }
    Ok(())
}

/// The number of warm-up steps; `Err` where Python cannot make an integer of it.
fn warmup_steps(arguments: &TrainerArguments) -> Result<Option<BigInt>, &'static str> {
    let whole = |steps: f64| BigInt::from_f64(steps).ok_or("warmup_steps").map(Some);
    match arguments.warmup_steps {
        None => Ok(None),
        Some(Number::Int(steps)) => Ok(Some(BigInt::from(steps))),
        Some(Number::Float(steps)) if steps >= 1.0 => whole(steps.trunc()),
        Some(Number::Float(0.0)) => Ok(Some(BigInt::from(0))),
        Some(Number::Float(share)) => match arguments.num_training_steps {
            Some(steps) => whole((steps.to_f64().unwrap_or(f64::NAN) * share).ceil()),
            None => Ok(None),
        },
    }
}

/// What the Trainer gives to `prepare`.
fn given(run: &Run) -> Given {
    let optimizer = if run.has("optimizer") {
        OptimizerInCode::Dummy {
            lr: Some(Number::Float(0.001)),
            weight_decay: Some(Number::Int(0)),
        }
    } else {
        OptimizerInCode::Torch { lr: None }
    };
    let dummy = |callable| SchedulerInCode::Dummy {
        total_num_steps: Some(None),
        warmup_num_steps: Some(0),
        callable,
    };
    let scheduler = match optimizer {
        _ if run.has("scheduler") => dummy(false),
        OptimizerInCode::Dummy { .. } => dummy(true),
        _ => SchedulerInCode::Absent,
    };
    Given {
        loaders: Some(Vec::new()),
        split_batches: Some(false),
        smallest_batch: true,
        gradient_accumulation_steps: Some(1),
        optimizer,
        scheduler,
    }
}

fn prepare_model(run: &mut Run, surroundings: &Surroundings<'_>) -> Step {
    if !run.has("optimizer") {
        run.assign(
            "",
            "zero_allow_untested_optimizer",
            Value::Bool(true),
            "the Trainer's own optimizer",
        )?;
    }
    let given = given(run);
    prepare::model(run, &given, surroundings)
}

/// A config refused for its mismatches is still searched for placeholders that would be refused
/// next, so that both can be put right at once.
fn note_leftovers(run: &mut Run, surroundings: &Surroundings<'_>) {
    let mut ahead = run.clone();
    ahead.problems.clear();
    let _ = prepare_model(&mut ahead, surroundings);
    let leftovers =
        ahead.problems.into_iter().filter(|problem| problem.kind == ProblemKind::LeftoverAuto);
    run.problems.extend(leftovers);
}
