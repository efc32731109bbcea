//! Stages 1 and 2: buckets are reduced as they fill, and each rank keeps the gradients it owns.

mod bucket;
mod owned;

use zeropilot_config::settings::Stage;

use crate::zero::flat_layout::FlatLayout;
use crate::zero::precision::Dtypes;
use crate::zero::rest::{Category, Place};
use crate::zero::run::Run;
use crate::zero::sink::{Handle, Sink};
use crate::zero::stage12::layouts;

/// Where the gradient of a parameter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gradient {
    None,
    /// In a storage of its own.
    Own(Handle),
    /// In a bucket.
    Bucket(usize),
    /// In the buffer of what this rank owns.
    Partition,
}

/// A parameter's place in the flat layouts, as this rank sees it.
#[derive(Debug, Clone, Copy)]
struct Ownership {
    group: usize,
    /// Its place in the group.
    position: usize,
    /// Elements this rank owns.
    mine: u64,
}

/// Gradients this rank owns, from the first micro step that reduced them to the step.
#[derive(Debug, Clone, Default)]
struct Kept {
    handles: Vec<Handle>,
    filled: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Partitioned<'a> {
    run: &'a Run<'a>,
    dtypes: Dtypes,
    layouts: Vec<FlatLayout>,
    /// By parameter; none for frozen ones.
    ownership: Vec<Option<Ownership>>,
    boundary: bool,
    gradients: Vec<Gradient>,
    buckets: Vec<Handle>,
    /// Whether buckets have been set up and not dropped since.
    set_up: bool,
    /// The bucket that is being filled.
    current: usize,
    elements: u64,
    members: Vec<usize>,
    /// The buffer of owned gradients of the present backward.
    partition: Option<Handle>,
    kept: Kept,
    compact: Vec<Option<Handle>>,
    /// Gradients of other ranks that go with the next reduction.
    deferred: Vec<usize>,
    host_sums: Vec<Option<Handle>>,
    /// Backward passes since the last step.
    micro_step: usize,
}

impl<'a> Partitioned<'a> {
    pub(super) fn new(run: &'a Run<'a>) -> Self {
        let dtypes = Dtypes::of(run);
        let layouts = layouts(run, dtypes);
        let count = run.parameters.len();
        let mut ownership = vec![None; count];
        for (group, layout) in layouts.iter().enumerate() {
            for (position, index) in run.group_indices(group).enumerate() {
                let mine = layout.part(position, run.rank);
                ownership[index] = Some(Ownership { group, position, mine });
            }
        }
        Self {
            run,
            dtypes,
            compact: vec![None; layouts.len()],
            layouts,
            ownership,
            boundary: true,
            gradients: vec![Gradient::None; count],
            buckets: Vec::new(),
            set_up: false,
            current: 0,
            elements: 0,
            members: Vec::new(),
            partition: None,
            kept: Kept::default(),
            deferred: Vec::new(),
            host_sums: vec![None; count],
            micro_step: 0,
        }
    }

    fn size(&self, parameter: usize) -> u64 {
        self.run.parameters[parameter].elements.0
    }

    fn first_stage(&self) -> bool {
        self.run.zero.stage == Stage::One
    }

    /// In stage 1 gradients of another format than the model's are kept beside the parameter's own.
    fn accumulates_apart(&self) -> bool {
        self.first_stage() && self.dtypes.is_compact()
    }

    /// Bytes per element of gradients in buckets.
    fn element(&self) -> u64 {
        if self.accumulates_apart() { 4 } else { self.dtypes.model }
    }

    pub(in crate::zero::reduction) fn offloads(&self) -> bool {
        self.run.zero.offload_optimizer.is_some()
    }

    fn copy(&self, bytes: u64, sink: &mut impl Sink) -> Handle {
        sink.allocate(Category::ReductionCopies, Place::Device, bytes)
    }

    fn drop_gradient(&mut self, parameter: usize, sink: &mut impl Sink) {
        if let Gradient::Own(handle) =
            std::mem::replace(&mut self.gradients[parameter], Gradient::None)
        {
            sink.free(handle);
        }
    }

    pub(super) fn begin_backward(&mut self, boundary: bool, sink: &mut impl Sink) {
        self.boundary = boundary;
        if !self.run.makes_buckets_late() {
            self.set_up_buckets(sink);
        }
    }

    pub(super) fn ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        self.add(parameter, gradient, sink);
        if self.reduces_now() {
            self.fill(parameter, sink);
        }
    }

    pub(super) fn part_ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        self.add(parameter, gradient, sink);
        if self.reduces_now() {
            self.make_room(parameter, sink);
        }
    }

    /// Whether gradients go into buckets as they come.
    fn reduces_now(&self) -> bool {
        !self.first_stage() || (self.run.zero.overlap_comm && self.boundary)
    }

    /// A gradient becomes that of its parameter, or is added to it.
    fn add(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        let first = matches!(self.gradients[parameter], Gradient::None);
        if !self.accumulates_apart() {
            if first {
                self.gradients[parameter] = Gradient::Own(gradient);
            } else {
                sink.free(gradient);
            }
        }
        self.set_up_buckets(sink);
        if self.accumulates_apart() {
            let cast = sink.allocate(Category::Gradients, Place::Device, self.size(parameter) * 4);
            if first {
                self.gradients[parameter] = Gradient::Own(cast);
            } else {
                sink.free(cast);
            }
            sink.free(gradient);
        }
    }

    fn set_up_buckets(&mut self, sink: &mut impl Sink) {
        if self.set_up {
            return;
        }
        self.set_up = true;
        self.current = 0;
        if self.run.contiguous_gradients() {
            let bytes = self.run.zero.reduce_bucket.0 * self.element();
            let count = if self.run.zero.overlap_comm { 2 } else { 1 };
            self.buckets = (0..count)
                .map(|_| sink.allocate(Category::ReduceBucket, Place::Device, bytes))
                .collect();
        }
    }

    /// Moves a gradient into the bucket, which is reduced first if there is no room.
    fn fill(&mut self, parameter: usize, sink: &mut impl Sink) {
        let size = self.size(parameter);
        let limit = self.run.zero.reduce_bucket.0;
        self.make_room(parameter, sink);
        if self.run.contiguous_gradients() {
            if size <= limit {
                self.drop_gradient(parameter, sink);
                self.gradients[parameter] = Gradient::Bucket(self.current);
            } else if self.offloads() {
                let clone =
                    sink.allocate(Category::Gradients, Place::Device, size * self.element());
                self.drop_gradient(parameter, sink);
                self.gradients[parameter] = Gradient::Own(clone);
            }
        }
        self.elements += size;
        self.members.push(parameter);
    }

    /// Reduces the bucket if a gradient has no room in it.
    fn make_room(&mut self, parameter: usize, sink: &mut impl Sink) {
        if self.elements + self.size(parameter) > self.run.zero.reduce_bucket.0 {
            self.reduce(sink);
            if self.run.contiguous_gradients() && self.run.zero.overlap_comm {
                self.current = 1 - self.current;
            }
        }
    }

    fn reduce(&mut self, sink: &mut impl Sink) {
        let members = std::mem::take(&mut self.members);
        if !members.is_empty() {
            match (self.run.contiguous_gradients(), self.run.zero.reduce_scatter) {
                (true, true) => self.reduce_slices(&members, sink),
                (true, false) => self.reduce_at_once(&members, false, sink),
                (false, _) => {
                    if self.run.zero.overlap_comm {
                        self.drop_deferred(sink);
                    }
                    self.reduce_at_once(&members, members.len() > 1, sink);
                }
            }
        }
        for parameter in members {
            self.after_reduction(parameter, sink);
        }
        self.elements = 0;
    }

    fn drop_deferred(&mut self, sink: &mut impl Sink) {
        for parameter in std::mem::take(&mut self.deferred) {
            self.drop_gradient(parameter, sink);
        }
    }

    pub(super) fn end_backward(&mut self, sink: &mut impl Sink) {
        if self.first_stage() {
            if !self.boundary {
                return;
            }
            if !self.run.zero.overlap_comm {
                for parameter in self.with_gradient() {
                    self.fill(parameter, sink);
                }
            }
        }
        self.reduce(sink);
        self.drop_deferred(sink);
        let spare = if self.offloads() { Vec::new() } else { self.collect(sink) };
        self.drop_buckets(sink);
        spare.into_iter().for_each(|handle| sink.free(handle));
        self.micro_step += 1;
    }

    /// Parameters that have a gradient, group by group; a model need not use all of its parameters.
    fn with_gradient(&self) -> Vec<usize> {
        let groups = (0..self.run.groups()).flat_map(|group| self.run.group_indices(group));
        groups.filter(|&parameter| self.gradients[parameter] != Gradient::None).collect()
    }

    /// Buckets go, except one that a gradient kept beside its parameter still lies in.
    fn drop_buckets(&mut self, sink: &mut impl Sink) {
        if !self.accumulates_apart() {
            (0..self.gradients.len()).for_each(|parameter| self.drop_gradient(parameter, sink));
        }
        for (index, bucket) in std::mem::take(&mut self.buckets).into_iter().enumerate() {
            if self.gradients.contains(&Gradient::Bucket(index)) {
                self.kept.handles.push(bucket);
            } else {
                sink.free(bucket);
            }
        }
        self.set_up = false;
    }

    pub(super) fn end_step(&mut self, sink: &mut impl Sink) {
        (0..self.gradients.len()).for_each(|parameter| self.drop_gradient(parameter, sink));
        let kept = std::mem::take(&mut self.kept).handles.into_iter();
        for handle in kept.chain(self.compact.iter_mut().filter_map(Option::take)) {
            sink.free(handle);
        }
        self.micro_step = 0;
    }
}
