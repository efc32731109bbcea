//! Elastic training, which engines up to 0.18 compute the batch from.
//!
//! Numbers beyond 2^53 are computed as floats here and exactly in Python; no batch is that large.

use std::collections::BTreeSet;

use num_integer::Integer;
use num_traits::ToPrimitive;

use super::batch::{ACCUMULATION, MICRO, TRAIN};
use super::loader::Loader;
use crate::judge::{Place, get};
use crate::problem::{ElasticityProblem, Expected, ProblemKind};
use crate::python::{Number, PyValue, is_true, parse_float};
use crate::syntax::{Member, Node, Value};

/// The smallest numbers with more divisors than any below them: the factors the engine scales by.
const HIGHLY_COMPOSITE: [u64; 38] = [
    1, 2, 4, 6, 12, 24, 36, 48, 60, 120, 180, 240, 360, 720, 840, 1260, 1680, 2520, 5040, 7560,
    10080, 15120, 20160, 25200, 27720, 45360, 50400, 55440, 83160, 110_880, 166_320, 221_760,
    277_200, 332_640, 498_960, 554_400, 665_280, 720_720,
];

/// The numbers of an `elasticity` section.
struct Elasticity {
    max_batch: f64,
    micro_batches: Vec<u64>,
    min_gpus: f64,
    max_gpus: f64,
    gpus_per_node: f64,
    model_parallel: f64,
    version: f64,
    prefer_larger: bool,
}

/// A batch and the numbers of ranks it can be divided among.
struct Plan {
    batch: f64,
    possible: Vec<f64>,
}

pub(super) fn load(loader: &mut Loader<'_, '_>, world: Option<&Number>) {
    let Some(node) = loader.known("elasticity") else { return };
    let place = Place::top("elasticity");
    let Some(members) = loader.judge.section(node, &place) else { return };
    let Some(enabled) = get(members, "enabled") else { return };
    loader.set("elasticity_enabled", enabled.into());
    if !is_true(&enabled.value) {
        return;
    }
    let Some(section) = read(loader, members, node, &place) else { return };
    loader.set("elastic_model_parallel_size", number_or(members, "model_parallel_size", 1));
    loader.set("num_gpus_per_node", number_or(members, "num_gpus_per_node", 1));
    let ignores =
        get(members, "ignore_non_elastic_batch_info").is_some_and(|node| is_true(&node.value));
    if !ignores && [TRAIN, MICRO, ACCUMULATION].iter().any(|key| loader.get(key).is_some()) {
        report(loader, ElasticityProblem::BatchKeysPresent, node);
    }
    let world = match world {
        Some(Number::Int(world)) => world.to_f64(),
        Some(Number::Float(world)) => Some(*world),
        None => None,
    };
    let Some(world) = world else { return };
    match batch(&section, world) {
        Ok((batch, micro)) => {
            let steps = (batch / (micro * world)).floor();
            loader.set(TRAIN, whole(batch));
            loader.set(MICRO, whole(micro));
            loader.set(ACCUMULATION, whole(steps));
        }
        Err(problem) => report(loader, problem, node),
    }
}

fn number_or(members: &[Member], key: &str, default: i64) -> PyValue {
    get(members, key).map_or(PyValue::from(default), PyValue::from)
}

#[expect(clippy::cast_possible_truncation, reason = "the value is an integer below 2^53")]
fn whole(value: f64) -> PyValue {
    PyValue::from(value as i64)
}

fn report(loader: &mut Loader<'_, '_>, problem: ElasticityProblem, node: &Node) {
    loader.judge.report(ProblemKind::Elasticity(problem), &Place::top("elasticity"), node.span);
}

fn read(
    loader: &mut Loader<'_, '_>,
    members: &[Member],
    node: &Node,
    place: &Place<'_>,
) -> Option<Elasticity> {
    let before = loader.judge.problems.len();
    let mut number = |key: &'static str, default: Option<f64>, at_least: f64| {
        let Some(written) = get(members, key) else {
            if default.is_none() {
                let kind = ProblemKind::MissingKey { key: key.to_owned() };
                loader.judge.report(kind, place, node.span);
            }
            return default.unwrap_or(f64::NAN);
        };
        match float(&written.value) {
            Some(value) if value < at_least => {
                let kind = ProblemKind::Elasticity(ElasticityProblem::OutOfRange);
                loader.judge.report(kind, &place.child(key), written.span);
                value
            }
            Some(value) => value,
            None => {
                loader.judge.wrong(Expected::Float, written, &place.child(key));
                f64::NAN
            }
        }
    };
    let max_batch = number("max_train_batch_size", None, f64::NEG_INFINITY);
    let min_gpus = number("min_gpus", Some(1.0), 1.0);
    let max_gpus = number("max_gpus", Some(10_000.0), 1.0);
    let gpus_per_node = number("num_gpus_per_node", Some(1.0), 1.0);
    let model_parallel = number("model_parallel_size", Some(1.0), 1.0);
    number("min_time", Some(0.0), 0.0);
    if max_gpus < min_gpus {
        report(loader, ElasticityProblem::OutOfRange, node);
    }
    let version = version(loader, members, place, model_parallel);
    let micro_batches = micro_batches(loader, members, node, place);
    let prefer_larger = get(members, "prefer_larger_batch").is_none_or(|node| is_true(&node.value));
    (loader.judge.problems.len() == before).then_some(Elasticity {
        max_batch,
        micro_batches,
        min_gpus,
        max_gpus,
        gpus_per_node,
        model_parallel,
        version,
        prefer_larger,
    })
}

fn float(value: &Value) -> Option<f64> {
    match PyValue::from(value).number()? {
        Number::Int(value) => value.to_f64(),
        Number::Float(value) => Some(value),
    }
}

/// The version of the elastic rules; model parallelism needs the second one.
fn version(
    loader: &mut Loader<'_, '_>,
    members: &[Member],
    place: &Place<'_>,
    model_parallel: f64,
) -> f64 {
    let Some(node) = get(members, "version") else { return 0.2 };
    let version = match &node.value {
        Value::Str(text) => parse_float(text),
        value => float(value),
    };
    match version {
        Some(version) if version == 0.2 || (version == 0.1 && model_parallel <= 1.0) => version,
        _ => {
            let kind = ProblemKind::Elasticity(ElasticityProblem::Version);
            loader.judge.report(kind, &place.child("version"), node.span);
            f64::NAN
        }
    }
}

fn micro_batches(
    loader: &mut Loader<'_, '_>,
    members: &[Member],
    node: &Node,
    place: &Place<'_>,
) -> Vec<u64> {
    let key = "micro_batch_sizes";
    let Some(written) = get(members, key) else {
        loader.judge.report(ProblemKind::MissingKey { key: key.to_owned() }, place, node.span);
        return Vec::new();
    };
    let sizes = match &written.value {
        // An empty list has no common multiple.
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(micro_batch).collect::<Option<Vec<u64>>>()
        }
        _ => None,
    };
    sizes.unwrap_or_else(|| {
        loader.judge.wrong(Expected::ListOfPositiveInts, written, &place.child(key));
        Vec::new()
    })
}

fn micro_batch(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Int(value) => value.to_u64().filter(|size| *size > 0),
        _ => None,
    }
}

/// The global and the micro batch for this number of ranks.
fn batch(section: &Elasticity, world: f64) -> Result<(f64, f64), ElasticityProblem> {
    let plan = if section.version == 0.1 {
        by_ranks(section, section.max_batch, section.min_gpus, section.max_gpus)?
    } else {
        by_nodes(section, world)?
    };
    if !plan.possible.contains(&world) {
        return Err(ElasticityProblem::WorldSizeNotPossible { possible: listed(&plan.possible) });
    }
    let mut sizes = section.micro_batches.clone();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let per_rank = (plan.batch / world).floor();
    let micro = sizes.iter().map(|size| *size as f64).find(|size| per_rank % size == 0.0);
    micro.map(|micro| (plan.batch, micro)).ok_or(ElasticityProblem::NoSolution)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the values are numbers of ranks"
)]
fn listed(possible: &[f64]) -> Vec<u64> {
    possible.iter().take(64).map(|ranks| *ranks as u64).collect()
}

/// The first version: any number of ranks that divides the batch.
fn by_ranks(
    section: &Elasticity,
    max_batch: f64,
    min_gpus: f64,
    max_gpus: f64,
) -> Result<Plan, ElasticityProblem> {
    let smallest = *section.micro_batches.iter().min().ok_or(ElasticityProblem::NoSolution)?;
    let min_gpus = if min_gpus == 0.0 { 1.0 } else { min_gpus };
    let max_gpus = if max_gpus == 0.0 { (max_batch / smallest as f64).floor() } else { max_gpus };
    if !section.micro_batches.iter().all(|size| *size as f64 <= max_batch) {
        return Err(ElasticityProblem::NoSolution);
    }
    let multiple = section.micro_batches.iter().try_fold(1_u64, |multiple, size| {
        (multiple / multiple.gcd(size)).checked_mul(*size).ok_or(ElasticityProblem::NoSolution)
    })?;
    let bases = section.micro_batches.iter().copied().chain([multiple]);
    let candidates =
        bases.map(|base| candidate(base, max_batch)).collect::<Option<BTreeSet<u64>>>();
    let candidates = candidates.ok_or(ElasticityProblem::NoSolution)?;

    let mut best = (0, smallest, None);
    for batch in candidates {
        let ranks = possible_ranks(batch, &section.micro_batches, min_gpus, max_gpus);
        let nearer = if section.prefer_larger { batch > best.1 } else { batch < best.1 };
        if ranks.len() > best.0 || (ranks.len() == best.0 && nearer) {
            best = (ranks.len(), batch, Some(ranks));
        }
    }
    // Where no candidate beats the smallest micro batch, the engine has no list to look ranks up in.
    let possible = best.2.ok_or(ElasticityProblem::NoSolution)?;
    Ok(Plan {
        batch: best.1 as f64,
        possible: possible.iter().map(|ranks| *ranks as f64).collect(),
    })
}

/// The largest scaled batch that stays within the limit.
fn candidate(base: u64, max_batch: f64) -> Option<u64> {
    if base as f64 >= max_batch {
        return Some(base);
    }
    let room = (max_batch / base as f64).floor();
    let next = HIGHLY_COMPOSITE.iter().position(|factor| *factor as f64 > room);
    let factor = match next {
        Some(index) => HIGHLY_COMPOSITE[index - 1],
        None => HIGHLY_COMPOSITE[HIGHLY_COMPOSITE.len() - 1],
    };
    base.checked_mul(factor)
}

/// All divisors, within the limits, of the number of micro batches in the batch.
fn possible_ranks(batch: u64, micro_batches: &[u64], min: f64, max: f64) -> BTreeSet<u64> {
    let mut ranks = BTreeSet::new();
    for size in micro_batches.iter().filter(|size| batch.is_multiple_of(**size)) {
        let count = batch / size;
        let within = |divisor: u64| min <= divisor as f64 && divisor as f64 <= max;
        let mut divisor = 1;
        while divisor * divisor <= count && (divisor as f64) <= max {
            if count.is_multiple_of(divisor) {
                ranks.extend(
                    [divisor, count / divisor].into_iter().filter(|divisor| within(*divisor)),
                );
            }
            divisor += 1;
        }
    }
    ranks
}

/// The second version: whole nodes, some of whose GPUs share a model.
fn by_nodes(section: &Elasticity, world: f64) -> Result<Plan, ElasticityProblem> {
    if section.gpus_per_node % section.model_parallel != 0.0 {
        return Err(ElasticityProblem::NoSolution);
    }
    let per_node = (section.gpus_per_node / section.model_parallel).floor();
    let nodes = |gpus: f64| (gpus / section.gpus_per_node).trunc();
    let max_batch = (section.max_batch / per_node).trunc();
    let plan = by_ranks(section, max_batch, nodes(section.min_gpus), nodes(section.max_gpus))?;
    let possible: Vec<f64> = plan.possible.iter().map(|nodes| nodes * per_node).collect();
    if possible.contains(&(world / section.model_parallel).floor()) {
        return Ok(Plan { batch: plan.batch * per_node, possible });
    }
    let ranks = (world / section.gpus_per_node) * per_node;
    let scaled = section.micro_batches.iter().map(|size| {
        let smallest = *size as f64 * ranks;
        (section.max_batch / smallest).floor() * smallest
    });
    let batch = if section.prefer_larger {
        scaled.fold(f64::NEG_INFINITY, f64::max)
    } else {
        scaled.fold(f64::INFINITY, f64::min)
    };
    Ok(Plan { batch: batch.trunc(), possible: vec![ranks.trunc()] })
}
