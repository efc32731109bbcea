//! The config that accelerate builds from the fields of its own YAML or its options, where no DeepSpeed config is named.

use serde_json::{Map, Value, json};

#[cfg(feature = "scripts")]
use crate::{ACCELERATE_SECTION, Launch, Launcher, Place};

/// The config, and where its first field stands; `None` if accelerate does not start DeepSpeed from fields.
#[cfg(feature = "scripts")]
pub(crate) fn of(launch: &Launch) -> Option<(String, Place)> {
    if launch.launcher != Launcher::Accelerate || !launch.by_accelerate {
        return None;
    }
    let config = built(&|name| launch.accelerate_field(name).map(|said| said.value));
    let first = launch.given.values.iter().find(|said| said.name.starts_with(ACCELERATE_SECTION));
    let place = first.map_or(Place::here(launch.span()), |said| said.place.clone());
    Some((config.to_string(), place))
}

/// The config that the fields make.
pub(crate) fn built(field: &dyn Fn(&str) -> Option<String>) -> Value {
    let device = |name: &str| {
        field(name).filter(|device| device != "none").unwrap_or_else(|| "none".to_owned())
    };
    // What DeepSpeedPlugin uses where a field is absent.
    let stage: i64 = field("zero_stage").and_then(|stage| stage.parse().ok()).unwrap_or(2);
    let accumulation =
        field("gradient_accumulation_steps").and_then(|steps| steps.parse::<i64>().ok());
    let path = |device: &str, name: &str| (device == "nvme").then(|| field(name)).flatten();
    let (optimizer, param) = (device("offload_optimizer_device"), device("offload_param_device"));
    let mut config = Map::new();
    config.insert("train_batch_size".to_owned(), json!("auto"));
    config.insert("train_micro_batch_size_per_gpu".to_owned(), json!("auto"));
    let steps = accumulation.map_or(json!("auto"), |steps| json!(steps));
    config.insert("gradient_accumulation_steps".to_owned(), steps);
    let zero = json!({
        "stage": stage,
        "offload_optimizer": {
            "device": optimizer,
            "nvme_path": path(&optimizer, "offload_optimizer_nvme_path"),
        },
        "offload_param": {"device": param, "nvme_path": path(&param, "offload_param_nvme_path")},
    });
    config.insert("zero_optimization".to_owned(), zero);
    if let Some(clipping) = field("gradient_clipping").and_then(|text| text.parse::<f64>().ok()) {
        config.insert("gradient_clipping".to_owned(), json!(clipping));
    }
    config.insert("bf16".to_owned(), json!({"enabled": "auto"}));
    config.insert("fp16".to_owned(), json!({"enabled": "auto"}));
    Value::Object(config)
}
