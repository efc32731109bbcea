//! What explains that nothing moves: the stacks of ranks, compared with each other and with the source they are in.
//!
//! Ranks that wait in a collective are seldom at fault: it is the one that does not come, or waits in another. So ranks are
//! put into groups that stand at the same place, and the groups are compared from the outermost function inwards: where
//! their ways part, the lines around it say why.

mod calls;
mod known;
mod source;

use std::path::Path;

use zeropilot_lint::job::is_of_one_rank;
use zeropilot_record::{Activity, HangReason, RanksAt};

use self::source::Source;
use crate::stacks::{Calls, Frame, Stack, Stood, Thread};

/// What was found out about a hang.
#[derive(Debug, Clone, Default)]
pub(crate) struct Explained {
    /// Ranks that are not where the others wait for them.
    pub(crate) odd: Vec<u32>,
    /// Where all of them stood.
    pub(crate) stood: Vec<RanksAt>,
    pub(crate) reason: Option<HangReason>,
}

/// Ranks at the same place.
struct Group<'a> {
    at: RanksAt,
    /// The main thread of one of them, the outermost function first.
    path: Vec<&'a Frame>,
    partitions_weights: bool,
}

impl Group<'_> {
    fn is_waiting(&self) -> bool {
        self.at.collective.is_some() || self.at.pending.is_some()
    }

    fn has_stack(&self) -> bool {
        !self.path.is_empty()
    }
}

/// Whether a rank waits for data, so that its workers are of interest.
pub(crate) fn waits_for_data(stack: &Stack) -> bool {
    stack.main().and_then(known::activity) == Some(Activity::Data)
}

/// Compares where ranks stand. Files are shown as seen from `directory`; `is_whole` says that no rank runs elsewhere.
pub(crate) fn explain(
    stood: &[Stood],
    directory: Option<&Path>,
    is_whole: bool,
    lock: impl Fn(&Stood) -> (Option<String>, bool),
) -> Explained {
    let groups = groups(stood, directory);
    let (odd, reason) = judge(stood, &groups, directory, is_whole, lock);
    Explained { odd, reason, stood: groups.into_iter().map(|group| group.at).collect() }
}

/// Where ranks stand, those at the same place together.
pub(crate) fn positions(stood: &[Stood], directory: Option<&Path>) -> Vec<RanksAt> {
    groups(stood, directory).into_iter().map(|group| group.at).collect()
}

fn groups<'a>(stood: &'a [Stood], directory: Option<&Path>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for one in stood {
        let at = at(one, directory);
        let same = |group: &&mut Group<'_>| {
            RanksAt { ranks: Vec::new(), ..group.at.clone() }
                == RanksAt { ranks: Vec::new(), ..at.clone() }
        };
        if let Some(group) = groups.iter_mut().find(same) {
            group.at.ranks.push(one.rank);
            continue;
        }
        let main = one.stack.as_ref().ok().and_then(Stack::main);
        let path = main.map(|main| main.frames.iter().rev().collect()).unwrap_or_default();
        let threads = one.stack.as_ref().map(|stack| stack.threads.as_slice()).unwrap_or_default();
        let partitions_weights = threads.iter().any(known::partitions_weights);
        groups.push(Group { at, path, partitions_weights });
    }
    groups
}

fn at(one: &Stood, directory: Option<&Path>) -> RanksAt {
    let ranks = vec![one.rank];
    let stack = match &one.stack {
        Ok(stack) => stack,
        Err(why) => {
            let (kernel, no_stack) = (Some(one.kernel.clone()), Some(*why));
            return RanksAt { ranks, kernel, no_stack, ..RanksAt::default() };
        }
    };
    let Some(main) = stack.main() else { return RanksAt { ranks, ..RanksAt::default() } };
    let activity = known::activity(main);
    // On GPUs the backward pass runs in threads of its own while the main one waits for them.
    let others = || stack.threads.iter().skip(1).find_map(known::collective);
    let collective = known::collective(main)
        .or_else(|| (activity == Some(Activity::Backward)).then(others).flatten());
    // The sample that does not come is in the worker that loads it.
    let worker = one.children.iter().filter_map(Stack::main).find_map(own);
    let place = worker.or_else(|| own(main)).map(|frame| shown(frame, directory));
    let innermost = main.frames.first();
    let innermost =
        innermost.map(|frame| format!("{} ({})", frame.function, shown(frame, directory)));
    // Who waits for something else is not held up by a collective that runs beside it.
    let is_held_up = !matches!(activity, Some(Activity::Data | Activity::Building));
    let pending = one.calls.as_ref().and_then(Calls::pending);
    let pending = pending.filter(|_| collective.is_none() && is_held_up);
    let pending = pending.map(|call| call.operation.clone());
    let (kernel, no_stack) = (None, None);
    RanksAt { ranks, collective, pending, activity, place, innermost, kernel, no_stack }
}

/// The innermost function of the training program.
fn own(thread: &Thread) -> Option<&Frame> {
    thread.frames.iter().find(|frame| !frame.is_of_library())
}

fn shown(frame: &Frame, directory: Option<&Path>) -> String {
    let place = frame.place();
    let below = directory.and_then(|directory| place.strip_prefix(directory.to_str()?));
    below.and_then(|below| below.strip_prefix('/')).unwrap_or(&place).to_owned()
}

type Judged = (Vec<u32>, Option<HangReason>);

fn judge(
    stood: &[Stood],
    groups: &[Group<'_>],
    directory: Option<&Path>,
    is_whole: bool,
    lock: impl Fn(&Stood) -> (Option<String>, bool),
) -> Judged {
    let ranks_of = |is: &dyn Fn(&Stood) -> bool| -> Vec<u32> {
        stood.iter().filter(|one| is(one)).map(|one| one.rank).collect()
    };
    let stopped = ranks_of(&|one| one.process.is_stopped());
    if !stopped.is_empty() {
        return (stopped, Some(HangReason::Stopped));
    }
    let builds = |one: &Stood| {
        let main = one.stack.as_ref().ok().and_then(Stack::main);
        main.and_then(known::activity) == Some(Activity::Building)
    };
    if let Some(one) = stood.iter().find(|one| builds(one)) {
        let (path, is_held) = lock(one);
        let waiting = Some(ranks_of(&builds)).filter(|waiting| waiting.len() < stood.len());
        let reason = HangReason::ExtensionLock { path, is_held };
        return (waiting.unwrap_or_default(), Some(reason));
    }
    if groups.iter().any(|group| !group.has_stack()) {
        return (Vec::new(), None);
    }
    let (waiting, elsewhere): (Vec<&Group<'_>>, Vec<&Group<'_>>) =
        groups.iter().partition(|group| group.is_waiting());
    let all = |groups: &[&Group<'_>]| -> Vec<u32> {
        let mut ranks: Vec<u32> =
            groups.iter().flat_map(|group| group.at.ranks.iter().copied()).collect();
        ranks.sort_unstable();
        ranks
    };
    let elsewhere_reason = match elsewhere.as_slice() {
        [] => None,
        away if away.iter().all(|group| group.at.activity == Some(Activity::Data)) => {
            Some(HangReason::Data)
        }
        _ => Some(HangReason::Elsewhere),
    };
    if !elsewhere.is_empty() && !waiting.is_empty() {
        return (all(&elsewhere), elsewhere_reason);
    }
    if waiting.is_empty() {
        // On GPUs a rank shows no collective while it waits for the device, and its recorder may be off.
        let reason = elsewhere_reason.filter(|reason| *reason == HangReason::Data);
        return (smallest(groups).unwrap_or_default(), reason);
    }
    let first = (&groups[0].at.collective, &groups[0].at.pending);
    let is_same = groups.iter().all(|group| (&group.at.collective, &group.at.pending) == first);
    let recorded = calls::compare(stood);
    // The same collective may be called at several places; a rank elsewhere may be what they lack.
    if groups.len() == 1 || (is_same && !is_whole) {
        let all_wait = (Vec::new(), (stood.len() > 1).then_some(HangReason::AllWait));
        return recorded.unwrap_or(all_wait);
    }
    if let Some((group, reason)) = one_rank(groups, directory) {
        return (group.at.ranks.clone(), Some(reason));
    }
    if let Some((group, reason)) = left_loop(groups, directory) {
        return (group.at.ranks.clone(), Some(reason));
    }
    let partitions_weights = groups.iter().any(|group| group.partitions_weights);
    let skip = common_skip(groups, directory);
    if let Some(recorded) = recorded.filter(|_| skip.is_none() && !partitions_weights) {
        return recorded;
    }
    let rule = match skip {
        Some(_) => Some("H13"),
        None => partitions_weights.then_some("H09"),
    };
    let rule = rule.map(str::to_owned);
    (smallest(groups).unwrap_or_default(), Some(HangReason::OtherPath { skip, rule }))
}

/// The ranks of the smallest group, if no other is as small.
fn smallest(groups: &[Group<'_>]) -> Option<Vec<u32>> {
    let size = |group: &&Group<'_>| group.at.ranks.len();
    let least = groups.iter().map(|group| group.at.ranks.len()).min()?;
    let mut least_groups = groups.iter().filter(|group| size(group) == least);
    let (first, second) = (least_groups.next()?, least_groups.next());
    (second.is_none() && groups.len() > 1).then(|| first.at.ranks.clone())
}

/// A group that waits under a condition that holds on one rank.
fn one_rank<'a, 'b>(
    groups: &'a [Group<'b>],
    directory: Option<&Path>,
) -> Option<(&'a Group<'b>, HangReason)> {
    let largest = groups.iter().map(|group| group.at.ranks.len()).max()?;
    let candidates =
        groups.iter().filter(|group| group.at.ranks.len() < largest || group.at.ranks.contains(&0));
    for group in candidates {
        for frame in group.path.iter().rev() {
            let is_shared = |other: &&Group<'_>| other.path.contains(frame);
            if groups.iter().filter(|other| other.at != group.at).any(|other| is_shared(&other)) {
                continue;
            }
            let conditions = Source::open(&frame.file).map(|source| source.conditions(frame.line));
            let found = conditions.into_iter().flatten().find(|(_, text)| is_of_one_rank(text));
            let Some((line, condition)) = found else { continue };
            let place = shown(&Frame { line, ..(*frame).clone() }, directory);
            let rule = match group.at.activity {
                Some(Activity::Saving) => Some("H08"),
                Some(Activity::Forward) if group.partitions_weights => Some("H10"),
                // The program calls the collective itself.
                None if group.is_waiting() => Some("H11"),
                _ => None,
            };
            let rule = rule.map(str::to_owned);
            return Some((group, HangReason::OneRank { condition, place, rule }));
        }
    }
    None
}

/// Where the ways of two groups part: the first functions that are not at the same line, if they are in the same one.
fn parting<'a>(one: &Group<'a>, other: &Group<'a>) -> Option<(&'a Frame, &'a Frame)> {
    let mut both = one.path.iter().zip(&other.path);
    let (first, second) = both.find(|(first, second)| first != second)?;
    let is_same = first.file == second.file && first.function == second.function;
    is_same.then_some((*first, *second))
}

/// A group that is behind a loop in which another still is.
fn left_loop<'a, 'b>(
    groups: &'a [Group<'b>],
    directory: Option<&Path>,
) -> Option<(&'a Group<'b>, HangReason)> {
    for gone in groups {
        for still in groups {
            let Some((after, within)) = parting(gone, still) else { continue };
            let Some(source) = Source::open(&within.file) else { continue };
            let loops = source.loops(within.line);
            let Some(left) = loops.iter().find(|lines| after.line > *lines.end()) else { continue };
            let at = |line: u32| shown(&Frame { line, ..within.clone() }, directory);
            let skip = source.skip(left).map(at);
            return Some((gone, HangReason::LeftLoop { place: at(*left.start()), skip }));
        }
    }
    None
}

/// A `continue` of a loop in which two groups both are.
fn common_skip(groups: &[Group<'_>], directory: Option<&Path>) -> Option<String> {
    let [first, second, ..] = groups else { return None };
    let (one, other) = parting(first, second)?;
    let source = Source::open(&one.file)?;
    let loops = source.loops(one.line);
    let common = loops.iter().find(|lines| lines.contains(&other.line))?;
    let line = source.skip(common)?;
    Some(shown(&Frame { line, ..one.clone() }, directory))
}

#[cfg(test)]
mod tests;
