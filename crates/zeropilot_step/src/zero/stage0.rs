//! Stage 0: everything on every rank.

use super::precision::{Dtypes, Wrapper};
use super::rest::{Category, Place, Rest, RestStates};
use super::run::Run;

pub(super) fn rest_states(run: &Run<'_>) -> RestStates {
    let dtypes = Dtypes::of(run);
    let trained: u64 = run.trainable().sum();
    let wrapper = Wrapper::of(run);

    let mut weights = Rest::default();
    weights.add(Category::FrozenParameters, Place::Device, run.frozen_bytes());
    let kind =
        if wrapper == Wrapper::FlatMixed { Category::FlatParameters } else { Category::Parameters };
    weights.add(kind, Place::Device, trained * dtypes.model);
    if wrapper != Wrapper::Bare {
        weights.add(Category::Master, Place::Device, trained * 4);
    }

    let mut states = weights.clone();
    states.add_all(run.optimizer.states(trained, 4), Place::Device);
    // Those of the 16-bit parameters, before the wrapper put its own in their place.
    if wrapper != Wrapper::Bare {
        let tensors = run.trainable().count() as u64;
        let abandoned = run.optimizer.abandoned(trained * dtypes.model, tensors);
        states.add(Category::SecondMoment, Place::Device, abandoned);
    }
    if run.optimizer.counts_steps() {
        states.add(Category::StepCounters, Place::Device, 4 * run.trainable().count() as u64);
    }

    // The mixed-precision wrappers run one step with zero gradients while they are built.
    let is_empty = wrapper == Wrapper::Bare && !run.optimizer.begins_with_states();
    let after_init = if is_empty { weights } else { states.clone() };
    let mut after_backward = states.clone();
    after_backward.add(Category::ParameterGradients, Place::Device, trained * dtypes.model);
    RestStates { after_init, after_backward, after_step: states }
}
