//! Optimizer, schedule, clipping and what else training is told: in the config or beside it.

use std::num::NonZeroU64;

use super::{Request, Wish};
use crate::optimizer::OptimizerKind;
use crate::refusal::Refusal;
use crate::scheduler::SchedulerKind;
use crate::target::Target;

/// What the engine builds.
pub(super) struct Training {
    pub(super) optimizer: Option<OptimizerKind>,
    pub(super) scheduler: Option<SchedulerKind>,
}

pub(super) fn resolve(request: &Request, refusals: &mut Vec<Refusal>) -> Training {
    let optimizer = optimizer(request);
    let scheduler = match request.scheduler {
        Wish::Yes(kind) => Some(kind),
        Wish::Open | Wish::No => None,
    };
    judge_optimizer(request, optimizer, scheduler, refusals);
    judge_scheduler(request, scheduler, refusals);
    judge_numbers(request, refusals);
    judge_sections(request, refusals);
    Training { optimizer, scheduler }
}

/// The bare engine has nobody else to build one; front ends build their own unless told otherwise.
fn optimizer(request: &Request) -> Option<OptimizerKind> {
    match request.optimizer {
        Wish::Yes(kind) => Some(kind),
        Wish::No => None,
        Wish::Open => (request.target == Target::DeepSpeed).then_some(OptimizerKind::AdamW),
    }
}

fn judge_optimizer(
    request: &Request,
    optimizer: Option<OptimizerKind>,
    scheduler: Option<SchedulerKind>,
    refusals: &mut Vec<Refusal>,
) {
    let given = request.hyper_parameters;
    match optimizer {
        Some(kind) => {
            let lacks = |name| Refusal::NotAHyperParameter { optimizer: kind, name };
            if given.betas.is_some() && !kind.has_betas() {
                refusals.push(lacks("--betas"));
            }
            if given.epsilon.is_some() && !kind.has_epsilon() {
                refusals.push(lacks("--eps"));
            }
        }
        // The Trainer builds its own optimizer from these.
        None if request.target.is_trainer() => {}
        None => {
            let is_used = |name| name == "--learning-rate" && scheduler.is_some();
            let unused = given.given().filter(|name| !is_used(*name));
            refusals.extend(unused.map(Refusal::HyperParameterWithoutOptimizer));
        }
    }
}

fn judge_scheduler(
    request: &Request,
    scheduler: Option<SchedulerKind>,
    refusals: &mut Vec<Refusal>,
) {
    let steps = request.steps;
    let says_something = steps.warmup.is_some() || steps.total.is_some() || steps.shape.is_some();
    match scheduler {
        None => {
            // The Trainer has a schedule of its own, which however always rises in a line.
            let is_told = request.target.is_trainer() && steps.shape.is_none();
            if says_something && !is_told {
                refusals.push(Refusal::WarmupWithoutScheduler);
            }
        }
        Some(kind) => {
            let is_filled = request.target.fills_placeholders();
            if kind.needs_total_steps() && steps.total.is_none() && !is_filled {
                refusals.push(Refusal::SchedulerWithoutTotal(kind));
            }
        }
    }
    if let (Some(warmup), Some(total)) = (steps.warmup, steps.total)
        && warmup >= total
    {
        let (warmup, total) = (warmup.get(), NonZeroU64::get(total));
        refusals.push(Refusal::WarmupTooLong { warmup, total });
    }
}

fn judge_numbers(request: &Request, refusals: &mut Vec<Refusal>) {
    let given = request.hyper_parameters;
    let mut must_be = |option, value: Option<f64>, is_right: fn(f64) -> bool| {
        if let Some(value) = value.filter(|value| !is_right(*value)) {
            refusals.push(Refusal::OutOfRange { option, value });
        }
    };
    must_be("--learning-rate", given.learning_rate, |x| x.is_finite() && x > 0.0);
    must_be("--eps", given.epsilon, |x| x.is_finite() && x > 0.0);
    must_be("--weight-decay", given.weight_decay, |x| x.is_finite() && x >= 0.0);
    must_be("--clip", request.clipping, |x| x.is_finite() && x >= 0.0);
    let in_unit = |x: f64| (0.0..1.0).contains(&x);
    must_be("--betas", given.betas.map(|(first, _)| first), in_unit);
    must_be("--betas", given.betas.map(|(_, second)| second), in_unit);
}

fn judge_sections(request: &Request, refusals: &mut Vec<Refusal>) {
    if let Some(checkpointing) = request.checkpointing {
        if request.target.fills_placeholders() {
            refusals.push(Refusal::CheckpointingNotRead(request.target));
        }
        if checkpointing.number_checkpoints.is_some() && !checkpointing.partition_activations {
            refusals.push(Refusal::ContiguousWithoutPartition);
        }
    }
    if request.steps_per_print.is_some() && request.target.fills_placeholders() {
        let target = request.target;
        refusals.push(Refusal::Overwritten { key: "steps_per_print", target });
    }
}
