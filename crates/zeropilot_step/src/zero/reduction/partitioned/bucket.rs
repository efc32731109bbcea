//! How one bucket is reduced.

use super::Partitioned;
use crate::zero::rest::{Category, Place};
use crate::zero::sink::{Collective, CollectiveKind, Handle, Sink};

/// A run of elements in a bucket that one rank owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    rank: u64,
    elements: u64,
    /// Whether it is added to this rank's flat fp32 gradients.
    added: bool,
}

impl Partitioned<'_> {
    /// The bucket cut at the borders of partitions; neighbours of one owner are one slice unless they are added apart.
    fn slices(&self, members: &[usize]) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let owners =
            members.iter().filter_map(|&p| self.ownership[p].as_ref()).flat_map(|o| &o.owners);
        for &(rank, elements) in owners {
            let added = self.dtypes.is_compact() && rank == self.run.rank;
            match slices.last_mut() {
                Some(last) if last.rank == rank && !added => last.elements += elements,
                _ => slices.push(Slice { rank, elements, added }),
            }
        }
        slices
    }

    pub(super) fn reduce_slices(&mut self, members: &[usize], sink: &mut impl Sink) {
        let slices = self.slices(members);
        for &parameter in members {
            self.build_compact(parameter, sink);
        }
        if self.run.zero.multi_rank_bucket_allreduce {
            self.reduce_batches(&slices, CollectiveKind::AllReduce, sink);
            return;
        }
        let mut owners: Vec<u64> = Vec::new();
        for slice in &slices {
            if !owners.contains(&slice.rank) {
                owners.push(slice.rank);
            }
        }
        for to in owners {
            let own: Vec<Slice> = slices.iter().copied().filter(|slice| slice.rank == to).collect();
            self.reduce_batches(&own, CollectiveKind::Reduce { to }, sink);
        }
    }

    /// Slices are reduced together until they are more than a bucket holds.
    fn reduce_batches(&self, slices: &[Slice], kind: CollectiveKind, sink: &mut impl Sink) {
        let limit = self.run.zero.reduce_bucket.0;
        let mut batch: Vec<Slice> = Vec::new();
        for (index, slice) in slices.iter().enumerate() {
            batch.push(*slice);
            let elements: u64 = batch.iter().map(|slice| slice.elements).sum();
            if elements > limit || index + 1 == slices.len() {
                self.reduce_batch(&std::mem::take(&mut batch), kind, sink);
            }
        }
    }

    /// Slices are joined, cast for the wire, reduced; some are then added to the flat fp32 gradients.
    fn reduce_batch(&self, batch: &[Slice], kind: CollectiveKind, sink: &mut impl Sink) {
        let elements: u64 = batch.iter().map(|slice| slice.elements).sum();
        let mut tensor = (batch.len() > 1).then(|| self.copy(elements * self.element(), sink));
        let cast = self.cast_for_wire(elements, kind, sink);
        if cast.is_some() {
            std::mem::replace(&mut tensor, cast).into_iter().for_each(|joined| sink.free(joined));
        }
        for slice in batch.iter().filter(|slice| slice.added) {
            self.add_to_compact(slice.elements, sink);
        }
        tensor.into_iter().for_each(|tensor| sink.free(tensor));
    }

    /// The copy that is sent where the wire has another format, and the call itself.
    fn cast_for_wire(
        &self,
        elements: u64,
        kind: CollectiveKind,
        sink: &mut impl Sink,
    ) -> Option<Handle> {
        let element = self.dtypes.communication;
        let cast = (element != self.element()).then(|| self.copy(elements * element, sink));
        sink.communicate(Collective { kind, elements, element, ranks: self.run.world });
        cast
    }

    /// The whole bucket in one piece, joined first where gradients lie apart.
    pub(super) fn reduce_at_once(&mut self, members: &[usize], join: bool, sink: &mut impl Sink) {
        let mut tensor = join.then(|| self.copy(self.elements * self.element(), sink));
        let cast = self.cast_for_wire(self.elements, CollectiveKind::AllReduce, sink);
        if cast.is_some() {
            std::mem::replace(&mut tensor, cast).into_iter().for_each(|joined| sink.free(joined));
        }
        for &parameter in members {
            self.build_compact(parameter, sink);
            let mine = self.ownership[parameter].as_ref().map_or(0, |ownership| ownership.mine);
            if self.dtypes.is_compact() && mine > 0 {
                self.add_to_compact(mine, sink);
            }
        }
        tensor.into_iter().for_each(|tensor| sink.free(tensor));
    }

    fn add_to_compact(&self, elements: u64, sink: &mut impl Sink) {
        if self.dtypes.communication != 4 {
            sink.touch(Category::ReductionCopies, Place::Device, elements * 4);
        }
    }

    /// The flat fp32 gradients of a group begin with the first gradient of it that this rank owns.
    pub(super) fn build_compact(&mut self, parameter: usize, sink: &mut impl Sink) {
        let Some(ownership) = &self.ownership[parameter] else { return };
        if self.dtypes.is_compact() && ownership.mine > 0 {
            self.build_compact_group(ownership.group, sink);
        }
    }

    pub(super) fn build_compact_group(&mut self, group: usize, sink: &mut impl Sink) {
        let bytes = self.layouts[group].partition * 4;
        self.compact[group]
            .get_or_insert_with(|| sink.allocate(Category::FlatGradients, Place::Device, bytes));
    }
}
