//! How one bucket is reduced.

use std::collections::HashMap;

use super::Partitioned;
use crate::zero::rest::{Category, Place};
use crate::zero::sink::{Collective, CollectiveKind, Handle, Sink};

/// Elements in a bucket that one rank owns; slices of the same size of neighbouring ranks are told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slices {
    /// The first of the ranks.
    rank: u64,
    /// How many ranks.
    count: u64,
    /// Elements of each.
    elements: u64,
    /// Whether it (then it is one) is added to this rank's flat fp32 gradients.
    added: bool,
}

/// Slices that are reduced together.
#[derive(Debug, Default)]
struct Batch {
    count: u64,
    elements: u64,
    /// Sizes of those that are added to this rank's flat fp32 gradients.
    added: Vec<u64>,
}

impl Partitioned<'_> {
    /// The bucket cut at the borders of partitions; neighbours of one owner are one slice unless they are added apart.
    fn slices(&self, members: &[usize]) -> Vec<Slices> {
        let mut slices: Vec<Slices> = Vec::new();
        let owned = members.iter().filter_map(|&p| self.ownership[p]);
        let runs = owned.flat_map(|own| self.layouts[own.group].runs(own.position));
        for run in runs {
            let mine = self.run.rank;
            let is_split = self.dtypes.is_compact() && (run.first..run.end).contains(&mine);
            let borders = if is_split {
                [run.first, mine, mine + 1, run.end]
            } else {
                [run.first, run.end, run.end, run.end]
            };
            for (rank, end) in borders.into_iter().zip(borders.into_iter().skip(1)) {
                let added = is_split && rank == mine;
                add(&mut slices, Slices { rank, count: end - rank, elements: run.each, added });
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
        for own in by_owner(&slices) {
            self.reduce_batches(&own, CollectiveKind::Reduce { to: own[0].rank }, sink);
        }
    }

    /// Slices are reduced together until they are more than a bucket holds.
    fn reduce_batches(&self, slices: &[Slices], kind: CollectiveKind, sink: &mut impl Sink) {
        let limit = self.run.zero.reduce_bucket.0;
        let mut batch = Batch::default();
        for slices in slices {
            let mut left = slices.count;
            while left > 0 {
                let fitting = (limit - batch.elements) / slices.elements.max(1);
                let taken = left.min(fitting.saturating_add(1));
                left -= taken;
                batch.count += taken;
                batch.elements += taken * slices.elements;
                if slices.added {
                    batch.added.push(slices.elements);
                }
                if batch.elements > limit {
                    self.reduce_batch(&std::mem::take(&mut batch), kind, sink);
                }
            }
        }
        if batch.count > 0 {
            self.reduce_batch(&batch, kind, sink);
        }
    }

    /// Slices are joined, cast for the wire, reduced; some are then added to the flat fp32 gradients.
    fn reduce_batch(&self, batch: &Batch, kind: CollectiveKind, sink: &mut impl Sink) {
        let mut tensor =
            (batch.count > 1).then(|| self.copy(batch.elements * self.element(), sink));
        let cast = self.cast_for_wire(batch.elements, kind, sink);
        if cast.is_some() {
            std::mem::replace(&mut tensor, cast).into_iter().for_each(|joined| sink.free(joined));
        }
        for &elements in &batch.added {
            self.add_to_compact(elements, sink);
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

/// Puts slices behind others; the first joins the last if they have one owner and are not added apart.
fn add(slices: &mut Vec<Slices>, more: Slices) {
    if more.count == 0 {
        return;
    }
    match slices.last_mut() {
        Some(last) if last.rank + last.count - 1 == more.rank && !more.added => {
            let joined = Slices { count: 1, elements: last.elements + more.elements, ..more };
            last.count -= 1;
            if last.count == 0 {
                slices.pop();
            }
            slices.push(joined);
            if more.count > 1 {
                slices.push(Slices { rank: more.rank + 1, count: more.count - 1, ..more });
            }
        }
        _ => slices.push(more),
    }
}

/// Slices one by one, those of an owner together; owners in the order in which they first appear.
fn by_owner(slices: &[Slices]) -> Vec<Vec<Slices>> {
    let one = |slices: &Slices| {
        let slices = *slices;
        let ranks = slices.rank..slices.rank + slices.count;
        ranks.map(move |rank| Slices { rank, count: 1, ..slices })
    };
    let mut places = HashMap::new();
    let mut owners: Vec<Vec<Slices>> = Vec::new();
    for slice in slices.iter().flat_map(one) {
        let place = *places.entry(slice.rank).or_insert(owners.len());
        if place == owners.len() {
            owners.push(Vec::new());
        }
        owners[place].push(slice);
    }
    owners
}
