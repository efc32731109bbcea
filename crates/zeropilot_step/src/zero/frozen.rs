//! The engine of a model that is never trained: no optimizer, no gradients, no buckets, unless its config asks for an
//! optimizer all the same.

use zeropilot_config::settings::Stage;

use super::rest::{Category, Place, Rest, RestStates};
use super::run::Run;
use super::stage3::{gathered, is_persistent, secondary_bytes, secondary_place, share};

/// What it keeps beside persistent parameters: all weights, or this rank's shares of them.
pub(crate) fn weights(run: &Run<'_>) -> Rest {
    let mut rest = Rest::default();
    if run.parameters.iter().any(|parameter| parameter.trainable) {
        // It never takes a step.
        let states = RestStates::of(run).after_init;
        states.iter().for_each(|(_, place, it)| rest.add(Category::OtherModels, place, it.0));
        return rest;
    }
    if run.zero.stage != Stage::Three {
        rest.add(Category::OtherModels, Place::Device, run.frozen_bytes());
        return rest;
    }
    let place = match &run.zero.offload_param {
        None => Place::Device,
        Some(offload) if offload.pin_memory => Place::Pinned,
        Some(_) => Place::Host,
    };
    let shares = run.bytes_of(false, |size| share(size, run.world));
    rest.add(Category::OtherModels, place, shares);
    rest
}

/// What it keeps between the phases of a step, from its second forward pass on.
#[must_use]
pub fn frozen_rest(run: &Run<'_>) -> Rest {
    let mut rest = weights(run);
    if run.zero.stage == Stage::Three && run.world > 1 {
        let kept = is_persistent(run);
        let kept = (0..kept.len()).filter(|&index| kept[index]);
        let whole = |p: usize| gathered(run.parameters[p].elements.0, run.world) * run.element(p);
        rest.add(Category::OtherModels, Place::Device, kept.map(whole).sum());
        let secondary = (0..run.parameters.len()).map(|p| secondary_bytes(run, p)).sum();
        rest.add(Category::OtherModels, secondary_place(run), secondary);
    }
    rest
}
