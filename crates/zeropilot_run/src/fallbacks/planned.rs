//! Fallbacks of a plan, fitted to the config of a run.

use serde_json::{Map, Value, json};
use zeropilot_record::Memory;

use super::batch::{Batch, BatchArguments};
use super::{Fallback, strategy, zero};

/// A fallback that somebody planned.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFallback {
    /// Its config.
    pub config: Map<String, Value>,
    /// Its batch, which the config may leave to the program.
    pub batch: Option<Batch>,
}

/// What of a plan decides about memory, put into this config: a plan knows nothing of the user's optimizer and
/// schedule. Its batch is taken only if the samples per step stay the same, and what it moves to the host only if that
/// is not the memory that is short.
pub fn overlaid(
    config: &Map<String, Value>,
    plan: &PlannedFallback,
    arguments: BatchArguments,
    (world, short): (Option<usize>, Memory),
) -> Fallback {
    let mut changed = config.clone();
    for key in ["zero_optimization", "aio"] {
        if let Some(value) = plan.config.get(key) {
            changed.insert(key.to_owned(), value.clone());
        }
    }
    if short == Memory::Host
        && let Some(zero) = zero(&mut changed)
    {
        let is_to_host = |section: &Value| section["device"] == "cpu";
        zero.retain(|key, section| !(key.starts_with("offload_") && is_to_host(section)));
    }
    let offloads =
        changed.get("zero_optimization").is_some_and(|zero| zero["offload_optimizer"].is_object());
    if offloads && !config.contains_key("optimizer") {
        changed.entry("zero_force_ds_cpu_optimizer").or_insert(json!(false));
    }
    let now = Batch::of(config, arguments, world);
    let planned = plan.batch.filter(|planned| now.is_some_and(|now| now.is_as_large_as(*planned)));
    let (config, arguments) = match planned {
        Some(batch) => batch.put(&changed, arguments),
        None => (changed, Vec::new()),
    };
    Fallback { strategy: strategy(&config, &arguments), config, arguments }
}

#[cfg(test)]
mod tests {
    use zeropilot_record::Offload;

    use super::super::batch::{ACCUMULATION, GLOBAL, MICRO};
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn a_planned_fallback_keeps_the_users_samples_and_optimizer() {
        let config =
            object(json!({GLOBAL: 16, MICRO: 4, ACCUMULATION: 2, "optimizer": {"type": "AdamW"},
            "zero_optimization": {"stage": 1}}));
        let plan = |micro, accumulation| PlannedFallback {
            config: object(json!({MICRO: micro, "zero_optimization": {"stage": 3,
                "offload_optimizer": {"device": "cpu"}}})),
            batch: Some(Batch { micro, accumulation }),
        };
        let fallback =
            overlaid(&config, &plan(1, 8), BatchArguments::default(), (Some(2), Memory::Host));
        assert_eq!(
            (fallback.strategy.stage, fallback.strategy.offload_optimizer),
            (3, Offload::None)
        );
        assert_eq!(
            (&fallback.config[MICRO], &fallback.config[ACCUMULATION]),
            (&json!(1), &json!(8))
        );
        assert_eq!(fallback.config["optimizer"]["type"], "AdamW");
        // A plan for another batch says nothing about this one.
        let other =
            overlaid(&config, &plan(1, 1), BatchArguments::default(), (Some(2), Memory::Device));
        assert_eq!((&other.config[MICRO], &other.config[ACCUMULATION]), (&json!(4), &json!(2)));
        assert_eq!(other.strategy.offload_optimizer, Offload::Cpu);
    }
}
