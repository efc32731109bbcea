//! What this rank keeps of a reduced bucket, and what becomes of it until the step.

use super::{Gradient, Partitioned};
use crate::zero::precision::Dtypes;
use crate::zero::rest::{Category, Place};
use crate::zero::sink::{Direction, Handle, HostCopy, Sink};

impl Partitioned<'_> {
    pub(super) fn after_reduction(&mut self, parameter: usize, sink: &mut impl Sink) {
        let mine = self.ownership[parameter].as_ref().map_or(0, |ownership| ownership.mine);
        let contiguous = self.run.contiguous_gradients();
        if mine > 0 {
            if contiguous {
                self.keep(parameter, mine, sink);
            }
        } else if !self.first_stage() {
            if self.run.zero.overlap_comm && !contiguous {
                self.deferred.push(parameter);
            } else {
                self.drop_gradient(parameter, sink);
            }
        }
    }

    /// Takes an owned gradient out of the bucket, which will be filled again.
    fn keep(&mut self, parameter: usize, mine: u64, sink: &mut impl Sink) {
        if self.offloads() {
            self.offload(parameter, mine, sink);
        } else if self.dtypes.is_compact() {
            // It has been added to the flat gradients.
            if self.accumulates_apart() {
                self.drop_gradient(parameter, sink);
            }
        } else {
            if self.partition.is_none() {
                let owned: u64 =
                    self.layouts.iter().map(|layout| layout.owned(self.run.rank)).sum();
                let bytes = owned * self.dtypes.model;
                self.partition =
                    Some(sink.allocate(Category::AveragedGradients, Place::Device, bytes));
            }
            self.drop_gradient(parameter, sink);
            self.gradients[parameter] = Gradient::Partition;
        }
    }

    fn offload(&mut self, parameter: usize, mine: u64, sink: &mut impl Sink) {
        let Dtypes { model, master, .. } = self.dtypes;
        let compact = self.dtypes.is_compact();
        if !compact
            && master == 4
            && (self.micro_step > 0 || !self.boundary)
            && self.host_sums[parameter].is_none()
        {
            let (place, bytes) = (self.run.staging_place(), self.size(parameter) * model);
            self.host_sums[parameter] =
                Some(sink.allocate(Category::HostAccumulation, place, bytes));
        }
        self.copy_to_host(parameter, mine, sink);
        if self.boundary {
            sink.touch(Category::NormCopies, Place::Device, mine * 8);
            let tested = self.size(parameter) * self.run.infinity_test();
            sink.touch(Category::NormCopies, Place::Device, tested);
            let source = if compact { 4 } else { model };
            if master != source {
                sink.touch(Category::ReductionCopies, Place::Device, mine * master);
            }
            self.drop_gradient(parameter, sink);
        }
    }

    /// What goes to the host of a gradient this rank owns a part of: in stage 2 every micro step the whole of it, with
    /// what the host has already brought back first; before a step the part in the master's format.
    fn copy_to_host(&self, parameter: usize, mine: u64, sink: &mut impl Sink) {
        let Dtypes { model, master, .. } = self.dtypes;
        let adds_up = self.run.accumulation_steps > 1;
        if adds_up && !self.first_stage() && !self.dtypes.is_compact() {
            let elements = if master == 4 { self.size(parameter) } else { mine };
            let bytes = elements * model;
            if self.micro_step > 0 {
                sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
            }
            sink.copy(HostCopy { direction: Direction::ToHost, bytes });
        }
        if self.boundary {
            sink.copy(HostCopy { direction: Direction::ToHost, bytes: mine * master });
        }
    }

    /// Owned gradients are added to those of earlier micro steps; says what is left over. Padding completes them
    /// before a step.
    pub(super) fn collect(&mut self, sink: &mut impl Sink) -> Vec<Handle> {
        if self.dtypes.is_compact() {
            if self.boundary {
                (0..self.layouts.len()).for_each(|group| self.build_compact_group(group, sink));
            }
            return Vec::new();
        }
        let fresh = self.take_owned(sink);
        let spare = if std::mem::replace(&mut self.kept.filled, true) {
            fresh
        } else {
            self.kept.handles.extend(fresh);
            Vec::new()
        };
        if self.boundary {
            for layout in &self.layouts {
                let bytes = layout.padding(self.run.rank) * self.dtypes.model;
                self.kept.handles.push(sink.allocate(
                    Category::AveragedGradients,
                    Place::Device,
                    bytes,
                ));
            }
        }
        spare
    }

    /// Everything this rank owns of the present backward; an owned parameter without a gradient gets zeros.
    fn take_owned(&mut self, sink: &mut impl Sink) -> Vec<Handle> {
        let mut owned: Vec<Handle> = self.partition.take().into_iter().collect();
        let parameters = self.gradients.iter_mut().zip(self.run.parameters).zip(&self.ownership);
        for ((gradient, parameter), ownership) in parameters {
            if ownership.as_ref().is_none_or(|ownership| ownership.mine == 0) {
                continue;
            }
            match *gradient {
                Gradient::Own(handle) => {
                    owned.push(handle);
                    *gradient = Gradient::None;
                }
                Gradient::None => {
                    let bytes = parameter.elements.0 * self.dtypes.model;
                    owned.push(sink.allocate(Category::AveragedGradients, Place::Device, bytes));
                }
                Gradient::Bucket(_) | Gradient::Partition => {}
            }
        }
        owned
    }
}
