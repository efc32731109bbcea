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
    if run.optimizer.counts_steps() {
        states.add(Category::StepCounters, Place::Device, 4 * run.trainable().count() as u64);
    }

    // The mixed-precision wrappers run one step with zero gradients while they are built.
    let after_init = if wrapper == Wrapper::Bare { weights } else { states.clone() };
    let mut after_backward = states.clone();
    after_backward.add(Category::ParameterGradients, Place::Device, trained * dtypes.model);
    RestStates { after_init, after_backward, after_step: states }
}
