//! Stage 0: everything on every rank.

use super::precision::{Dtypes, Wrapper};
use super::rest::{Category, Place, Rest, RestStates};
use super::run::{Engine, Run};

pub(super) fn rest_states(run: &Run<'_>) -> RestStates {
    let dtypes = Dtypes::of(run);
    let trained: u64 = run.trainable().sum();
    let trained_bytes = run.bytes_of(true, |size| size);
    let wrapper = Wrapper::of(run);

    let mut weights = Rest::default();
    weights.add(Category::FrozenParameters, Place::Device, run.frozen_bytes());
    let kind =
        if wrapper == Wrapper::FlatMixed { Category::FlatParameters } else { Category::Parameters };
    weights.add(kind, Place::Device, trained_bytes);
    if wrapper != Wrapper::Bare {
        weights.add(Category::Master, Place::Device, trained * 4);
    }

    if run.engine == Engine::PyTorch && run.world > 1 {
        // Buckets as large as the gradients, which are copied into them: `gradient_as_bucket_view` is off by default.
        weights.add(Category::ReduceBucket, Place::Device, trained_bytes);
    }

    let mut states = weights.clone();
    match wrapper {
        Wrapper::Bare => {
            for (element, trained) in run.trained_by_element() {
                states.add_all(run.optimizer.states(trained, element), Place::Device);
            }
        }
        _ => states.add_all(run.optimizer.states(trained, 4), Place::Device),
    }
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
    after_backward.add(Category::ParameterGradients, Place::Device, trained_bytes);
    RestStates { after_init, after_backward, after_step: states }
}
