//! What ranks say to each other, and what goes between host and device, in the optimizer step.

use zeropilot_config::settings::Precision;

use super::precision::{Dtypes, Wrapper};
use super::rest::Place;
use super::run::Run;
use super::sink::{Collective, CollectiveKind, Direction, HostCopy, Sink};
use super::stage3::{device_sub_groups, gathered, persistent_parameters, share, sub_groups};
use super::stage12::layouts;

/// Reports the calls of the optimizer step in order; `clips` says whether gradients are clipped.
///
/// No step is skipped: one that finds an infinity ends after the first call.
pub fn optimizer_calls(run: &Run<'_>, clips: bool, sink: &mut impl Sink) {
    match Wrapper::of(run) {
        Wrapper::Bare | Wrapper::FlatMixed | Wrapper::PerTensorMixed => {
            let is_bare = Wrapper::of(run) == Wrapper::Bare;
            // Neighbours that share sequences are taken for ranks that share a model.
            let neighbours = run.sequence_ranks.max(run.tensor_ranks);
            if neighbours > 1 {
                if !is_bare {
                    reduce_number(1, neighbours, sink);
                }
                if clips || !is_bare {
                    reduce_number(4, neighbours, sink);
                }
            }
            if clips && is_bare {
                all_reduce(run, 4, sink);
            }
            sink.update(run.trainable().sum(), Place::Device);
        }
        Wrapper::Bf16 => {
            if run.tensor_ranks > 1 {
                reduce_number(4, run.tensor_ranks, sink);
            }
            for layout in layouts(run, Dtypes::of(run)) {
                sink.update(layout.partition, Place::Device);
            }
            gather_groups(run, sink);
        }
        Wrapper::Partitioned => partitioned(run, sink),
        Wrapper::Sharded => sharded(run, sink),
    }
}

/// One number of the ranks that ZeRO shards over.
fn all_reduce(run: &Run<'_>, element: u64, sink: &mut impl Sink) {
    reduce_number(element, run.world, sink);
}

fn reduce_number(element: u64, ranks: u64, sink: &mut impl Sink) {
    let kind = CollectiveKind::AllReduce;
    sink.communicate(Collective { kind, elements: 1, element, ranks });
}

/// One number of the ranks that ZeRO shards over, then of those that share layers.
fn all_reduce_both(run: &Run<'_>, element: u64, sink: &mut impl Sink) {
    all_reduce(run, element, sink);
    if run.tensor_ranks > 1 {
        reduce_number(element, run.tensor_ranks, sink);
    }
}

fn partitioned(run: &Run<'_>, sink: &mut impl Sink) {
    let checks_overflow = match run.precision {
        Precision::Fp32 => false,
        Precision::Fp16 { .. } => true,
        Precision::Bf16 { checks_overflow, .. } => checks_overflow,
    };
    if checks_overflow {
        all_reduce_both(run, 1, sink);
    }
    if run.zero.computes_norm {
        (0..run.groups()).for_each(|_| all_reduce_both(run, 4, sink));
    }
    let dtypes = Dtypes::of(run);
    let is_offloaded = run.zero.offload_optimizer.is_some();
    let place = if is_offloaded { Place::Host } else { Place::Device };
    for layout in layouts(run, dtypes) {
        sink.update(layout.partition, place);
        if is_offloaded {
            let bytes = layout.partition * dtypes.model;
            sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
        }
    }
    gather_groups(run, sink);
}

/// The updated weights, group by group.
fn gather_groups(run: &Run<'_>, sink: &mut impl Sink) {
    if run.world == 1 {
        return;
    }
    let dtypes = Dtypes::of(run);
    for layout in layouts(run, dtypes) {
        sink.communicate(Collective {
            kind: CollectiveKind::AllGather,
            elements: layout.total,
            element: dtypes.model,
            ranks: run.world,
        });
    }
}

fn sharded(run: &Run<'_>, sink: &mut impl Sink) {
    let is_offloaded = run.zero.offload_optimizer.is_some();
    // The engine asks the first trained parameter for its format: adapters in 32 bits have no overflow.
    let first = run.parameters.iter().find(|parameter| parameter.trainable);
    let is_narrow = first.is_some_and(|parameter| parameter.element.is_none());
    if is_narrow && matches!(run.precision, Precision::Fp16 { .. }) {
        all_reduce(run, 1, sink);
    }
    let groups = sub_groups(run);
    let norm = if is_offloaded { 4 } else { 8 };
    groups.iter().for_each(|_| all_reduce(run, norm, sink));
    let on_device = device_sub_groups(run, groups.len());
    for (index, group) in groups.iter().enumerate() {
        let is_here = index < on_device;
        sink.update(group.elements, if is_here { Place::Device } else { Place::Host });
        if !is_here && run.zero.offload_param.is_none() {
            let bytes = group.elements * run.model_element();
            sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
        }
    }
    persistent(run, sink);
}

fn persistent(run: &Run<'_>, sink: &mut impl Sink) {
    let persistent = persistent_parameters(run);
    let one_by_one = persistent.len() == 1 || run.zero.allgather_sequential;
    if run.world == 1 && !one_by_one {
        return;
    }
    for (flight, &parameter) in (0..).zip(&persistent) {
        // A frozen one has its share on the device.
        if run.zero.offload_param.is_some() && run.parameters[parameter].trainable {
            let elements = share(run.parameters[parameter].elements.0, run.world);
            let bytes = elements * run.element(parameter);
            sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
        }
        sink.communicate(Collective {
            kind: CollectiveKind::AllGather,
            elements: gathered(run.parameters[parameter].elements.0, run.world),
            element: run.element(parameter),
            ranks: run.world,
        });
        if !one_by_one {
            sink.launch(flight);
        }
    }
}
