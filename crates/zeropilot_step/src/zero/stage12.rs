//! Stages 1 and 2: optimizer states and gradients in flat partitions, one layout per parameter group.

use zeropilot_config::settings::Stage;

use super::flat_layout::FlatLayout;
use super::precision::{Dtypes, Wrapper};
use super::rest::{Category, Place, Rest, RestStates};
use super::run::Run;

pub(super) fn layouts(run: &Run<'_>, dtypes: Dtypes) -> Vec<FlatLayout> {
    // 16-byte alignment, in elements of the model's format.
    let alignment = run.zero.parameter_alignment.then(|| 16 / dtypes.model);
    (0..run.groups())
        .map(|group| {
            let sizes: Vec<u64> = run.group(group).collect();
            FlatLayout::new(&sizes, run.world, run.zero.round_robin_gradients, alignment)
        })
        .collect()
}

fn step_counters(run: &Run<'_>, groups: usize) -> u64 {
    if run.optimizer.counts_steps() { 4 * groups as u64 } else { 0 }
}

/// The bf16 optimizer: fp32 gradients are not partitioned.
pub(super) fn bf16_rest_states(run: &Run<'_>) -> RestStates {
    let dtypes = Dtypes::of(run);
    let layouts = layouts(run, dtypes);
    let total: u64 = layouts.iter().map(|layout| layout.total).sum();
    let partition: u64 = layouts.iter().map(|layout| layout.partition).sum();

    let mut after_init = Rest::default();
    after_init.add(Category::FlatParameters, Place::Device, total * dtypes.model);
    after_init.add(Category::FrozenParameters, Place::Device, run.frozen_bytes());
    after_init.add(Category::Master, Place::Device, partition * 4);
    after_init.add(Category::FullGradients, Place::Device, total * 4);

    let states = optimizer_states(run, dtypes, &layouts, 4, Place::Device);
    let (after_init, mut after_step) = after_init.around_first_step(&states, run.optimizer);
    let mut after_backward = after_step.clone();
    if !Wrapper::adds_at_once(run) {
        let gradients = run.trainable().sum::<u64>() * dtypes.model;
        after_backward.add(Category::ParameterGradients, Place::Device, gradients);
        if run.keeps_gradients() {
            after_step.add(Category::ParameterGradients, Place::Device, gradients);
        }
    }
    RestStates { after_init, after_backward, after_step }
}

pub(super) fn rest_states(run: &Run<'_>) -> RestStates {
    let dtypes = Dtypes::of(run);
    let layouts = layouts(run, dtypes);
    let partition: u64 = layouts.iter().map(|layout| layout.partition).sum();
    let offload = run.zero.offload_optimizer.as_ref();
    let pinned = run.staging_place();
    let moments = if offload.is_some() { Place::Host } else { Place::Device };

    let mut after_init = Rest::default();
    let total: u64 = layouts.iter().map(|layout| layout.total).sum();
    after_init.add(Category::FlatParameters, Place::Device, total * dtypes.model);
    after_init.add(Category::FrozenParameters, Place::Device, run.frozen_bytes());
    after_init.add(Category::Master, pinned, partition * dtypes.master);
    if offload.is_some() {
        let largest = run.trainable().max().unwrap_or(0);
        after_init.add(Category::MasterGradients, pinned, partition * dtypes.master);
        if run.stages_on_host() {
            after_init.add(Category::HostStaging, pinned, partition * dtypes.model);
        }
        after_init.add(Category::TemporaryGradientHost, pinned, largest * dtypes.model);
        after_init.add(Category::TemporaryGradientDevice, Place::Device, largest * dtypes.model);
    }

    let states = optimizer_states(run, dtypes, &layouts, dtypes.moment, moments);
    let (after_init, mut after_step) = after_init.around_first_step(&states, run.optimizer);
    if accumulates_on_host(run, dtypes) {
        let owned: u64 = layouts.iter().map(|layout| layout.owned(run.rank)).sum();
        after_step.add(Category::HostAccumulation, pinned, owned * dtypes.model);
    }

    let mut after_backward = after_step.clone();
    gradients(run, dtypes, &layouts, &mut after_backward);
    RestStates { after_init, after_backward, after_step }
}

/// What the optimizer keeps for its partition, and for the parameters it was given before.
fn optimizer_states(
    run: &Run<'_>,
    dtypes: Dtypes,
    layouts: &[FlatLayout],
    moment: u64,
    place: Place,
) -> Rest {
    let partition: u64 = layouts.iter().map(|layout| layout.partition).sum();
    let mut states = Rest::default();
    states.add_all(run.optimizer.states(partition, moment), place);
    states.add(Category::StepCounters, place, step_counters(run, layouts.len()));
    let (tensors, given) = (run.trainable().count() as u64, run.trainable().sum::<u64>());
    let abandoned = run.optimizer.abandoned(given * dtypes.model, tensors);
    states.add(Category::SecondMoment, place, abandoned);
    states
}

fn accumulates_on_host(run: &Run<'_>, dtypes: Dtypes) -> bool {
    run.zero.offload_optimizer.is_some()
        && run.zero.stage == Stage::Two
        && run.accumulation_steps > 1
        && dtypes.master == 4
        && !dtypes.is_compact()
}

fn gradients(run: &Run<'_>, dtypes: Dtypes, layouts: &[FlatLayout], rest: &mut Rest) {
    if dtypes.is_compact() {
        let partition: u64 = layouts.iter().map(|layout| layout.partition).sum();
        rest.add(Category::FlatGradients, Place::Device, partition * 4);
        if run.zero.stage == Stage::One {
            rest.add(Category::LeftoverGradients, Place::Device, leftovers(run, layouts));
        }
        return;
    }
    if run.zero.offload_optimizer.is_some() {
        return;
    }
    let owned: u64 = layouts.iter().map(|layout| layout.owned(run.rank)).sum();
    let padding: u64 = layouts.iter().map(|layout| layout.padding(run.rank)).sum();
    let unused: u64 = zeros_for_unused(run, layouts).iter().sum();
    rest.add(Category::AveragedGradients, Place::Device, (owned + padding + unused) * dtypes.model);
}

/// By group, elements of the zeros that stand for gradients of unused parameters: whole ones, even of a parameter
/// that only reaches into this rank's partition. Contiguous gradients have room for them already, and DeepSpeed
/// allocates them all the same.
pub(super) fn zeros_for_unused(run: &Run<'_>, layouts: &[FlatLayout]) -> Vec<u64> {
    if !run.contiguous_gradients() {
        return vec![0; layouts.len()];
    }
    let has_gradient = run.has_gradient();
    let zeros = |(group, layout): (usize, &FlatLayout)| {
        let members = run.group_indices(group).enumerate();
        let unused = members.filter(|(_, index)| !has_gradient[*index]);
        let owned = unused
            .filter(|(position, _)| layout.owners(*position).any(|(rank, _)| rank == run.rank));
        owned.map(|(_, index)| run.parameters[index].elements.0).sum()
    };
    layouts.iter().enumerate().map(zeros).collect()
}

/// fp32 views of the bucket that stay referenced until the step.
fn leftovers(run: &Run<'_>, layouts: &[FlatLayout]) -> u64 {
    if !run.contiguous_gradients() {
        return run.trainable().sum::<u64>() * 4;
    }
    let bucket = run.zero.reduce_bucket.0;
    let foreign = foreign_parameters(run, layouts);
    let large: u64 = foreign
        .iter()
        .map(|&index| run.parameters[index].elements.0)
        .filter(|size| *size > bucket)
        .sum();
    referenced_buckets(run, &foreign) * bucket * 4 + large * 4
}

/// Indices of the parameters that do not reach into this rank's partition.
fn foreign_parameters(run: &Run<'_>, layouts: &[FlatLayout]) -> Vec<usize> {
    let mut foreign = Vec::new();
    for (group, layout) in layouts.iter().enumerate() {
        let members: Vec<usize> = run.group_indices(group).collect();
        foreign.extend(layout.foreign(run.rank).map(|position| members[position]));
    }
    foreign
}

/// How many of the (one, or with overlap two) buckets hold a parameter of another rank at the end.
fn referenced_buckets(run: &Run<'_>, foreign: &[usize]) -> u64 {
    let bucket = run.zero.reduce_bucket.0;
    let mut referenced = [false; 2];
    let mut current = 0;
    let mut filled = 0;
    for &index in run.gradient_order {
        let size = run.parameters[index].elements.0;
        if filled + size > bucket {
            filled = 0;
            if run.zero.overlap_comm {
                current = 1 - current;
            }
        }
        filled += size;
        referenced[current] |= size <= bucket && foreign.contains(&index);
    }
    referenced.into_iter().map(u64::from).sum()
}
