//! Two small configs that differ in one key, to see what the key costs with a model.

use zeropilot_config::keys::{Presence, presence};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_plan::{Knob, KnobKind, Section};

use crate::memory::WrittenConfig;

/// By how much a size is changed.
const SMALLER: u64 = 10;

/// A fine-grained key of `zero_optimization` as the engine has it by default, and a tenth of that or the other way round;
/// nothing for other keys. The stage is the highest that reads the key.
pub fn key_variants(path: &str, version: EngineVersion) -> Option<[WrittenConfig; 2]> {
    let key = path.strip_prefix("zero_optimization.")?;
    let is_meant = |knob: &&Knob| knob.section() == Section::Zero && knob.key() == key;
    let knob = Knob::ALL.iter().find(is_meant)?;
    let Presence::Read(facts) = presence(version.schema(), path) else { return None };
    let default = facts.default?;
    let values = match (knob.kind(), &default) {
        (KnobKind::Elements, PyValue::Int(number)) => {
            let number = u64::try_from(number).ok()?;
            [number.to_string(), (number / SMALLER).to_string()]
        }
        (KnobKind::Flag, PyValue::Bool(flag)) => [flag.to_string(), (!flag).to_string()],
        _ => return None,
    };
    let stage = knob.stages().iter().max()?;
    Some(values.map(|value| {
        WrittenConfig {
            name: format!("{key} {value}"),
            bytes: format!(
                r#"{{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}},
                "zero_optimization": {{"stage": {stage}, "{key}": {value}}}}}"#
            )
            .into_bytes(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Option<[String; 2]> {
        key_variants(path, EngineVersion::NEWEST).map(|variants| variants.map(|one| one.name))
    }

    #[test]
    fn sizes_are_cut_and_flags_turned() {
        let live = names("zero_optimization.stage3_max_live_parameters").expect("a size");
        assert_eq!(live[0], "stage3_max_live_parameters 1000000000");
        assert_eq!(live[1], "stage3_max_live_parameters 100000000");
        let flag = names("zero_optimization.contiguous_gradients").expect("a flag");
        assert_eq!(flag, ["contiguous_gradients true", "contiguous_gradients false"]);
        assert_eq!(names("gradient_clipping"), None);
    }
}
