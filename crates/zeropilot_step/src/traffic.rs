//! What goes over the links in one step: every call in order, and sums.

use std::collections::BTreeMap;

use crate::program::{Op, StepProgram};
use crate::zero::{Collective, CollectiveKind, Direction};

/// A call, as the engine makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What.
    pub collective: Collective,
    /// Whether the caller goes on and waits later.
    pub is_async: bool,
}

/// The calls among some ops, in order.
pub fn calls(ops: &[Op]) -> impl Iterator<Item = Call> + '_ {
    ops.iter().filter_map(|op| match *op {
        Op::Call(collective) | Op::Exchange(collective) => {
            Some(Call { collective, is_async: false })
        }
        Op::Launch(collective, _) => Some(Call { collective, is_async: true }),
        _ => None,
    })
}

/// Calls of one kind in one group of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// How many.
    pub calls: u64,
    /// Bytes of their wholes.
    pub bytes: u64,
}

/// Which calls are added up: the kind, without the rank a rooted one goes to, and the ranks.
pub type Sort = (Kind, u64);

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "names of calls")]
pub enum Kind {
    AllGather,
    ReduceScatter,
    AllReduce,
    Reduce,
    AllToAll,
}

impl Kind {
    /// Of a call.
    #[must_use]
    pub fn of(call: CollectiveKind) -> Self {
        match call {
            CollectiveKind::AllGather => Self::AllGather,
            CollectiveKind::ReduceScatter => Self::ReduceScatter,
            CollectiveKind::AllReduce => Self::AllReduce,
            CollectiveKind::Reduce { .. } => Self::Reduce,
            CollectiveKind::AllToAll => Self::AllToAll,
        }
    }

    /// The library's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllReduce => "all_reduce",
            Self::Reduce => "reduce",
            Self::AllToAll => "all_to_all",
        }
    }
}

impl Collective {
    /// Bytes of the whole.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.elements * self.element
    }

    /// Bytes every rank sends, and receives, if the call goes around a ring.
    #[must_use]
    pub fn on_the_wire(&self) -> u64 {
        let around = self.bytes() / self.ranks.max(1) * (self.ranks.saturating_sub(1));
        match self.kind {
            CollectiveKind::AllReduce => 2 * around,
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll => around,
            CollectiveKind::Reduce { .. } => self.bytes(),
        }
    }
}

/// Sums over one step of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Calls by kind and ranks.
    pub calls: BTreeMap<Sort, Total>,
    /// Bytes each rank sends in them, around a ring.
    pub sent: u64,
    /// Bytes from hosts to devices.
    pub to_device: u64,
    /// Bytes from devices to hosts.
    pub to_host: u64,
}

impl Traffic {
    /// Of a step.
    #[must_use]
    pub fn of(program: &StepProgram) -> Self {
        let mut traffic = Self::default();
        for (micro, times) in program.counted() {
            traffic.add(&micro.forward, times);
            traffic.add(&micro.backward, times);
        }
        traffic.add(&program.step, 1);
        traffic
    }

    fn add(&mut self, ops: &[Op], times: u64) {
        for Call { collective, .. } in calls(ops) {
            let total =
                self.calls.entry((Kind::of(collective.kind), collective.ranks)).or_default();
            total.calls += times;
            total.bytes += times * collective.bytes();
            self.sent += times * collective.on_the_wire();
        }
        for op in ops {
            let (Op::Copy(copy) | Op::Offload(copy)) = op else { continue };
            match copy.direction {
                Direction::ToDevice => self.to_device += times * copy.bytes,
                Direction::ToHost => self.to_host += times * copy.bytes,
            }
        }
    }
}
