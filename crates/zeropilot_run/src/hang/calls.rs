//! Which ranks did not make the call that the others wait in, by what PyTorch's flight recorder holds.

use std::collections::{BTreeMap, BTreeSet};

use zeropilot_record::HangReason;

use super::Judged;
use crate::stacks::{Call, DEFAULT_GROUP, Stood};

static NO_CALLS: BTreeMap<u64, Call> = BTreeMap::new();

/// Compares the calls of ranks in each process group: the first one that has not finished is the one to look at.
pub(super) fn compare(stood: &[Stood]) -> Option<Judged> {
    let recorded = || stood.iter().filter_map(|one| Some((one.rank, one.calls.as_ref()?)));
    let names: BTreeSet<&String> = recorded().flat_map(|(_, calls)| calls.groups.keys()).collect();
    names.into_iter().find_map(|name| {
        // Every rank is in the default group; of another, only those that called it are known to be.
        let none = (name.as_str() == DEFAULT_GROUP).then_some(&NO_CALLS);
        let members: Vec<_> = recorded()
            .filter_map(|(rank, calls)| Some((rank, calls.groups.get(name).or(none)?)))
            .collect();
        let is_pending = |(number, call): (&u64, &Call)| (!call.is_finished).then_some(*number);
        let number =
            members.iter().filter_map(|(_, calls)| calls.iter().find_map(is_pending)).min()?;
        let absent = members.iter().filter(|(_, calls)| calls.keys().all(|made| *made < number));
        let absent: Vec<u32> = absent.map(|(rank, _)| *rank).collect();
        let made: Vec<(u32, &Call)> =
            members.iter().filter_map(|(rank, calls)| Some((*rank, calls.get(&number)?))).collect();
        let agreeing =
            |call: &Call| made.iter().filter(|(_, other)| call.agrees_with(other)).count();
        let (_, usual) = made.iter().rev().max_by_key(|(_, call)| agreeing(call))?;
        let others = made.iter().filter(|(_, call)| !call.agrees_with(usual));
        let others: Vec<(u32, &Call)> = others.copied().collect();
        let group = name.clone();
        match others.as_slice() {
            [] if absent.is_empty() => None,
            [] => {
                let operation = usual.operation.clone();
                Some((absent, Some(HangReason::NotCalled { group, call: number, operation })))
            }
            [(_, other), ..] => {
                let ranks = others.iter().map(|(rank, _)| *rank).collect();
                let (operation, other) = (shown(usual), shown(other));
                let reason = HangReason::OtherCall { group, call: number, operation, other };
                Some((ranks, Some(reason)))
            }
        }
    })
}

/// `all_reduce`, and `all_reduce [1000]` where shapes must be the same.
fn shown(call: &Call) -> String {
    let shapes: Vec<String> = call.shapes.iter().map(|shape| format!("{shape:?}")).collect();
    format!("{} {}", call.operation, shapes.join(" ")).trim_end().to_owned()
}
