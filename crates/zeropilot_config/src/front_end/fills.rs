//! Which keys a front end fills at all.

use serde_json::{Value as Json, json};

use super::{Arguments, FilledKey, FrontEnd, How, fill};
use crate::syntax::parse_json;

/// Whether the HF Trainer or accelerate puts something in the place of an `"auto"` of this key: found by having them
/// fill one.
pub fn fills_auto(path: &str) -> bool {
    let mut config = json!({ "train_micro_batch_size_per_gpu": 1 });
    let (sections, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = &mut config;
    for section in sections.split('.').filter(|section| !section.is_empty()) {
        place = &mut place[section];
        *place = json!({});
    }
    place[name] = "auto".into();
    // Both refuse a file that says nothing about ZeRO.
    let zero: &mut Json = &mut config["zero_optimization"];
    if zero.is_null() || zero.is_object() {
        zero["stage"] = 3.into();
    }
    let Ok(document) = parse_json(&config.to_string()) else { return false };
    let fills = |front_end| {
        let filled = fill(front_end, document.root(), &Arguments::default(), None, Some(1));
        let replaced = |filled: &FilledKey| filled.path == path && filled.how == How::Placeholder;
        filled.is_pending(path) || filled.filled.iter().any(replaced)
    };
    fills(FrontEnd::HfTrainer) || fills(FrontEnd::Accelerate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the keys that `HfTrainerDeepSpeedConfig` names, and some that it does not.
    #[test]
    fn the_keys_that_the_trainer_names_are_filled() {
        for path in [
            "train_batch_size",
            "train_micro_batch_size_per_gpu",
            "gradient_accumulation_steps",
            "gradient_clipping",
            "fp16.enabled",
            "bf16.enabled",
            "optimizer.params.lr",
            "scheduler.params.warmup_num_steps",
            "scheduler.params.total_num_steps",
            "zero_optimization.reduce_bucket_size",
            "zero_optimization.stage3_prefetch_bucket_size",
        ] {
            assert!(fills_auto(path), "{path}");
        }
        for path in ["zero_optimization.stage", "steps_per_print", "fp16.loss_scale", "aio"] {
            assert!(!fills_auto(path), "{path}");
        }
    }
}
