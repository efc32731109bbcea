//! Where every part of the step program reports what it allocates, frees and sends.

use std::collections::BTreeMap;

use super::rest::{Category, Place, Rest};

/// An allocation that has not been freed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub(super) u32);

impl Handle {
    /// For sinks that do not count.
    pub(crate) const UNCOUNTED: Self = Self(0);
}

/// What a group of ranks does together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank gets the shares of all.
    AllGather,
    /// Every rank gets its share of the sum.
    ReduceScatter,
    /// Every rank gets the sum.
    AllReduce,
    /// One rank gets the sum.
    Reduce {
        /// Which.
        to: u64,
    },
    /// Every rank gets a part of what each rank has.
    AllToAll,
}

/// One call of the communication library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collective {
    /// What it does.
    pub kind: CollectiveKind,
    /// Elements of the whole: what a gather ends with, what a reduction begins with; in an exchange what a rank has.
    pub elements: u64,
    /// Bytes of an element on the wire.
    pub element: u64,
    /// Ranks that take part.
    pub ranks: u64,
}

impl Collective {
    /// Where a program does not know how many ranks there are, but means all.
    pub(crate) const ALL_RANKS: u64 = 0;

    /// The same where there are so many ranks.
    pub(crate) fn among(self, world: u64) -> Self {
        let ranks = if self.ranks == Self::ALL_RANKS { world } else { self.ranks };
        Self { ranks, ..self }
    }
}

/// Which way a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the host to the device.
    ToDevice,
    /// From the device to the host.
    ToHost,
}

/// A copy between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCopy {
    /// Which way.
    pub direction: Direction,
    /// How much.
    pub bytes: u64,
}

/// Receives allocations, releases and calls in the order in which they happen.
pub trait Sink {
    /// Something of this many bytes begins to live.
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle;

    /// It ends.
    fn free(&mut self, handle: Handle);

    /// Ranks communicate.
    fn communicate(&mut self, _call: Collective) {}

    /// Ranks that share a sequence or layers communicate in the middle of a computation, which waits for the result.
    fn exchange(&mut self, call: Collective) {
        self.communicate(call);
    }

    /// What was alive before has been told.
    fn opened(&mut self) {}

    /// The call before was asynchronous; whoever needs its result asks for this number.
    fn launch(&mut self, _flight: u32) {}

    /// Somebody needs the result of an asynchronous call.
    fn join(&mut self, _flight: u32) {}

    /// The optimizer updates this many elements; on the host, or where it lives.
    fn update(&mut self, _elements: u64, _place: Place) {}

    /// Bytes go between host and device.
    fn copy(&mut self, _copy: HostCopy) {}

    /// A tensor that lives for one operation.
    fn touch(&mut self, category: Category, place: Place, bytes: u64) {
        let handle = self.allocate(category, place, bytes);
        self.free(handle);
    }
}

/// Listens to nothing, for those who follow events without counting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nobody;

impl Sink for Nobody {
    fn allocate(&mut self, _category: Category, _place: Place, _bytes: u64) -> Handle {
        Handle(0)
    }

    fn free(&mut self, _handle: Handle) {}
}

/// Allocations of a rest state, by category, so that a later phase can end them.
#[derive(Debug, Clone, Default)]
pub struct Resident(BTreeMap<Category, Vec<Handle>>);

impl Resident {
    /// Everything of a rest state becomes alive.
    pub fn open(rest: &Rest, sink: &mut impl Sink) -> Self {
        let mut handles = BTreeMap::<Category, Vec<Handle>>::new();
        for (category, place, bytes) in rest.iter() {
            handles.entry(category).or_default().push(sink.allocate(category, place, bytes.0));
        }
        sink.opened();
        Self(handles)
    }

    /// Ends what is left of a category.
    pub fn free(&mut self, category: Category, sink: &mut impl Sink) {
        for handle in self.0.remove(&category).unwrap_or_default() {
            sink.free(handle);
        }
    }
}
