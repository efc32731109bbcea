//! Who wants to see every moment of a simulated step.

use super::cause::Cause;
use crate::zero::{Collective, HostCopy};

/// Where something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Kernels.
    Compute,
    /// The communicator's queue.
    Communication,
    /// The queue of secondary groups (hpZ).
    Nearby,
    /// Copies from the host.
    ToDevice,
    /// Copies to the host.
    ToHost,
    /// The host's processors.
    Host,
    /// Disks.
    Disk,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Compute,
        Self::Communication,
        Self::Nearby,
        Self::ToDevice,
        Self::ToHost,
        Self::Host,
        Self::Disk,
    ];

    /// Its name for machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Nearby => "nearby",
            Self::ToDevice => "to_device",
            Self::ToHost => "to_host",
            Self::Host => "host",
            Self::Disk => "disk",
        }
    }
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// Kernels of forward, of a module where that is known.
    Forward(Option<u32>),
    /// Kernels of backward.
    Backward(Option<u32>),
    /// The optimizer.
    Update,
    /// Ranks communicate.
    Call(Collective),
    /// A copy.
    Copy(HostCopy),
    /// States go to and from disks.
    Disk,
    /// Kernels wait.
    Wait(Cause),
}

/// One thing, from when to when, in seconds since the step began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Where.
    pub stream: Stream,
    /// Its beginning.
    pub begin: f64,
    /// Its end.
    pub end: f64,
    /// What.
    pub what: What,
}

/// Is told everything that happens.
pub trait Observer {
    /// Something happened.
    fn span(&mut self, span: Span);
}

/// Does not want to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    #[inline]
    fn span(&mut self, _span: Span) {}
}

/// Keeps everything.
#[derive(Debug, Clone, Default)]
pub struct Spans(pub Vec<Span>);

impl Observer for Spans {
    fn span(&mut self, span: Span) {
        if span.end > span.begin {
            self.0.push(span);
        }
    }
}
