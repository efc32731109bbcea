//! `zero_optimization`.

use serde_json::{Map, Value};

use super::{AUTO, object};
use crate::knob::{Knob, KnobValue, Section};
use crate::recipe::Recipe;
use crate::zero::{Device, Offload};

pub(super) fn section(recipe: &Recipe) -> Map<String, Value> {
    let mut section = object([("stage", Some(Value::from(recipe.zero.stage().number())))]);
    let optimizer = recipe.zero.optimizer_offload();
    let offloads = [
        ("offload_optimizer", Section::OffloadOptimizer, optimizer.as_ref()),
        ("offload_param", Section::OffloadParam, recipe.zero.parameter_offload()),
    ];
    for (key, place, offload) in offloads {
        if let Some(offload) = offload {
            let mut inner = offload_section(offload);
            inner.extend(keys(recipe, place));
            section.insert(key.to_owned(), Value::Object(inner));
        }
    }
    section.extend(keys(recipe, Section::Zero));
    section
}

fn offload_section(offload: &Offload) -> Map<String, Value> {
    let device = match offload.device() {
        Device::Cpu => "cpu",
        Device::Nvme => "nvme",
    };
    object([
        ("device", Some(Value::from(device))),
        ("nvme_path", offload.nvme_path.as_deref().map(Value::from)),
        // Written, because its default changed with 0.19.5.
        ("pin_memory", Some(Value::from(offload.pin_memory))),
    ])
}

/// The fine-grained keys of one section: chosen, sized or filled.
fn keys(recipe: &Recipe, section: Section) -> Map<String, Value> {
    let here = Knob::ALL.iter().copied().filter(|knob| knob.section() == section);
    object(here.map(|knob| {
        let value = match recipe.knobs.get(knob) {
            Some(KnobValue::Elements(elements)) => Some(Value::from(elements.0)),
            Some(KnobValue::Count(count)) => Some(Value::from(count)),
            Some(KnobValue::Flag(flag)) => Some(Value::from(flag)),
            Some(KnobValue::Share(share)) => Some(Value::from(share)),
            None if recipe.filled.contains(&knob) => Some(Value::from(AUTO)),
            None => recipe.elements(knob).map(|elements| Value::from(elements.0)),
        };
        (knob.key(), value)
    }))
}
