//! Nodes of one job: which of them failed first, and which only followed.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

/// The job of several nodes that a run is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOf {
    /// What all its nodes share: the scheduler's number of the job, or where the ranks meet.
    pub job: String,
    /// Which node this is, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<u32>,
    /// How many there are.
    pub nodes: u32,
}

/// How an attempt ended on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEnd {
    /// Why; nothing if its supervisor was lost with it.
    pub cause: Option<Cause>,
    /// When, in seconds since 1970 by the clock of the node.
    pub at: f64,
}

/// Who is to blame for the end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedFirst {
    /// This one of the nodes; the others lost it.
    Node(usize),
    /// None by itself: the connection between them, or a node that left no record.
    None,
}

impl Cause {
    /// Whether ranks of other nodes may have brought it about.
    pub fn may_follow_another(&self) -> bool {
        match self {
            Self::PeerLost
            | Self::CollectiveTimeout
            | Self::NoRendezvous
            | Self::Unproven
            | Self::Completed => true,
            Self::Hang { ranks } => ranks.is_empty(),
            _ => false,
        }
    }
}

/// Which of the nodes failed first: one that was lost, else one with a reason of its own, else one that was asked to end. Of
/// several, the earliest; clocks of nodes may differ.
pub fn failed_first(ends: &[NodeEnd]) -> FailedFirst {
    let weight = |end: &NodeEnd| match &end.cause {
        None => 3,
        Some(Cause::Interrupted { .. }) => 1,
        Some(cause) if cause.may_follow_another() => 0,
        Some(_) => 2,
    };
    let first = ends
        .iter()
        .enumerate()
        .filter(|(_, end)| weight(end) > 0)
        .min_by(|(_, a), (_, b)| weight(b).cmp(&weight(a)).then(a.at.total_cmp(&b.at)));
    first.map_or(FailedFirst::None, |(index, _)| FailedFirst::Node(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(cause: Cause, at: f64) -> NodeEnd {
        NodeEnd { cause: Some(cause), at }
    }

    #[test]
    fn the_node_with_a_reason_of_its_own_failed_first_whenever_it_was_noticed() {
        let killed = Cause::RankKilled { rank: Some(1), signal: 9 };
        let lost = [end(Cause::PeerLost, 5.0), end(killed.clone(), 6.0)];
        assert_eq!(failed_first(&lost), FailedFirst::Node(1));
        let both = [end(killed.clone(), 7.0), end(killed, 6.0)];
        assert_eq!(failed_first(&both), FailedFirst::Node(1));
        let asked =
            [end(Cause::CollectiveTimeout, 5.0), end(Cause::Interrupted { signal: 15 }, 9.0)];
        assert_eq!(failed_first(&asked), FailedFirst::Node(1));
        let gone = [end(Cause::PeerLost, 5.0), NodeEnd { cause: None, at: 4.0 }];
        assert_eq!(failed_first(&gone), FailedFirst::Node(1));
    }

    #[test]
    fn nodes_that_only_lost_each_other_are_not_to_blame() {
        let cable = [end(Cause::CollectiveTimeout, 5.0), end(Cause::PeerLost, 6.0)];
        assert_eq!(failed_first(&cable), FailedFirst::None);
    }
}
