//! Stage 3: a permanent bucket is reduce-scattered when it is full, and every rank keeps its share.

use std::collections::BTreeMap;

use crate::zero::precision::Dtypes;
use crate::zero::rest::{Category, Place};
use crate::zero::run::{Backend, Run};
use crate::zero::sink::{Collective, CollectiveKind, Direction, Handle, HostCopy, Sink};
use crate::zero::stage3::{gathered, share};

/// Elements whose norm is taken at once when gradients go to the host.
const NORM_ELEMENTS: u64 = 250_000_000;

#[derive(Debug, Clone)]
pub(super) struct Sharded<'a> {
    run: &'a Run<'a>,
    dtypes: Dtypes,
    backend: Backend,
    pub(super) boundary: bool,
    elements: u64,
    /// Parameters in the bucket; a gradient that did not fit keeps its own storage.
    members: Vec<(usize, Option<Handle>)>,
    /// Parts of gradients that wait for the rest.
    parts: BTreeMap<usize, Handle>,
    /// Room for the copies of a reduction.
    copies: Vec<Handle>,
}

impl<'a> Sharded<'a> {
    pub(super) fn new(run: &'a Run<'a>, backend: Backend) -> Self {
        Self {
            run,
            dtypes: Dtypes::of(run),
            backend,
            boundary: true,
            elements: 0,
            members: Vec::new(),
            parts: BTreeMap::new(),
            copies: Vec::new(),
        }
    }

    pub(super) fn offloads(&self) -> bool {
        self.run.zero.offload_optimizer.is_some()
    }

    fn size(&self, parameter: usize) -> u64 {
        self.run.parameters[parameter].elements.0
    }

    pub(super) fn ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        let size = self.size(parameter);
        let limit = self.run.zero.reduce_bucket.0;
        let gradient = self.add(parameter, gradient, sink);
        self.make_room(parameter, sink);
        let fits = self.run.zero.contiguous_gradients && self.elements + size <= limit;
        if fits {
            sink.free(gradient);
        }
        self.members.push((parameter, (!fits).then_some(gradient)));
        self.elements += size;
    }

    pub(super) fn part_ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        let sum = self.add(parameter, gradient, sink);
        self.parts.insert(parameter, sum);
        self.make_room(parameter, sink);
    }

    /// A gradient with the parts that came before it.
    fn add(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) -> Handle {
        let Some(sum) = self.parts.remove(&parameter) else { return gradient };
        sink.free(gradient);
        sum
    }

    /// Reduces the bucket if a gradient has no room in it.
    fn make_room(&mut self, parameter: usize, sink: &mut impl Sink) {
        let is_full = self.elements + self.size(parameter) > self.run.zero.reduce_bucket.0;
        if self.elements > 0 && is_full {
            self.reduce(sink);
        }
    }

    pub(super) fn end_backward(&mut self, sink: &mut impl Sink) {
        self.reduce(sink);
    }

    fn reduce(&mut self, sink: &mut impl Sink) {
        let mut members = std::mem::take(&mut self.members);
        if members.is_empty() {
            return;
        }
        let zero = self.run.zero;
        let in_bucket = zero.contiguous_gradients && self.elements <= zero.reduce_bucket.0;
        let mut copies = std::mem::take(&mut self.copies);
        if in_bucket && !zero.reduce_scatter {
            self.all_reduce(&members, &mut copies, sink);
        } else {
            members.sort_unstable_by_key(|(parameter, _)| *parameter);
            self.reduce_scatter(&members, in_bucket, &mut copies, sink);
        }
        for (parameter, own) in members.drain(..) {
            self.keep_share(parameter, sink);
            own.into_iter().for_each(|gradient| sink.free(gradient));
        }
        copies.drain(..).for_each(|copy| sink.free(copy));
        (self.members, self.copies) = (members, copies);
        self.elements = 0;
    }

    fn communicate(&self, kind: CollectiveKind, elements: u64, sink: &mut impl Sink) {
        let (element, ranks) = (self.dtypes.communication, self.run.world);
        sink.communicate(Collective { kind, elements, element, ranks });
    }

    /// The whole bucket is reduced in place and scaled into a copy, of which each rank reads its share.
    fn all_reduce(
        &self,
        members: &[(usize, Option<Handle>)],
        copies: &mut Vec<Handle>,
        sink: &mut impl Sink,
    ) {
        let Dtypes { communication, accumulation, .. } = self.dtypes;
        self.communicate(CollectiveKind::AllReduce, self.elements, sink);
        let mut copy = |bytes| sink.allocate(Category::ReductionCopies, Place::Device, bytes);
        if self.run.world > 1 {
            copies.push(copy(self.elements * communication));
        }
        if self.dtypes.casts_to_add {
            copies.push(copy(self.elements * accumulation));
            // The cast replaces the scaled copy.
            if copies.len() == 2 {
                sink.free(copies.remove(0));
            }
        }
        for &(parameter, _) in members {
            let (size, part) = (self.size(parameter), share(self.size(parameter), self.run.world));
            if size.saturating_sub(self.run.rank * part).min(part) != part {
                copies.push(sink.allocate(
                    Category::ReductionCopies,
                    Place::Device,
                    part * accumulation,
                ));
            }
        }
    }

    /// Shares are interleaved rank by rank in a flat buffer, which then holds this rank's result.
    fn reduce_scatter(
        &self,
        members: &[(usize, Option<Handle>)],
        in_bucket: bool,
        copies: &mut Vec<Handle>,
        sink: &mut impl Sink,
    ) {
        let Dtypes { communication, accumulation, .. } = self.dtypes;
        let world = self.run.world;
        if self.dtypes.casts_to_send && !in_bucket {
            for &(parameter, _) in members {
                let bytes = self.size(parameter) * communication;
                copies.push(sink.allocate(Category::ReductionCopies, Place::Device, bytes));
            }
        }
        let whole: u64 =
            members.iter().map(|&(parameter, _)| gathered(self.size(parameter), world)).sum();
        let bytes = whole * communication;
        let in_place = members.len() == 1 && whole == self.elements;
        let flat =
            (!in_place).then(|| sink.allocate(Category::ReductionCopies, Place::Device, bytes));
        self.communicate(CollectiveKind::ReduceScatter, whole, sink);
        if self.backend == Backend::Gloo {
            sink.touch(Category::CommunicationCopies, Place::Device, bytes);
        }
        if !self.dtypes.casts_to_add {
            copies.extend(flat);
            return;
        }
        let casts = copies.len();
        for &(parameter, _) in members {
            let bytes = share(self.size(parameter), world) * accumulation;
            copies.push(sink.allocate(Category::ReductionCopies, Place::Device, bytes));
        }
        copies.drain(..casts).chain(flat).for_each(|copy| sink.free(copy));
    }

    /// A share goes into the gradient partition; before a step an offloaded one also goes to the optimizer's.
    fn keep_share(&self, parameter: usize, sink: &mut impl Sink) {
        let size = self.size(parameter);
        let part = share(size, self.run.world);
        let real = size.saturating_sub(self.run.rank * part).min(part);
        if real == 0 || self.run.zero.offload_optimizer.is_none() {
            return;
        }
        // The partition is on the host; norm and cast work on a copy of it on the device.
        let apart = self.backend == Backend::Nccl;
        let bytes = if apart { real * self.dtypes.accumulation } else { 0 };
        if apart {
            // The partition goes to the device and back, whether it has a sum already or not.
            sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
            sink.copy(HostCopy { direction: Direction::ToHost, bytes });
            let bytes = if self.boundary { real * self.dtypes.master } else { 0 };
            sink.copy(HostCopy { direction: Direction::ToHost, bytes });
        }
        let copy = sink.allocate(Category::ReductionCopies, Place::Device, bytes);
        if self.boundary {
            sink.touch(Category::NormCopies, Place::Device, real.min(NORM_ELEMENTS) * 8);
            if self.dtypes.master != self.dtypes.accumulation {
                sink.touch(Category::ReductionCopies, Place::Device, real * self.dtypes.master);
            }
        }
        sink.free(copy);
    }
}
