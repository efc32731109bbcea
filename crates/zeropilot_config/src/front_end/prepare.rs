//! `Accelerator.prepare` up to the call of the engine.
//!
//! It works out the batch sizes, checks that the objects from the code fit the sections of the
//! config, fills what is still `"auto"`, and refuses what nobody can fill. It never compares.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use super::arguments::{Number, OptimizerInCode, SchedulerInCode};
use super::config_tree::leaf_keys;
use super::model::{Buckets, PERSISTENCE_THRESHOLD, PREFETCH_BUCKET_SIZE, REDUCE_BUCKET_SIZE};
use super::problem::{Operation, ProblemKind};
use super::run::{Offer, Read, Run, Step, Stopped, Surroundings};
use crate::python::{self, is_auto, python_type};
use crate::syntax::Value;

const MICRO_BATCH: &str = "train_micro_batch_size_per_gpu";
const ACCUMULATION: &str = "gradient_accumulation_steps";
const GLOBAL_BATCH: &str = "train_batch_size";

/// The objects from the code.
pub(super) struct Given {
    pub(super) loaders: Option<Vec<Option<u64>>>,
    pub(super) split_batches: Option<bool>,
    pub(super) smallest_batch: bool,
    pub(super) gradient_accumulation_steps: Option<i64>,
    pub(super) optimizer: OptimizerInCode,
    pub(super) scheduler: SchedulerInCode,
}

/// What is filled into `"auto"` keys at the end.
type Offers = Vec<(&'static str, Offer)>;

/// Prepares the model with everything else.
pub(super) fn model(run: &mut Run, given: &Given, surroundings: &Surroundings<'_>) -> Step {
    let mut offers = batch(run, given, surroundings.world_size)?;
    check_optimizer_and_scheduler(run, given)?;
    offers.extend(bucket_offers(run, surroundings)?);
    offers.extend(optimizer_offers(given));
    offers.extend(scheduler_offers(given, surroundings.world_size));
    fill_or_refuse(run, &offers)?;
    match given.optimizer {
        OptimizerInCode::Torch { .. } => read_offload_of_the_optimizer(run),
        _ => Ok(()),
    }
}

/// Works out the batch sizes, which happens for a loader prepared alone as well.
pub(super) fn batch(run: &mut Run, given: &Given, world_size: Option<u64>) -> Step<Offers> {
    check_tensor_parallel_size(run)?;
    check_loaders(run, given, world_size)?;
    let micro = if run.holds_auto(MICRO_BATCH)? {
        loader_batch(run, given, world_size)?
            .map_or(Micro::Unknown, |batch| Micro::Known(Value::Int(batch.into())))
    } else {
        match run.read(MICRO_BATCH)? {
            Read::Pending => Micro::Unknown,
            Read::There(node) if !matches!(node.value, Value::Null) => {
                Micro::Known(node.value.clone())
            }
            _ => Micro::Absent,
        }
    };
    let steps = given.gradient_accumulation_steps.map(|steps| Number::Int(steps).to_value());
    run.fill(ACCUMULATION, Offer::new(steps, "gradient_accumulation_steps of the Accelerator"))?;

    let mut offers = vec![
        ("gradient_clipping", Offer::known(Value::Float(1.0), "accelerate's default")),
        (
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            Offer::known(Value::Bool(false), "accelerate's default"),
        ),
    ];
    let micro = match micro {
        Micro::Absent => return Ok(offers),
        Micro::Unknown => None,
        Micro::Known(value) => Some(value),
    };
    let global = global_batch(run, micro.as_ref(), world_size)?;
    offers.push((MICRO_BATCH, Offer::new(micro, "batch_size of the dataloaders")));
    offers.push((GLOBAL_BATCH, Offer::new(global, "train_batch_size (calculated)")));
    Ok(offers)
}

enum Micro {
    Absent,
    Unknown,
    Known(Value),
}

/// The size of the tensor-parallel group is compared with 1, which only numbers can be.
fn check_tensor_parallel_size(run: &mut Run) -> Step {
    if let Read::There(node) = run.read_strictly("tensor_parallel", "autotp_size")?
        && python::Number::of(&node.value).is_none()
    {
        let (found, span) = (python_type(&node.value), node.span);
        let kind = ProblemKind::Unusable { found, operation: Operation::CompareWithOne };
        return Err(run.stop(kind, "tensor_parallel.autotp_size", span));
    }
    Ok(())
}

fn check_loaders(run: &mut Run, given: &Given, world_size: Option<u64>) -> Step {
    let (Some(loaders), Some(true)) = (&given.loaders, given.split_batches) else { return Ok(()) };
    for batch_size in loaders {
        match (batch_size, world_size) {
            (None, _) => return Err(run.stop_at_root(ProblemKind::DataloaderWithoutBatchSize)),
            (Some(batch_size), Some(world_size)) if batch_size % world_size.max(1) != 0 => {
                let kind = ProblemKind::UnevenSplit { batch_size: *batch_size, world_size };
                return Err(run.stop_at_root(kind));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The micro batch taken from the loaders; `None` if not known.
fn loader_batch(run: &mut Run, given: &Given, world_size: Option<u64>) -> Step<Option<u64>> {
    let Some(loaders) = &given.loaders else { return Ok(None) };
    let span = run.span_of(MICRO_BATCH);
    if loaders.is_empty() {
        return Err(run.stop(ProblemKind::NoDataloader, MICRO_BATCH, span));
    }
    let Some(sizes) = loaders.iter().copied().collect::<Option<Vec<u64>>>() else {
        return Err(run.stop(ProblemKind::DataloaderWithoutBatchSize, MICRO_BATCH, span));
    };
    let size = if given.smallest_batch { sizes.iter().min() } else { sizes.iter().max() };
    Ok(match (size, given.split_batches, world_size) {
        (Some(size), Some(false), _) => Some(*size),
        (Some(size), Some(true), Some(world_size)) => Some(size / world_size.max(1)),
        _ => None,
    })
}

/// `micro * accumulation * processes`, calculated whether or not it is needed.
fn global_batch(
    run: &mut Run,
    micro: Option<&Value>,
    world_size: Option<u64>,
) -> Step<Option<Value>> {
    let accumulation = match run.read(ACCUMULATION)? {
        Read::Pending => None,
        Read::There(node) => Some(node.value.clone()),
        Read::Absent => Some(Value::Null),
    };
    let one = python::Number::from_usize(1);
    let mut product = one.clone();
    let mut complete = world_size.is_some();
    let world = world_size.map(|world_size| Value::Int(world_size.into()));
    for (key, factor) in [
        (MICRO_BATCH, micro),
        (ACCUMULATION, accumulation.as_ref()),
        (GLOBAL_BATCH, world.as_ref()),
    ] {
        let Some(factor) = factor else {
            complete = false;
            continue;
        };
        match python::Number::of(factor).and_then(|factor| product.multiply(&factor).ok()) {
            Some(next) => product = next,
            None => {
                let span = run.span_of(key);
                let kind = ProblemKind::Unusable {
                    found: python_type(factor),
                    operation: Operation::Multiply,
                };
                return Err(run.stop(kind, key, span));
            }
        }
    }
    Ok(product.floor_divide(&one).ok().filter(|_| complete).map(Value::from))
}

fn check_optimizer_and_scheduler(run: &mut Run, given: &Given) -> Step {
    let (optimizer_section, scheduler_section) = (run.has("optimizer"), run.has("scheduler"));
    match given.optimizer {
        OptimizerInCode::Torch { .. } if optimizer_section => {
            let span = run.span_of("optimizer");
            return Err(run.stop(ProblemKind::OptimizerInConfigAndCode, "optimizer", span));
        }
        OptimizerInCode::Dummy { .. } if !optimizer_section => {
            return Err(run.stop_at_root(ProblemKind::DummyOptimizerWithoutSection));
        }
        OptimizerInCode::Torch { .. } => {
            run.assign(
                "",
                "zero_allow_untested_optimizer",
                Value::Bool(true),
                "an optimizer in the code",
            )?;
        }
        _ => {}
    }
    match given.scheduler {
        SchedulerInCode::Torch if scheduler_section => {
            let span = run.span_of("scheduler");
            return Err(run.stop(ProblemKind::SchedulerInConfigAndCode, "scheduler", span));
        }
        SchedulerInCode::Dummy { callable: false, .. } if !scheduler_section => {
            return Err(run.stop_at_root(ProblemKind::DummySchedulerWithoutSection));
        }
        _ => {}
    }
    if matches!(
        (given.optimizer, given.scheduler),
        (OptimizerInCode::Dummy { .. }, SchedulerInCode::Torch)
    ) {
        return Err(run.stop_at_root(ProblemKind::DummyOptimizerWithRealScheduler));
    }
    Ok(())
}

/// The bucket keys that still wait for the hidden size.
pub(super) fn bucket_keys_on_auto(run: &mut Run) -> Step<Vec<&'static str>> {
    let mut keys = Vec::new();
    for key in [REDUCE_BUCKET_SIZE, PREFETCH_BUCKET_SIZE, PERSISTENCE_THRESHOLD] {
        if run.holds_auto(key)? {
            keys.push(key);
        }
    }
    Ok(keys)
}

fn bucket_offers(run: &mut Run, surroundings: &Surroundings<'_>) -> Step<Offers> {
    let keys = bucket_keys_on_auto(run)?;
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let Some(model) = surroundings.model else {
        return Ok(keys
            .into_iter()
            .map(|key| (key, Offer::new(None, "model.config.hidden_size")))
            .collect());
    };
    let Some(hidden_size) = model.hidden_size_for_accelerate() else {
        let span = run.span_of(keys[0]);
        return Err(run.stop(ProblemKind::NoHiddenSize { keys: keys.clone() }, keys[0], span));
    };
    let buckets = Buckets::of(hidden_size);
    Ok(vec![
        (REDUCE_BUCKET_SIZE, Offer::known(buckets.reduce, "model.config.hidden_size")),
        (PREFETCH_BUCKET_SIZE, Offer::known(buckets.prefetch, "model.config.hidden_size")),
        (PERSISTENCE_THRESHOLD, Offer::known(buckets.persistence, "model.config.hidden_size")),
    ])
}

fn optimizer_offers(given: &Given) -> Offers {
    match given.optimizer {
        OptimizerInCode::Dummy { lr, weight_decay } => vec![
            ("optimizer.params.lr", Offer::new(lr.map(Number::to_value), "lr of DummyOptim")),
            (
                "optimizer.params.weight_decay",
                Offer::new(weight_decay.map(Number::to_value), "weight_decay of DummyOptim"),
            ),
        ],
        _ => Vec::new(),
    }
}

fn scheduler_offers(given: &Given, world_size: Option<u64>) -> Offers {
    let SchedulerInCode::Dummy { total_num_steps, warmup_num_steps, callable: false } =
        given.scheduler
    else {
        return Vec::new();
    };
    let max_lr = match given.optimizer {
        OptimizerInCode::Absent => Some(Value::Null),
        OptimizerInCode::Dummy { lr, .. } | OptimizerInCode::Torch { lr } => {
            lr.map(Number::to_value)
        }
    };
    let warmup = warmup_num_steps.map(|steps| Number::Int(steps.max(1)).to_value());
    let mut offers = vec![
        ("scheduler.params.warmup_min_lr", Offer::known(Value::Int(BigInt::from(0)), "always 0")),
        ("scheduler.params.warmup_max_lr", Offer::new(max_lr, "lr of the scheduler's optimizer")),
        (
            "scheduler.params.warmup_num_steps",
            Offer::new(warmup, "warmup_num_steps of DummyScheduler"),
        ),
    ];
    if total_num_steps != Some(None) {
        let total =
            total_num_steps.flatten().and_then(|steps| match (given.split_batches, world_size) {
                (Some(true), _) => Some(BigInt::from(steps)),
                (Some(false), Some(world_size)) => {
                    BigInt::from_f64((steps.to_f64()? / world_size.to_f64()?).ceil())
                }
                _ => None,
            });
        let offer = Offer::new(total.map(Value::Int), "total_num_steps of DummyScheduler");
        offers.push(("scheduler.params.total_num_steps", offer));
    }
    offers
}

/// Fills every `"auto"` there is an offer for. All others are noted before it stops, though the
/// library names only the first.
fn fill_or_refuse(run: &mut Run, offers: &Offers) -> Step {
    let before = run.problems.len();
    for key in leaf_keys(&run.root) {
        let Read::There(node) = run.read(&key)? else { continue };
        if !is_auto(&node.value) {
            continue;
        }
        let span = node.span;
        match offers.iter().find(|(offered, _)| *offered == key) {
            Some((_, offer)) => run.fill(&key, offer.clone())?,
            None => run.note(ProblemKind::LeftoverAuto, &key, span),
        }
    }
    if run.problems.len() > before { Err(Stopped) } else { Ok(()) }
}

/// With an optimizer from the code, the offload section is read once more; null raises there.
fn read_offload_of_the_optimizer(run: &mut Run) -> Step {
    for section in ["zero_optimization", "zero_optimization.offload_optimizer"] {
        if let Read::There(node) = run.read(section)?
            && !matches!(node.value, Value::Object(_))
        {
            let (found, span) = (python_type(&node.value), node.span);
            return Err(run.stop(ProblemKind::NotAnObject { found }, section, span));
        }
    }
    Ok(())
}
