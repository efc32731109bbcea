//! What to try when memory ran out: the same training with less of it, one fallback at a time.
//!
//! Every fallback is the whole config with a few keys changed. The samples per step stay the same, so that the run remains
//! the run that was asked for. Which fallback helps depends on which memory is short: offloading moves states into the
//! memory of the host, and does not help when that is full.

mod batch;
mod planned;

use serde_json::{Map, Value, json};
use zeropilot_record::{Memory, Offload, Strategy};

use self::batch::{ACCUMULATION, ACCUMULATION_ARGUMENT, Changed, MICRO, MICRO_ARGUMENT};
pub use self::batch::{Batch, BatchArguments};
pub use self::planned::{PlannedFallback, overlaid};

/// A config that needs less memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Fallback {
    /// What of it decides about memory.
    pub strategy: Strategy,
    /// The whole config.
    pub config: Map<String, Value>,
    /// Arguments of the training program that change with it.
    pub arguments: Vec<(&'static str, String)>,
}

/// The stage of a config.
pub fn stage(config: &Map<String, Value>) -> u64 {
    config.get("zero_optimization").and_then(|zero| zero["stage"].as_u64()).unwrap_or(0)
}

/// The fallback below a config, for the memory that was short; `None` at the bottom.
pub fn next(
    config: &Map<String, Value>,
    batch: BatchArguments,
    world: Option<usize>,
    short: Memory,
) -> Option<Fallback> {
    next_within(config, batch, world, short, &|_| true)
}

/// The same, among stages that may be used.
pub fn next_within(
    config: &Map<String, Value>,
    batch: BatchArguments,
    world: Option<usize>,
    short: Memory,
    may_use: &dyn Fn(u64) -> bool,
) -> Option<Fallback> {
    higher_stage(config)
        .filter(|(config, _)| may_use(stage(config)))
        .or_else(|| (short == Memory::Device).then(|| offload(config)).flatten())
        .or_else(|| smaller_batch(config, batch, world))
        .map(|(config, arguments)| Fallback {
            strategy: strategy(&config, &arguments),
            config,
            arguments,
        })
}

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
    // Weights are partitioned, and can be offloaded, in stage 3 alone.
    let keys = ["offload_optimizer", "offload_param"];
    let keys = &keys[..if stage(config) == 3 { 2 } else { 1 }];
    let key = *keys.iter().find(|key| device(key).is_none())?;
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
    arguments: BatchArguments,
    world: Option<usize>,
) -> Option<Changed> {
    let Batch { micro, accumulation } = Batch::of(config, arguments, world)?;
    if !micro.is_multiple_of(2) {
        return None;
    }
    Some(Batch { micro: micro / 2, accumulation: accumulation * 2 }.put(config, arguments))
}

fn strategy(config: &Map<String, Value>, arguments: &[(&str, String)]) -> Strategy {
    let offload = |key: &str| {
        let section = config.get("zero_optimization").and_then(|zero| zero.get(key));
        match section.and_then(|section| section["device"].as_str()) {
            Some("cpu") => Offload::Cpu,
            Some("nvme") => Offload::Nvme,
            _ => Offload::None,
        }
    };
    let number = |key: &str, argument: &str| {
        let told = arguments.iter().find(|(name, _)| *name == argument);
        let told = told.and_then(|(_, value)| value.parse().ok());
        told.or_else(|| config.get(key).and_then(Value::as_u64))
    };
    Strategy {
        stage: stage(config),
        offload_optimizer: offload("offload_optimizer"),
        offload_param: offload("offload_param"),
        micro_batch: number(MICRO, MICRO_ARGUMENT),
        gradient_accumulation_steps: number(ACCUMULATION, ACCUMULATION_ARGUMENT),
    }
}

#[cfg(test)]
mod tests {
    use super::batch::GLOBAL;
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn descend(config: Value, short: Memory) -> Vec<Fallback> {
        descend_with(config, BatchArguments::default(), short)
    }

    fn descend_with(config: Value, mut arguments: BatchArguments, short: Memory) -> Vec<Fallback> {
        let mut config = object(config);
        let mut fallbacks = Vec::new();
        while let Some(fallback) = next(&config, arguments, Some(2), short) {
            config = fallback.config.clone();
            arguments = arguments.with(&fallback.arguments);
            fallbacks.push(fallback);
        }
        fallbacks
    }

    #[test]
    fn fallbacks_go_down_to_a_micro_batch_of_one() {
        let config = json!({"train_batch_size": 16, MICRO: 4, ACCUMULATION: 2, "optimizer": {},
            "zero_optimization": {"stage": 1}});
        let strategies: Vec<_> = descend(config, Memory::Device)
            .into_iter()
            .map(|Fallback { strategy, .. }| {
                let batch = (strategy.micro_batch, strategy.gradient_accumulation_steps);
                (strategy.stage, strategy.offload_optimizer, strategy.offload_param, batch)
            })
            .collect();
        let batch = |micro, accumulation| (Some(micro), Some(accumulation));
        assert_eq!(
            strategies,
            [
                (2, Offload::None, Offload::None, batch(4, 2)),
                (3, Offload::None, Offload::None, batch(4, 2)),
                (3, Offload::Cpu, Offload::None, batch(4, 2)),
                (3, Offload::Cpu, Offload::Cpu, batch(4, 2)),
                (3, Offload::Cpu, Offload::Cpu, batch(2, 4)),
                (3, Offload::Cpu, Offload::Cpu, batch(1, 8)),
            ]
        );
    }

    #[test]
    fn a_batch_that_the_program_is_told_comes_to_its_end_too() {
        let config =
            json!({MICRO: "auto", ACCUMULATION: "auto", "zero_optimization": {"stage": 3}});
        let arguments =
            BatchArguments { micro: 4.try_into().ok(), accumulation: 1.try_into().ok() };
        let fallbacks = descend_with(config, arguments, Memory::Host);
        let told: Vec<&str> =
            fallbacks.iter().map(|fallback| fallback.arguments[0].1.as_str()).collect();
        assert_eq!(told, ["2", "1"]);
    }

    #[test]
    fn a_full_host_is_not_filled_further() {
        let config = json!({"train_batch_size": 16, MICRO: 4, "zero_optimization": {"stage": 2}});
        let fallbacks = descend(config, Memory::Host);
        assert!(
            fallbacks.iter().all(|fallback| fallback.strategy.offload_optimizer == Offload::None),
            "{fallbacks:?}"
        );
        assert_eq!(fallbacks.len(), 3);
    }

    #[test]
    fn every_fallback_trains_on_the_same_samples() {
        for config in [
            json!({GLOBAL: 16, MICRO: 4, ACCUMULATION: 2}),
            json!({GLOBAL: 16, MICRO: 4}),
            json!({MICRO: 4, ACCUMULATION: 2}),
            json!({GLOBAL: 16, ACCUMULATION: 2}),
        ] {
            let fallbacks = descend(config.clone(), Memory::Device);
            let last = &fallbacks.last().expect("a fallback").config;
            let number = |key: &str| last[key].as_u64().expect("a number");
            assert_eq!(number(MICRO) * number(ACCUMULATION) * 2, 16, "{config}");
        }
    }

    #[test]
    fn a_stage_that_may_not_be_used_is_passed_over() {
        let config = object(json!({"train_batch_size": 16, MICRO: 4, "optimizer": {},
            "zero_optimization": {"stage": 2}}));
        let below = |config: &Map<String, Value>| {
            let stays = |stage| stage < 3;
            next_within(config, BatchArguments::default(), Some(2), Memory::Device, &stays)
        };
        let first = below(&config).expect("a fallback");
        assert_eq!((first.strategy.stage, first.strategy.offload_optimizer), (2, Offload::Cpu));
    }
}
