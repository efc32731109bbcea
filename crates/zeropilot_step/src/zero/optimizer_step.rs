//! The optimizer step, from the second step on: what it makes for a moment and what it ends.
//!
//! It begins in the state after backward and does not depend on the model's operators.

use zeropilot_config::settings::Precision;
use zeropilot_units::Bytes;

use super::base_optimizer::BaseOptimizer;
use super::flat_layout::FlatLayout;
use super::ledger::Ledger;
use super::precision::{Dtypes, Wrapper};
use super::rest::{Category, Place, Rest, RestStates};
use super::run::Run;
use super::sink::{Handle, Resident, Sink};
use super::stage3::{
    SubGroup, persistent_parameters, secondary_bytes, secondary_place, share, sub_groups,
};
use super::stage12::{layouts, zeros_for_unused};

/// The most bytes alive at once during the optimizer step.
pub fn step_peak(run: &Run<'_>) -> Bytes {
    let mut ledger = Ledger::new();
    optimizer_step(run, &mut ledger);
    ledger.peak()
}

/// Reports what the optimizer step allocates and frees, beginning with the state after backward.
pub fn optimizer_step(run: &Run<'_>, sink: &mut impl Sink) {
    let states = RestStates::of(run);
    match Wrapper::of(run) {
        Wrapper::Bare => bare(run, &states.after_backward, sink),
        Wrapper::FlatMixed => flat_mixed(run, &states.after_step, sink),
        Wrapper::PerTensorMixed => per_tensor_mixed(run, &states.after_backward, sink),
        Wrapper::Bf16 => bf16(run, &states.after_backward, sink),
        Wrapper::Partitioned => partitioned(run, &states.after_backward, sink),
        Wrapper::Sharded => sharded(run, &states.after_backward, sink),
    }
}

fn bare(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    Resident::open(rest, sink);
    base_optimizer_per_tensor(run, sink);
}

/// Groups are cast, joined and dropped one after the other; the joined gradients wait for the optimizer.
fn flat_mixed(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    let dtypes = Dtypes::of(run);
    Resident::open(rest, sink);
    if !run.rank.is_multiple_of(run.sequence_ranks) || run.tensor_rank > 0 {
        // All but the first of those that share a sequence or layers take the gradients that the first has too out of the
        // norm: a mask and what it leaves.
        let masked = run.trainable().sum::<u64>() * (1 + dtypes.model);
        sink.allocate(Category::NormCopies, Place::Device, masked);
    }
    let sizes: Vec<u64> = (0..run.groups()).map(|group| run.group(group).sum()).collect();
    let device =
        |sink: &mut _, category, bytes| Sink::allocate(sink, category, Place::Device, bytes);
    let gradients: Vec<Handle> = sizes
        .iter()
        .map(|size| device(sink, Category::ParameterGradients, size * dtypes.model))
        .collect();
    for (size, gradient) in sizes.iter().zip(gradients) {
        let copies = device(sink, Category::OptimizerGradients, size * 4);
        device(sink, Category::OptimizerGradients, size * 4);
        sink.free(copies);
        sink.free(gradient);
    }
}

fn per_tensor_mixed(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    Resident::open(rest, sink);
    sink.allocate(Category::OptimizerGradients, Place::Device, run.trainable().sum::<u64>() * 4);
    base_optimizer_per_tensor(run, sink);
}

/// The base optimizer over tensors that are parameters.
pub(super) fn base_optimizer_per_tensor(run: &Run<'_>, sink: &mut impl Sink) {
    for group in 0..run.groups() {
        base_optimizer(run, run.group(group), sink);
    }
}

/// PyTorch's loop over tensors holds the denominator of the tensor before, and Adam two temporaries of a tensor where
/// Adagrad has one; the fused ones hold none.
fn base_optimizer(run: &Run<'_>, sizes: impl Iterator<Item = u64>, sink: &mut impl Sink) {
    let is_adam = match run.optimizer {
        BaseOptimizer::TorchAdam => true,
        BaseOptimizer::Adagrad => false,
        _ => return,
    };
    let moment = Dtypes::of(run).moment;
    let offloaded = run.zero.offload_optimizer.is_some();
    let place = if offloaded { Place::Host } else { Place::Device };
    let mut before: Option<Handle> = None;
    for size in sizes {
        let root = if is_adam { size * moment } else { 0 };
        let root = sink.allocate(Category::OptimizerTemporaries, place, root);
        let denominator = sink.allocate(Category::OptimizerTemporaries, place, size * moment);
        sink.free(root);
        if let Some(before) = before.replace(denominator) {
            sink.free(before);
        }
    }
    if let Some(before) = before {
        sink.free(before);
    }
}

fn bf16(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    Resident::open(rest, sink);
    for layout in layouts(run, Dtypes::of(run)) {
        base_optimizer(run, std::iter::once(layout.partition), sink);
    }
}

fn partitioned(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    let mut resident = Resident::open(rest, sink);
    if run.zero.offload_optimizer.is_some() {
        // Gradients wait on the host as the optimizer wants them.
        for layout in layouts(run, Dtypes::of(run)) {
            base_optimizer(run, std::iter::once(layout.partition), sink);
        }
        return;
    }
    let dtypes = Dtypes::of(run);
    let layouts = layouts(run, dtypes);
    for (group, layout) in layouts.iter().enumerate() {
        let members: Vec<usize> = run.group_indices(group).collect();
        for (position, inside) in layout.positions(run.rank) {
            // Of ranks that share layers, the first alone counts what all have.
            if run.tensor_rank > 0 && run.parameters[members[position]].parts == 1 {
                continue;
            }
            if matches!(run.precision, Precision::Fp16 { .. }) {
                sink.touch(Category::NormCopies, Place::Device, inside * run.infinity_test());
            }
            sink.touch(Category::NormCopies, Place::Device, inside * 8);
        }
    }
    if dtypes.is_compact() {
        // The flat fp32 gradients are the optimizer's.
        resident.free(Category::LeftoverGradients, sink);
        for layout in &layouts {
            base_optimizer(run, std::iter::once(layout.partition), sink);
        }
        return;
    }
    resident.free(Category::AveragedGradients, sink);
    let mut gradients = AveragedGradients::open(run, dtypes, sink);
    for (group, layout) in layouts.iter().enumerate() {
        let gradient = optimizer_gradient(run, dtypes, layout, sink);
        // A gradient that is nothing but the reduced one keeps it alive.
        if gradient.is_some() {
            gradients.free(group, sink);
        }
        base_optimizer(run, std::iter::once(layout.partition), sink);
        gradient.into_iter().for_each(|gradient| sink.free(gradient));
        gradients.free(group, sink);
    }
}

/// The gradient of a partition for the optimizer: fragments joined, then cast; a single one in the right format is
/// used where it is.
fn optimizer_gradient(
    run: &Run<'_>,
    dtypes: Dtypes,
    layout: &FlatLayout,
    sink: &mut impl Sink,
) -> Option<Handle> {
    let padded = usize::from(layout.padding(run.rank) > 0);
    let mut allocate = |bytes| {
        sink.allocate(Category::OptimizerGradients, Place::Device, layout.partition * bytes)
    };
    let joined = (layout.fragments(run.rank).count() + padded > 1).then(|| allocate(dtypes.model));
    if dtypes.master == dtypes.model {
        return joined;
    }
    let cast = allocate(dtypes.master);
    joined.into_iter().for_each(|joined| sink.free(joined));
    Some(cast)
}

/// Reduced gradients of this rank, by group; contiguous ones share one buffer that goes with the last group.
struct AveragedGradients {
    shared: Option<Handle>,
    groups: Vec<Option<Vec<Handle>>>,
}

impl AveragedGradients {
    fn open(run: &Run<'_>, dtypes: Dtypes, sink: &mut impl Sink) -> Self {
        let mut allocate = |elements: u64| {
            sink.allocate(Category::AveragedGradients, Place::Device, elements * dtypes.model)
        };
        let layouts = layouts(run, dtypes);
        let contiguous = run.contiguous_gradients();
        let owned: u64 = layouts.iter().map(|layout| layout.owned(run.rank)).sum();
        let shared = contiguous.then(|| allocate(owned));
        let unused = zeros_for_unused(run, &layouts);
        let groups = layouts
            .iter()
            .zip(unused)
            .map(|(layout, unused)| {
                let mut handles = vec![allocate(layout.padding(run.rank)), allocate(unused)];
                if !contiguous {
                    handles.push(allocate(layout.owned(run.rank)));
                }
                Some(handles)
            })
            .collect();
        Self { shared, groups }
    }

    fn free(&mut self, group: usize, sink: &mut impl Sink) {
        for handle in self.groups[group].take().unwrap_or_default() {
            sink.free(handle);
        }
        if self.groups.iter().all(Option::is_none)
            && let Some(shared) = self.shared.take()
        {
            sink.free(shared);
        }
    }
}

fn sharded(run: &Run<'_>, rest: &Rest, sink: &mut impl Sink) {
    let dtypes = Dtypes::of(run);
    let mut resident = Resident::open(rest, sink);
    // Every gathered parameter is released first; with hpZ a release leaves the secondary copy behind.
    let kept = persistent_parameters(run);
    for &index in &kept {
        sink.allocate(
            Category::SecondaryPartitions,
            secondary_place(run),
            secondary_bytes(run, index),
        );
    }
    resident.free(Category::PersistentParameters, sink);

    let shares: Vec<u64> = run.trainable().map(|size| share(size, run.world)).collect();
    if matches!(run.precision, Precision::Fp16 { .. }) {
        overflow_test(shares.iter().sum(), dtypes, run.staging_place(), sink);
    }
    if run.zero.offload_optimizer.is_none() {
        for share in &shares {
            sink.touch(Category::NormCopies, Place::Device, share * 8);
        }
        for sub_group in sub_groups(run) {
            sub_group_step(run, dtypes, sub_group, sink);
        }
    } else {
        for sub_group in sub_groups(run) {
            base_optimizer(run, std::iter::once(sub_group.elements), sink);
        }
    }
    let gathered = rest.of(Category::PersistentParameters).0;
    sink.allocate(Category::PersistentParameters, Place::Device, gathered);
}

/// Looks for an infinity in the whole gradient buffer: a mask, and inside the kernel the absolute values.
fn overflow_test(elements: u64, dtypes: Dtypes, gradients: Place, sink: &mut impl Sink) {
    // Temporaries follow the gradients to the host, but not into pinned memory.
    let place = if gradients == Place::Device { Place::Device } else { Place::Host };
    let mask = sink.allocate(Category::NormCopies, place, elements);
    sink.touch(Category::KernelTemporaries, place, elements * dtypes.accumulation);
    sink.free(mask);
}

fn sub_group_step(run: &Run<'_>, dtypes: Dtypes, sub_group: SubGroup, sink: &mut impl Sink) {
    let SubGroup { elements, members } = sub_group;
    let mut gradient = (members > 1).then(|| {
        sink.allocate(Category::OptimizerGradients, Place::Device, elements * dtypes.accumulation)
    });
    if dtypes.accumulation != dtypes.master {
        let cast =
            sink.allocate(Category::OptimizerGradients, Place::Device, elements * dtypes.master);
        if let Some(joined) = gradient.replace(cast) {
            sink.free(joined);
        }
    }
    base_optimizer(run, std::iter::once(elements), sink);
    if let Some(gradient) = gradient {
        sink.free(gradient);
    }
}
