//! What to try when memory ran out: the same training with less of it, one rung at a time.
//!
//! Every rung is the whole config with a few keys changed. The samples per step stay the same, so that the run remains
//! the run that was asked for. Which rung helps depends on which memory is short: offloading moves states into the
//! memory of the host, and does not help when that is full.

use std::num::NonZeroU64;

use serde_json::{Map, Value, json};
use zeropilot_record::Memory;

/// A config that needs less memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// What changed against the config as given, such as `ZeRO-3 + optimizer on host`.
    pub name: String,
    /// The whole config.
    pub config: Map<String, Value>,
    /// Arguments of the training program that change with it.
    pub arguments: Vec<(&'static str, String)>,
}

/// What the training program is told about the batch, where the config leaves it to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchArguments {
    /// `--per_device_train_batch_size`.
    pub micro: Option<NonZeroU64>,
    /// `--gradient_accumulation_steps`.
    pub accumulation: Option<NonZeroU64>,
}

const MICRO_ARGUMENT: &str = "--per_device_train_batch_size";
const ACCUMULATION_ARGUMENT: &str = "--gradient_accumulation_steps";
const MICRO: &str = "train_micro_batch_size_per_gpu";
const ACCUMULATION: &str = "gradient_accumulation_steps";
const GLOBAL: &str = "train_batch_size";

/// The stage of a config.
pub fn stage(config: &Map<String, Value>) -> u64 {
    config.get("zero_optimization").and_then(|zero| zero["stage"].as_u64()).unwrap_or(0)
}

/// The rung below a config, for the memory that was short; `None` at the bottom.
pub fn next(
    config: &Map<String, Value>,
    batch: BatchArguments,
    world: Option<usize>,
    short: Memory,
) -> Option<Rung> {
    higher_stage(config)
        .or_else(|| (short == Memory::Device).then(|| offload(config)).flatten())
        .or_else(|| smaller_batch(config, batch, world))
        .map(|(config, arguments)| Rung { name: name(&config, &arguments), config, arguments })
}

type Changed = (Map<String, Value>, Vec<(&'static str, String)>);

fn zero(config: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    config.entry("zero_optimization").or_insert_with(|| json!({})).as_object_mut()
}

fn higher_stage(config: &Map<String, Value>) -> Option<Changed> {
    let stage = stage(config);
    if stage >= 3 {
        return None;
    }
    let mut changed = config.clone();
    let zero = zero(&mut changed)?;
    zero.insert("stage".to_owned(), json!(stage + 1));
    if stage == 2 {
        // Below stage 3 saving writes the weights as they are; so it shall stay.
        zero.entry("stage3_gather_16bit_weights_on_model_save").or_insert(json!(true));
    }
    Some((changed, Vec::new()))
}

fn offload(config: &Map<String, Value>) -> Option<Changed> {
    let device = |key: &str| {
        let section = config.get("zero_optimization")?.get(key)?;
        section["device"].as_str().filter(|device| *device != "none")
    };
    let key =
        ["offload_optimizer", "offload_param"].into_iter().find(|key| device(key).is_none())?;
    let mut changed = config.clone();
    zero(&mut changed)?.insert(key.to_owned(), json!({"device": "cpu", "pin_memory": true}));
    if !config.contains_key("optimizer") {
        // An optimizer of the script is refused beside an offload, unless it is said to be meant.
        changed.entry("zero_force_ds_cpu_optimizer").or_insert(json!(false));
    }
    Some((changed, Vec::new()))
}

/// Half the micro batch, twice the accumulation.
fn smaller_batch(
    config: &Map<String, Value>,
    batch: BatchArguments,
    world: Option<usize>,
) -> Option<Changed> {
    let whole = |key: &str| config.get(key).and_then(Value::as_u64).filter(|value| *value > 0);
    let of = |key: &str, argument: Option<NonZeroU64>| whole(key).or(argument.map(NonZeroU64::get));
    let global = whole(GLOBAL);
    let (micro, accumulation) = match (of(MICRO, batch.micro), of(ACCUMULATION, batch.accumulation))
    {
        (Some(micro), accumulation) => {
            let derived = || global?.checked_div(micro * u64::try_from(world?).ok()?);
            (micro, accumulation.or_else(derived).unwrap_or(1))
        }
        (None, accumulation) => {
            let accumulation = accumulation.unwrap_or(1);
            let ranks = u64::try_from(world?).ok()?;
            (global?.checked_div(accumulation * ranks)?, accumulation)
        }
    };
    if !micro.is_multiple_of(2) {
        return None;
    }
    let (micro, accumulation) = (micro / 2, accumulation * 2);
    let mut changed = config.clone();
    let mut arguments = Vec::new();
    let says_auto = |key: &str| config.get(key).is_some_and(|value| value == "auto");
    for (key, value) in [(MICRO, micro), (ACCUMULATION, accumulation)] {
        if !says_auto(key) {
            changed.insert(key.to_owned(), json!(value));
        }
    }
    if batch.micro.is_some() || says_auto(MICRO) {
        arguments.push((MICRO_ARGUMENT, micro.to_string()));
    }
    if batch.accumulation.is_some() || says_auto(ACCUMULATION) {
        arguments.push((ACCUMULATION_ARGUMENT, accumulation.to_string()));
    }
    Some((changed, arguments))
}

/// Names of the parts that a ladder changes.
fn name(config: &Map<String, Value>, arguments: &[(&str, String)]) -> String {
    let mut name = format!("ZeRO-{}", stage(config));
    for (key, words) in
        [("offload_optimizer", " + optimizer on host"), ("offload_param", " + weights on host")]
    {
        let section = config.get("zero_optimization").and_then(|zero| zero.get(key));
        if section.is_some_and(|section| section["device"] == "cpu") {
            name.push_str(words);
        }
    }
    let said = arguments.iter().find(|(name, _)| *name == MICRO_ARGUMENT);
    let micro = said.and_then(|(_, value)| value.parse().ok());
    if let Some(micro) = micro.or_else(|| config.get(MICRO).and_then(Value::as_u64)) {
        name.push_str(&format!(", micro batch {micro}"));
    }
    name
}

/// What of another config decides about memory, put into this one: a rung of a plan knows nothing of the user's
/// optimizer and schedule.
pub fn overlaid(config: &Map<String, Value>, plan: &Map<String, Value>) -> Rung {
    let mut changed = config.clone();
    for key in ["zero_optimization", MICRO, ACCUMULATION, GLOBAL, "aio"] {
        if let Some(value) = plan.get(key) {
            changed.insert(key.to_owned(), value.clone());
        }
    }
    if stage(plan) > 0 && !config.contains_key("optimizer") {
        let offloads =
            plan.get("zero_optimization").is_some_and(|zero| zero["offload_optimizer"].is_object());
        if offloads {
            changed.entry("zero_force_ds_cpu_optimizer").or_insert(json!(false));
        }
    }
    Rung { name: name(&changed, &[]), config: changed, arguments: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn descend(config: Value, short: Memory) -> Vec<Rung> {
        let mut config = object(config);
        let mut rungs = Vec::new();
        while let Some(rung) = next(&config, BatchArguments::default(), Some(2), short) {
            config = rung.config.clone();
            rungs.push(rung);
        }
        rungs
    }

    #[test]
    fn the_ladder_goes_down_to_a_micro_batch_of_one() {
        let config = json!({"train_batch_size": 16, MICRO: 4, ACCUMULATION: 2, "optimizer": {},
            "zero_optimization": {"stage": 1}});
        let names: Vec<String> =
            descend(config, Memory::Device).into_iter().map(|rung| rung.name).collect();
        assert_eq!(
            names,
            [
                "ZeRO-2, micro batch 4",
                "ZeRO-3, micro batch 4",
                "ZeRO-3 + optimizer on host, micro batch 4",
                "ZeRO-3 + optimizer on host + weights on host, micro batch 4",
                "ZeRO-3 + optimizer on host + weights on host, micro batch 2",
                "ZeRO-3 + optimizer on host + weights on host, micro batch 1",
            ]
        );
    }

    #[test]
    fn a_full_host_is_not_filled_further() {
        let config = json!({"train_batch_size": 16, MICRO: 4, "zero_optimization": {"stage": 2}});
        let rungs = descend(config, Memory::Host);
        assert!(rungs.iter().all(|rung| !rung.name.contains("host")), "{rungs:?}");
        assert_eq!(rungs.len(), 3);
    }

    #[test]
    fn every_rung_trains_on_the_same_samples() {
        for config in [
            json!({GLOBAL: 16, MICRO: 4, ACCUMULATION: 2}),
            json!({GLOBAL: 16, MICRO: 4}),
            json!({MICRO: 4, ACCUMULATION: 2}),
            json!({GLOBAL: 16, ACCUMULATION: 2}),
        ] {
            let rungs = descend(config.clone(), Memory::Device);
            let last = &rungs.last().expect("a rung").config;
            let number = |key: &str| last[key].as_u64().expect("a number");
            assert_eq!(number(MICRO) * number(ACCUMULATION) * 2, 16, "{config}");
        }
    }
}
