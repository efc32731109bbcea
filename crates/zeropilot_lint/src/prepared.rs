//! What a script hands to accelerate's `prepare`, as far as it is written out.

use zeropilot_config::front_end::{AccelerateArguments, Number, OptimizerInCode, SchedulerInCode};
use zeropilot_job::{Call, Launch, PythonScript, Value};

/// Optimizers by the names under which they are imported.
const OPTIMIZERS: [&str; 8] =
    ["Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "Adafactor", "Lion", "NAdam"];

/// Something that is handed over.
enum Handed {
    Loader(Option<u64>),
    Optimizer(OptimizerInCode),
    Scheduler(SchedulerInCode),
    Model,
}

/// Adds what the one call of `prepare` is handed to what the user did not say.
pub(crate) fn add_to(launch: &Launch, arguments: &mut AccelerateArguments) {
    let Some(script) = launch.script.as_ref() else { return };
    let Some(handed) = handed(script) else { return };
    // One thing that is not known may be a loader, an optimizer or a scheduler.
    let is_whole = handed.iter().all(Option::is_some);
    let mut loaders = Vec::new();
    for thing in handed.into_iter().flatten() {
        match thing {
            Handed::Loader(size) => loaders.push(size),
            Handed::Optimizer(optimizer) => {
                arguments.optimizer = arguments.optimizer.or(Some(optimizer));
            }
            Handed::Scheduler(scheduler) => {
                arguments.scheduler = arguments.scheduler.or(Some(scheduler));
            }
            Handed::Model => {}
        }
    }
    if !is_whole {
        return;
    }
    arguments.optimizer = arguments.optimizer.or(Some(OptimizerInCode::Absent));
    arguments.scheduler = arguments.scheduler.or(Some(SchedulerInCode::Absent));
    // A size that is computed is not known; `None` would say that there is none.
    if loaders.iter().all(Option::is_some) {
        arguments.dataloader_batch_sizes =
            arguments.dataloader_batch_sizes.take().or(Some(loaders));
    }
}

/// What each argument of the one call of `prepare` is; `None` inside for what is not known.
fn handed(script: &PythonScript) -> Option<Vec<Option<Handed>>> {
    let accelerator = script.accelerator()?;
    let callee = format!("{accelerator}.prepare");
    let mut calls = script.calls.iter().filter(|call| call.callee == callee);
    let prepare = calls.next().filter(|_| calls.next().is_none())?;
    if prepare.has_more || !prepare.keywords.is_empty() || prepare.positional.is_empty() {
        return None;
    }
    let count = prepare.positional.len();
    Some((0..count).map(|index| thing(script, prepare, prepare.handed(index, "")?)).collect())
}

/// What a name stands for: the last thing before that is bound to it.
fn thing(script: &PythonScript, prepare: &Call, name: &str) -> Option<Handed> {
    let before = script.calls.iter().filter(|call| prepare.follows(call));
    let mut made = before.filter(|call| call.bound_to.as_deref() == Some(name));
    // Made in one of two ways, it depends on the way through the script.
    let call = made.next().filter(|_| made.next().is_none())?;
    if call.condition.is_some() || !call.questions.is_empty() {
        return None;
    }
    let kind = call.name();
    Some(match kind {
        "from_pretrained" | "from_config" => Handed::Model,
        "DataLoader" => Handed::Loader(batch_size(call)),
        "DummyOptim" => Handed::Optimizer(OptimizerInCode::Dummy {
            lr: number(call, 1, "lr")?,
            weight_decay: number(call, 2, "weight_decay")?,
        }),
        "DummyScheduler" => Handed::Scheduler(SchedulerInCode::Dummy {
            total_num_steps: None,
            warmup_num_steps: None,
            callable: call.keyword("lr_scheduler_callable").is_some(),
        }),
        "get_scheduler" => Handed::Scheduler(SchedulerInCode::Torch),
        _ if kind.starts_with("get_") && kind.contains("_schedule") => {
            Handed::Scheduler(SchedulerInCode::Torch)
        }
        _ if call.callee.contains("lr_scheduler.") => Handed::Scheduler(SchedulerInCode::Torch),
        _ if call.callee.starts_with("torch.optim.") || OPTIMIZERS.contains(&kind) => {
            Handed::Optimizer(OptimizerInCode::Torch { lr: number(call, 1, "lr")? })
        }
        _ if call.callee.starts_with("torch.nn.") || call.callee.starts_with("nn.") => {
            Handed::Model
        }
        _ => return None,
    })
}

/// The size of a loader's batches, one if it does not say; `None` if that is not written out.
fn batch_size(call: &Call) -> Option<u64> {
    if call.keyword("batch_sampler").is_some() || call.has_more {
        return None;
    }
    match call.argument(1, "batch_size") {
        None => Some(1),
        Some((Value::Literal(size), _)) => size.parse().ok(),
        Some(_) => None,
    }
}

/// A number: inside `None` if it is not given, outside if it is not written out.
fn number(call: &Call, index: usize, name: &str) -> Option<Option<Number>> {
    match call.argument(index, name) {
        _ if call.has_more => None,
        None => Some(None),
        Some((Value::Literal(text), _)) => match text.parse::<i64>() {
            Ok(number) => Some(Some(Number::Int(number))),
            Err(_) => text.parse().ok().map(|number| Some(Number::Float(number))),
        },
        Some(_) => None,
    }
}
