//! The config that accelerate builds from the fields of its own YAML or its options, where no DeepSpeed config is named.

use serde_json::{Map, Value, json};

#[cfg(feature = "scripts")]
use crate::{ACCELERATE_SECTION, Launch, Launcher, Place};

/// The fields that the config is built from.
#[cfg(feature = "scripts")]
const FIELDS: [&str; 6] = [
    "zero_stage",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "offload_optimizer_device",
    "offload_param_device",
    "zero3_save_16bit_model",
];

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

#[cfg(feature = "scripts")]
impl Launch {
    /// The config that accelerate builds from its own fields, where it does and all of them are known.
    pub fn accelerate_config(&self) -> Option<String> {
        let has_other = self.given.config.is_some() || self.given.dictionary.is_some();
        let is_open = |name: &&str| self.option(name).is_some_and(|word| word.text.is_none());
        if has_other || FIELDS.iter().any(is_open) {
            return None;
        }
        of(self).map(|(config, _)| config)
    }
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
    // The path of a disk is not passed on to the ranks.
    let path = |device: &str| (device == "nvme").then_some("none");
    let (optimizer, param) = (device("offload_optimizer_device"), device("offload_param_device"));
    let mut config = Map::new();
    config.insert("train_batch_size".to_owned(), json!("auto"));
    config.insert("train_micro_batch_size_per_gpu".to_owned(), json!("auto"));
    let steps = accumulation.map_or(json!("auto"), |steps| json!(steps));
    config.insert("gradient_accumulation_steps".to_owned(), steps);
    let mut zero = json!({
        "stage": stage,
        "offload_optimizer": {
            "device": optimizer,
            "nvme_path": path(&optimizer),
        },
        "offload_param": {"device": param, "nvme_path": path(&param)},
    });
    if let Some(saves) = field("zero3_save_16bit_model") {
        let key = "stage3_gather_16bit_weights_on_model_save";
        zero[key] = json!(saves.eq_ignore_ascii_case("true"));
    }
    config.insert("zero_optimization".to_owned(), zero);
    match field("gradient_clipping").map(|text| text.parse::<f64>().ok()) {
        // The placeholder, also where it is written.
        None | Some(None) => config.insert("gradient_clipping".to_owned(), json!("auto")),
        Some(Some(0.0)) => None,
        Some(Some(clipping)) => config.insert("gradient_clipping".to_owned(), json!(clipping)),
    };
    config.insert("bf16".to_owned(), json!({"enabled": "auto"}));
    config.insert("fp16".to_owned(), json!({"enabled": "auto"}));
    Value::Object(config)
}
