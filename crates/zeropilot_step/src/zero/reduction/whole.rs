//! Stage 0 and the bf16 optimizer: gradients stay with their parameters until the end of the last backward pass.

use crate::zero::precision::{Dtypes, Wrapper};
use crate::zero::rest::{Category, Place};
use crate::zero::run::{Engine, Run};
use crate::zero::sink::{Collective, CollectiveKind, Handle, Sink};
use crate::zero::stage12::layouts;

/// Elements that are all-reduced together at most; one tensor may go beyond.
const ELEMENTS_AT_ONCE: u64 = 500_000_000;

/// `bucket_cap_mb` of `DistributedDataParallel`: 25 by default.
const DDP_BUCKET: u64 = 25 << 20;

#[derive(Debug, Clone)]
pub(super) struct Whole<'a> {
    run: &'a Run<'a>,
    dtypes: Dtypes,
    adds_at_once: bool,
    /// Gradients of the step before are still there.
    keeps_gradients: bool,
    pub(super) boundary: bool,
    gradients: Vec<Option<Handle>>,
}

impl<'a> Whole<'a> {
    pub(super) fn new(run: &'a Run<'a>) -> Self {
        Self {
            run,
            dtypes: Dtypes::of(run),
            adds_at_once: Wrapper::adds_at_once(run),
            keeps_gradients: Wrapper::of(run) == Wrapper::Bf16 && run.keeps_gradients(),
            boundary: true,
            gradients: vec![None; run.parameters.len()],
        }
    }

    pub(super) fn ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        if self.adds_at_once {
            let copy = self.run.parameters[parameter].elements.0 * 4;
            sink.touch(Category::ReductionCopies, Place::Device, copy);
            sink.free(gradient);
            return;
        }
        match self.gradients[parameter] {
            // Added in place to the one of an earlier micro step, or of the step before.
            Some(_) => sink.free(gradient),
            None if self.keeps_gradients => sink.free(gradient),
            None => self.gradients[parameter] = Some(gradient),
        }
    }

    pub(super) fn end_backward(&mut self, sink: &mut impl Sink) {
        if Wrapper::of(self.run) == Wrapper::Bf16 {
            let added_now = self.run.trainable().filter(|_| !self.adds_at_once);
            for size in added_now {
                sink.touch(Category::ReductionCopies, Place::Device, size * 4);
            }
            if self.boundary {
                let buffers: Vec<u64> =
                    layouts(self.run, self.dtypes).iter().map(|layout| layout.total).collect();
                self.all_reduce(&buffers, 4, sink);
            }
        } else if self.boundary {
            match self.run.engine {
                Engine::DeepSpeed => {
                    let trained = self.run.parameters.iter().filter(|p| p.trainable);
                    let sizes: Vec<u64> = trained.map(|p| p.elements.0).collect();
                    self.all_reduce(&sizes, self.dtypes.model, sink);
                }
                Engine::PyTorch => self.all_reduce_buckets(sink),
            }
        }
    }

    /// `DistributedDataParallel` fills its buckets in the order in which gradients come.
    fn all_reduce_buckets(&self, sink: &mut impl Sink) {
        for (element, mut left) in self.run.trained_by_element() {
            while left > 0 && self.run.world > 1 {
                let elements = left.min(DDP_BUCKET / element);
                sink.communicate(Collective {
                    kind: CollectiveKind::AllReduce,
                    elements,
                    element,
                    ranks: self.run.world,
                });
                left -= elements;
            }
        }
    }

    /// Tensors are joined until there are enough of them, then reduced; a single one is reduced where it is.
    fn all_reduce(&self, sizes: &[u64], element: u64, sink: &mut impl Sink) {
        let mut joined: (u64, usize) = (0, 0);
        for (index, size) in sizes.iter().enumerate() {
            joined = (joined.0 + size, joined.1 + 1);
            if joined.0 > ELEMENTS_AT_ONCE || index + 1 == sizes.len() {
                let flat = if joined.1 > 1 { joined.0 * element } else { 0 };
                let flat = sink.allocate(Category::ReductionCopies, Place::Device, flat);
                let is_own = element == self.dtypes.model;
                if self.dtypes.communication != element || is_own && self.dtypes.casts_to_send {
                    sink.touch(
                        Category::ReductionCopies,
                        Place::Device,
                        joined.0 * self.dtypes.communication,
                    );
                }
                sink.communicate(Collective {
                    kind: CollectiveKind::AllReduce,
                    elements: joined.0,
                    element: self.dtypes.communication,
                    ranks: self.run.world,
                });
                sink.free(flat);
                joined = (0, 0);
            }
        }
    }

    pub(super) fn end_step(&mut self, sink: &mut impl Sink) {
        for gradient in self.gradients.iter_mut().filter_map(Option::take) {
            sink.free(gradient);
        }
    }
}
