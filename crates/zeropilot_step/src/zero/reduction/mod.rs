//! What happens to a gradient once backward has completed it, until the optimizer step begins.
//!
//! The caller reports gradients in the order in which they become ready and hands each over; from then on it lives
//! and dies here: in a bucket, in this rank's partition, on the host, or with its parameter.

mod partitioned;
mod sharded;
mod whole;

use self::partitioned::Partitioned;
use self::sharded::Sharded;
use self::whole::Whole;
use super::precision::Wrapper;
use super::run::{Backend, Run};
use super::sink::{Handle, Sink};

#[derive(Debug, Clone)]
enum Kind<'a> {
    Whole(Whole<'a>),
    Partitioned(Box<Partitioned<'a>>),
    Sharded(Sharded<'a>),
}

/// Takes gradients over as backward completes them.
#[derive(Debug, Clone)]
pub struct Reducer<'a>(Kind<'a>);

impl<'a> Reducer<'a> {
    /// As after initialization: no gradient is alive.
    pub fn new(run: &'a Run<'a>, backend: Backend) -> Self {
        Self(match Wrapper::of(run) {
            Wrapper::Bare | Wrapper::FlatMixed | Wrapper::PerTensorMixed | Wrapper::Bf16 => {
                Kind::Whole(Whole::new(run))
            }
            Wrapper::Partitioned => Kind::Partitioned(Box::new(Partitioned::new(run))),
            Wrapper::Sharded => Kind::Sharded(Sharded::new(run, backend)),
        })
    }

    /// A backward pass begins; `boundary` says whether the optimizer step follows it.
    pub fn begin_backward(&mut self, boundary: bool, sink: &mut impl Sink) {
        match &mut self.0 {
            Kind::Whole(whole) => whole.boundary = boundary,
            Kind::Partitioned(partitioned) => partitioned.begin_backward(boundary, sink),
            Kind::Sharded(sharded) => sharded.boundary = boundary,
        }
    }

    /// Whether micro steps from equal states differ if one of them is the last.
    pub(crate) fn ends_differ(&self) -> bool {
        match &self.0 {
            Kind::Whole(_) | Kind::Partitioned(_) => true,
            Kind::Sharded(sharded) => sharded.offloads(),
        }
    }

    /// Whether a step leaves more behind than it found.
    pub(crate) fn keeps_sums(&self) -> bool {
        matches!(&self.0, Kind::Partitioned(partitioned) if partitioned.offloads())
    }

    /// The gradient of a parameter is complete; `gradient` passes over.
    pub fn ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        match &mut self.0 {
            Kind::Whole(whole) => whole.ready(parameter, gradient, sink),
            Kind::Partitioned(partitioned) => partitioned.ready(parameter, gradient, sink),
            Kind::Sharded(sharded) => sharded.ready(parameter, gradient, sink),
        }
    }

    /// A part of the gradient of a parameter; `gradient` passes over. It waits for the rest, but a bucket without room for
    /// all of it is reduced now.
    pub fn part_ready(&mut self, parameter: usize, gradient: Handle, sink: &mut impl Sink) {
        match &mut self.0 {
            Kind::Whole(whole) => whole.ready(parameter, gradient, sink),
            Kind::Partitioned(partitioned) => partitioned.part_ready(parameter, gradient, sink),
            Kind::Sharded(sharded) => sharded.part_ready(parameter, gradient, sink),
        }
    }

    /// Backward is over.
    pub fn end_backward(&mut self, sink: &mut impl Sink) {
        match &mut self.0 {
            Kind::Whole(whole) => whole.end_backward(sink),
            Kind::Partitioned(partitioned) => partitioned.end_backward(sink),
            Kind::Sharded(sharded) => sharded.end_backward(sink),
        }
    }

    /// The optimizer step has used the gradients.
    pub fn end_step(&mut self, sink: &mut impl Sink) {
        match &mut self.0 {
            Kind::Whole(whole) => whole.end_step(sink),
            Kind::Partitioned(partitioned) => partitioned.end_step(sink),
            Kind::Sharded(_) => {}
        }
    }
}
