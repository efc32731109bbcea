//! From what was seen to a cause.
//!
//! Numbers come first: memory that others hold, or that lies in pieces, is the cheapest to get back. Then the phase, which
//! says whose memory it is. What neither shows stays unknown.

use crate::cause::{Cause, Certainty, Phase};
use crate::clue::Object;
use crate::diagnosis::{Diagnosis, Gap, Line, Memory};
use crate::log::{Kind, Seen, Shortage};
use crate::message::Message;

const GIB: u64 = 1 << 30;
/// Lines of evidence beside the message.
const SHOWN: usize = 4;

/// The cause of the shortages of a log; `gpus` is memory in use and in all, as `nvidia-smi` lists it.
pub(crate) fn diagnosis(
    shortages: Vec<Shortage>,
    messages: u64,
    gpus: &[(u64, u64)],
) -> Option<Diagnosis> {
    let kind = [Kind::Device, Kind::Library, Kind::Host, Kind::Killed]
        .into_iter()
        .find(|kind| shortages.iter().any(|one| one.kind == *kind))?;
    let of_kind: Vec<&Shortage> = shortages.iter().filter(|one| one.kind == kind).collect();
    let first = of_kind.first()?;
    let told = of_kind.iter().find(|one| one.message.has_numbers()).unwrap_or(first);
    let traced = of_kind.iter().find(|one| phase(&one.clues).is_some());
    let traced = traced.or_else(|| of_kind.iter().find(|one| !one.clues.is_empty()));
    let clues: &[Seen] = traced.map_or(&[], |one| &one.clues);
    let (phase, object) = (phase(clues), object(clues));
    let found = Found { kind, message: &told.message, phase, object, gpus };
    let (cause, certainty) = found.cause();
    let mut ranks: Vec<u32> = of_kind.iter().filter_map(|one| one.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let is_host = matches!(kind, Kind::Host | Kind::Killed);
    Some(Diagnosis {
        cause,
        certainty,
        memory: if is_host { Memory::Host } else { Memory::Device },
        phase,
        object,
        gaps: found.gaps(),
        evidence: evidence(&told.line, clues, (phase, object)),
        rank: told.rank,
        ranks,
        messages,
        message: told.message.clone(),
    })
}

/// The outermost phase: evaluation runs forward, and initialization steps.
fn phase(clues: &[Seen]) -> Option<Phase> {
    clues.iter().filter_map(|seen| seen.clue.phase).max()
}

/// The innermost object.
fn object(clues: &[Seen]) -> Option<Object> {
    clues.iter().rev().find_map(|seen| seen.clue.object)
}

/// The message, and the lines that show phase and object.
fn evidence(
    message: &Line,
    clues: &[Seen],
    (phase, object): (Option<Phase>, Option<Object>),
) -> Vec<Line> {
    let telling = clues.iter().rev().filter(|seen| {
        let of_phase = phase.is_some() && seen.clue.phase == phase;
        of_phase || object.is_some() && seen.clue.object == object
    });
    let mut lines: Vec<Line> = vec![message.clone()];
    for seen in telling {
        let is_known = lines.iter().any(|line| line.text == seen.line.text);
        if !is_known && lines.len() <= SHOWN {
            lines.push(seen.line.clone());
        }
    }
    lines.sort_by_key(|line| line.number);
    lines
}

struct Found<'a> {
    kind: Kind,
    message: &'a Message,
    phase: Option<Phase>,
    object: Option<Object>,
    gpus: &'a [(u64, u64)],
}

impl Found<'_> {
    fn cause(&self) -> (Cause, Certainty) {
        match self.kind {
            Kind::Host => return (Cause::HostMemory, Certainty::Shown),
            Kind::Killed => return (Cause::HostMemory, Certainty::Likely),
            Kind::Library => return (Cause::LibraryMemory, Certainty::Shown),
            Kind::Device => {}
        }
        self.by_numbers().or_else(|| self.by_phase()).unwrap_or_else(|| self.by_rest())
    }

    fn by_numbers(&self) -> Option<(Cause, Certainty)> {
        if self.is_beyond_the_device() {
            let cause = match self.object {
                Some(Object::Logits) => Cause::Logits,
                _ => Cause::LargeRequest,
            };
            return Some((cause, Certainty::Shown));
        }
        if self.phase != Some(Phase::Generation) && self.has_others() {
            let is_named = self.message.names_processes();
            let certainty = if is_named { Certainty::Shown } else { Certainty::Likely };
            return Some((Cause::OtherProcess, certainty));
        }
        let cached = self.cached_if_enough()?;
        let is_serious = self.message.capacity.is_some_and(|capacity| cached >= capacity / 10);
        is_serious.then_some((Cause::Fragmentation, Certainty::Shown))
    }

    fn by_phase(&self) -> Option<(Cause, Certainty)> {
        let shown = |cause| Some((cause, Certainty::Shown));
        match self.phase {
            Some(Phase::Saving) => shown(Cause::Saving),
            Some(Phase::Generation) => shown(Cause::Generation),
            Some(Phase::Evaluation) => shown(Cause::Evaluation),
            Some(Phase::Loading | Phase::Initialize | Phase::Step) => shown(Cause::ModelStates),
            _ if self.is_fragmented() => Some((Cause::Fragmentation, Certainty::Likely)),
            _ if self.object == Some(Object::Logits) => shown(Cause::Logits),
            _ if self.is_large() => shown(Cause::LargeRequest),
            Some(Phase::Forward | Phase::Backward) => Some((Cause::Activations, Certainty::Likely)),
            None => None,
        }
    }

    fn by_rest(&self) -> (Cause, Certainty) {
        // Outside of a pass nothing gathers layer by layer.
        if self.object == Some(Object::GatheredWeights) {
            return (Cause::LargeRequest, Certainty::Likely);
        }
        let is_full = |(used, total): &(u64, u64)| *used > total / 2;
        if !self.message.has_numbers() && self.gpus.iter().any(is_full) {
            return (Cause::OtherProcess, Certainty::Likely);
        }
        (Cause::Unknown, Certainty::Unknown)
    }

    /// Whether even an empty device has no room for the request.
    fn is_beyond_the_device(&self) -> bool {
        let (tried, capacity) = (self.message.tried, self.message.capacity);
        tried.zip(capacity).is_some_and(|(tried, capacity)| tried > capacity)
    }

    /// Whether the request alone takes a fifth of the device.
    fn is_large(&self) -> bool {
        let (tried, capacity) = (self.message.tried, self.message.capacity);
        tried.zip(capacity).is_some_and(|(tried, capacity)| tried >= capacity / 5)
    }

    /// Whether others hold so much that the request would fit without them. Where the message does not name processes, its
    /// own context and communicators count as others', up to two gigabytes, and so does a desktop.
    fn has_others(&self) -> bool {
        let message = self.message;
        let (Some(others), Some(tried)) = (message.others(), message.tried) else { return false };
        let capacity = message.capacity.unwrap_or(0);
        let least =
            if message.names_processes() { capacity / 10 } else { (capacity / 7).max(3 * GIB) };
        let would_be_free = message.free.unwrap_or(0).saturating_add(others);
        others > least && tried <= would_be_free
    }

    /// What the cache holds, if that is as much as the request.
    fn cached_if_enough(&self) -> Option<u64> {
        let (cached, tried) = self.message.cached().zip(self.message.tried)?;
        (cached >= tried).then_some(cached)
    }

    /// Whether the cache is many times the request, small as it may be against the device.
    fn is_fragmented(&self) -> bool {
        let tried = self.message.tried.unwrap_or(0);
        self.cached_if_enough().is_some_and(|cached| cached >= GIB && cached / 4 >= tried)
    }

    fn gaps(&self) -> Vec<Gap> {
        let is_device = matches!(self.kind, Kind::Device | Kind::Library);
        let message = self.message;
        let infers = !message.names_processes() && self.has_others();
        [
            (is_device && self.phase.is_none() && self.object.is_none(), Gap::Traceback),
            (!message.has_numbers() && self.kind != Kind::Killed, Gap::Numbers),
            (infers, Gap::Processes),
            (self.kind == Kind::Killed, Gap::Killer),
        ]
        .into_iter()
        .filter_map(|(is_so, gap)| is_so.then_some(gap))
        .collect()
    }
}
