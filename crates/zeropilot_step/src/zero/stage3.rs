//! Stage 3: every parameter cut among the ranks by itself.

use super::precision::Dtypes;
use super::rest::{Category, Place, Rest, RestStates};
use super::run::Run;

/// A rank's share of a parameter.
pub(super) fn share(elements: u64, world: u64) -> u64 {
    elements.div_ceil(world)
}

/// A gathered parameter, padding included.
pub(super) fn gathered(elements: u64, world: u64) -> u64 {
    share(elements, world) * world
}

pub(super) fn rest_states(run: &Run<'_>) -> RestStates {
    let dtypes = Dtypes::of(run);
    let trained: u64 = run.trainable().map(|size| share(size, run.world)).sum();
    let mut after_init = Rest::default();
    parameters(run, &mut after_init);
    let on_device = device_share(run);
    optimizer(run, dtypes, trained, on_device, &mut after_init);

    let states = optimizer_states(run, dtypes, on_device, trained - on_device);
    let (mut after_init, mut after_step) = after_init.around_first_step(&states, run.optimizer);
    // While it attaches its hooks the engine gathers and releases every parameter once.
    secondary(run, |_| true, &mut after_init);
    let kept = is_persistent(run);
    if run.world > 1 {
        let kept = (0..kept.len()).filter(|&index| kept[index]);
        let bytes =
            kept.map(|p| gathered(run.parameters[p].elements.0, run.world) * run.element(p)).sum();
        after_step.add(Category::PersistentParameters, Place::Device, bytes);
    }
    let mut after_backward = after_step.clone();
    // A persistent parameter is not released again: it gets no new copy once a step has made the first one stale.
    let is_frozen = |index: usize| !run.parameters[index].trainable;
    secondary(run, |index| !kept[index] || is_frozen(index), &mut after_backward);
    secondary(run, is_frozen, &mut after_step);
    RestStates { after_init, after_backward, after_step }
}

/// What the optimizer keeps for this rank's shares.
fn optimizer_states(run: &Run<'_>, dtypes: Dtypes, on_device: u64, host: u64) -> Rest {
    let mut states = Rest::default();
    states.add_all(run.optimizer.states(on_device, dtypes.moment), Place::Device);
    states.add_all(run.optimizer.states(host, dtypes.moment), Place::Host);
    if run.optimizer.counts_steps() {
        let place = if run.zero.offload_optimizer.is_some() { Place::Host } else { Place::Device };
        states.add(Category::StepCounters, place, 4 * sub_groups(run).len() as u64);
    }
    // Partitioned parameters are empty to an optimizer that is built on them; only its counters stay.
    let abandoned = run.optimizer.abandoned(0, run.trainable().count() as u64);
    states.add(Category::StepCounters, Place::Device, abandoned);
    states
}

/// The second copy of hpZ, made whenever a gathered parameter is released; trained ones lose it in the step.
fn secondary(run: &Run<'_>, has_copy: impl Fn(usize) -> bool, rest: &mut Rest) {
    let bytes = (0..run.parameters.len())
        .filter(|index| has_copy(*index))
        .map(|index| secondary_bytes(run, index))
        .sum();
    rest.add(Category::SecondaryPartitions, secondary_place(run), bytes);
}

/// Where secondary copies live.
pub(super) fn secondary_place(run: &Run<'_>) -> Place {
    match &run.zero.offload_param {
        None => Place::Device,
        Some(offload) if offload.pin_memory => Place::Pinned,
        Some(_) => Place::Host,
    }
}

/// Bytes of a parameter's secondary copy, none without hpZ.
pub(super) fn secondary_bytes(run: &Run<'_>, index: usize) -> u64 {
    let size = run.zero.hpz_partition_size;
    if size <= 1 {
        0
    } else {
        gathered(run.parameters[index].elements.0, run.world) / size * run.element(index)
    }
}

fn parameters(run: &Run<'_>, rest: &mut Rest) {
    let [trained, frozen] =
        [true, false].map(|trained| run.bytes_of(trained, |size| share(size, run.world)));
    match &run.zero.offload_param {
        None => {
            rest.add(Category::FlatParameters, Place::Device, trained);
            rest.add(Category::FrozenPartitions, Place::Device, frozen);
        }
        Some(offload) => {
            let place = if offload.pin_memory { Place::Pinned } else { Place::Host };
            // Trained ones are pinned whatever the config says.
            rest.add(Category::HostParameters, Place::Pinned, trained);
            rest.add(Category::FrozenPartitions, place, frozen);
        }
    }
}

fn optimizer(run: &Run<'_>, dtypes: Dtypes, trained: u64, on_device: u64, rest: &mut Rest) {
    let host = trained - on_device;
    rest.add(Category::Master, Place::Device, on_device * dtypes.master);
    rest.add(Category::Master, Place::Host, host * dtypes.master);
    let pinned = run.staging_place();
    rest.add(Category::GradientPartitions, pinned, trained * dtypes.accumulation);
    if run.zero.offload_optimizer.is_some() {
        rest.add(Category::MasterGradients, Place::Device, on_device * dtypes.master);
        rest.add(Category::MasterGradients, pinned, host * dtypes.master);
    }
    if run.zero.contiguous_gradients {
        rest.add(
            Category::ReduceBucket,
            Place::Device,
            run.zero.reduce_bucket.0 * dtypes.communication,
        );
    }
}

/// A group of parameters that is updated at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SubGroup {
    /// Elements of this rank's shares.
    pub(super) elements: u64,
    /// How many parameters.
    pub(super) members: usize,
}

/// Shares of this rank, cut into the groups that are updated one after the other.
pub(super) fn sub_groups(run: &Run<'_>) -> Vec<SubGroup> {
    let limit = run.zero.sub_group.0;
    let mut groups = Vec::new();
    for group in 0..run.groups() {
        let mut open = SubGroup::default();
        for size in run.group(group) {
            open.elements += share(size, run.world);
            open.members += 1;
            if open.elements >= limit {
                groups.push(std::mem::take(&mut open));
            }
        }
        if open.members > 0 {
            groups.push(open);
        }
    }
    groups
}

/// Sub-groups whose optimizer state stays on the device; they come first.
pub(super) fn device_sub_groups(run: &Run<'_>, count: usize) -> usize {
    match &run.zero.offload_optimizer {
        None => count,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of sub-groups"
        )]
        Some(offload) => ((1.0 - offload.ratio) * count as f64) as usize,
    }
}

/// Elements of this rank whose optimizer state stays on the device.
fn device_share(run: &Run<'_>) -> u64 {
    let groups = sub_groups(run);
    let on_device = groups.iter().take(device_sub_groups(run, groups.len()));
    on_device.map(|group| group.elements).sum()
}

/// Where shares of trained parameters live; offloaded ones are pinned whatever the config says.
pub(super) fn share_place(run: &Run<'_>) -> Place {
    if run.zero.offload_param.is_some() { Place::Pinned } else { Place::Device }
}

/// Indices of the parameters that are never released.
pub(super) fn persistent_parameters(run: &Run<'_>) -> Vec<usize> {
    let kept = is_persistent(run).into_iter().enumerate();
    kept.filter(|(_, kept)| *kept).map(|(index, _)| index).collect()
}

/// Whether each parameter is one of them.
pub(super) fn is_persistent(run: &Run<'_>) -> Vec<bool> {
    let mut total = 0_u64;
    let kept = run.parameters.iter().map(|parameter| {
        let size = parameter.elements.0;
        let small = size <= run.zero.param_persistence_threshold.0;
        let kept = small && total.saturating_add(size) <= run.zero.model_persistence_threshold.0;
        if kept {
            total += size;
        }
        kept
    });
    kept.collect()
}
