//! Which parameters stage 3 gathers when, and what that allocates.
//!
//! The engine records the order of module events in its first micro step. From then on it gathers what a module
//! lacks, prefetches what the recorded order will need next, and releases what will not be needed soon. Which
//! parameters a module releases at a place in the order is decided once and remembered.

mod decisions;
mod hold;
mod modules;
mod release;
mod sizes;
mod storage;
mod trace;

use self::decisions::Decisions;
pub use self::hold::Hold;
pub use self::modules::Modules;
use self::sizes::{Size, sizes};
use self::storage::{AtRest, Storages};
use self::trace::Trace;
use super::run::{Backend, Run};
use super::sink::{Nobody, Sink};
use crate::task::Publication;

/// What happens to a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// Its forward begins; during backward this is a recomputation.
    EnterForward,
    /// Its forward is over.
    LeaveForward,
    /// Its backward begins.
    EnterBackward,
    /// Its backward is over.
    LeaveBackward,
}

impl EventKind {
    /// Whether it counts as a place in the recorded order.
    pub(crate) fn is_enter(self) -> bool {
        matches!(self, Self::EnterForward | Self::EnterBackward)
    }
}

/// Something that happens to a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Index of the module.
    pub module: u32,
}

/// What is gathered between two micro steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resting(Vec<AtRest>);

/// Follows module events and gathers and releases parameters as the engine does.
#[derive(Debug, Clone)]
pub struct Gatherer<'a> {
    run: &'a Run<'a>,
    modules: &'a Modules,
    sizes: Vec<Size>,
    storages: Storages<'a>,
    recording: Vec<u32>,
    trace: Option<Trace>,
    /// The pass has left the recorded order: nothing is prefetched or kept until the next one begins a new record.
    is_lost: bool,
    /// Place in the recorded order: module events seen in this micro step.
    step: u32,
    /// First entry of the recorded parameter order that has not been fetched.
    queue: usize,
    /// For each parameter, the last place it was fetched for in this micro step.
    fetched_for: Vec<Option<u32>>,
    /// Elements gathered less elements released in this micro step; what was gathered before is not counted.
    available: i128,
    /// How many modules have each parameter in use.
    users: Vec<u32>,
    /// Whether a module has a parameter of its own in use, by [`Modules::slots`].
    in_use: Vec<bool>,
    /// Modules whose backward has begun and not ended, in that order.
    in_backward: Vec<u32>,
    /// Whether a module is one of them.
    is_in_backward: Vec<bool>,
    /// Frozen parameters a recomputation used, by the backward module that caused it.
    recomputed: Vec<Vec<usize>>,
    decisions: Decisions,
    /// Parameters that are about to be gathered together.
    chosen: Vec<usize>,
    is_chosen: Vec<bool>,
}

impl<'a> Gatherer<'a> {
    /// As after initialization: nothing gathered, nothing recorded.
    pub fn new(
        run: &'a Run<'a>,
        modules: &'a Modules,
        backend: Backend,
        sink: &mut impl Sink,
    ) -> Self {
        let count = run.parameters.len();
        let sizes = sizes(run);
        Self {
            run,
            modules,
            storages: Storages::new(run, &sizes, backend, sink),
            sizes,
            recording: Vec::new(),
            trace: None,
            // Until the first pass begins nothing is recorded.
            is_lost: true,
            step: 0,
            queue: 0,
            fetched_for: vec![None; count],
            available: 0,
            users: vec![0; count],
            in_use: vec![false; modules.parameters.len()],
            in_backward: Vec::new(),
            is_in_backward: vec![false; modules.len()],
            recomputed: vec![Vec::new(); modules.len()],
            decisions: Decisions::default(),
            chosen: Vec::new(),
            is_chosen: vec![false; count],
        }
    }

    /// A forward pass begins: what was still in flight is released, and the second one has a complete record.
    pub fn begin_micro_step(&mut self, sink: &mut impl Sink) {
        for flight in self.storages.under_way() {
            for parameter in self.storages.land_flight(flight, sink) {
                self.release(parameter, sink);
            }
        }
        self.storages.drop_landed(sink);
        if std::mem::take(&mut self.is_lost) {
            self.recording.clear();
        }
        if self.trace.is_none() && !self.recording.is_empty() {
            let recorded = std::mem::take(&mut self.recording);
            self.trace = Some(Trace::new(&recorded, self.modules, &self.sizes));
        }
        self.step = 0;
        self.queue = 0;
        self.fetched_for.fill(None);
        self.available = 0;
    }

    /// The state between two micro steps: from equal ones equal micro steps follow. None if there is more to it than
    /// what each parameter has.
    pub(crate) fn at_rest(&self) -> Option<Resting> {
        let is_idle = self.in_backward.is_empty()
            && self.users.iter().all(|&users| users == 0)
            && self.recomputed.iter().all(Vec::is_empty);
        if is_idle { self.storages.at_rest().map(Resting) } else { None }
    }

    /// A module event.
    pub fn event(&mut self, event: Event, sink: &mut impl Sink) {
        match event.kind {
            EventKind::EnterForward => self.enter(event.module, false, sink),
            EventKind::EnterBackward => self.enter(event.module, true, sink),
            EventKind::LeaveForward => self.leave(event.module, false, sink),
            EventKind::LeaveBackward => self.leave(event.module, true, sink),
        }
    }

    /// Forgets the recorded order, as the engine does when its hooks are put back after generation.
    fn forget(&mut self) {
        self.trace = None;
        self.recording.clear();
        self.decisions = Decisions::default();
    }

    fn enter(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let modules = self.modules;
        if self.trace.as_ref().is_some_and(|trace| trace.module(self.step) != Some(module)) {
            self.forget();
            self.is_lost = true;
        }
        if backward && !std::mem::replace(&mut self.is_in_backward[module as usize], true) {
            self.in_backward.push(module);
        }
        let slots = modules.slots(module);
        let parameters = &modules.parameters[slots.clone()];
        self.chosen.extend(parameters.iter().filter(|&&p| self.storages.is_released(p)));
        self.gather_chosen(sink);
        for (slot, &parameter) in slots.zip(parameters) {
            if !std::mem::replace(&mut self.in_use[slot], true) {
                self.users[parameter] += 1;
            }
            self.storages.land(parameter, sink);
            if !backward && !self.sizes[parameter].trainable {
                self.note_recomputation(parameter);
            }
        }
        if self.trace.is_some() {
            self.skip_fetched(parameters);
            self.prefetch(sink);
        } else if !self.is_lost {
            self.recording.push(module);
        }
        self.step += 1;
    }

    /// A frozen parameter used by a recomputation has no backward of its own to release it.
    fn note_recomputation(&mut self, parameter: usize) {
        if let Some(&cause) = self.in_backward.last() {
            self.recomputed[cause as usize].push(parameter);
        }
    }

    fn gather_chosen(&mut self, sink: &mut impl Sink) {
        if self.chosen.is_empty() {
            return;
        }
        let elements: u64 = self.chosen.iter().map(|&p| self.sizes[p].elements).sum();
        self.available += i128::from(elements);
        self.storages.gather(&self.chosen, sink);
        self.chosen.clear();
    }

    /// Takes the entries of the present module off the queue, unless a prefetch did.
    fn skip_fetched(&mut self, parameters: &[usize]) {
        let Some(trace) = &self.trace else { return };
        let step = self.step;
        let due = parameters
            .iter()
            .filter(|&&p| self.fetched_for[p].is_none_or(|fetched| fetched < step))
            .count();
        for _ in 0..due {
            let Some((parameter, place)) = trace.entry(self.queue) else { break };
            self.fetched_for[parameter] = Some(place);
            self.queue += 1;
        }
    }

    fn prefetch(&mut self, sink: &mut impl Sink) {
        let Some(trace) = &self.trace else { return };
        let zero = self.run.zero;
        let room = i128::from(zero.max_live_parameters.0) - self.available;
        // One by one means one at a time, whatever the bucket.
        let most = if zero.allgather_sequential { 1 } else { zero.prefetch_bucket.0 };
        let budget = room.min(i128::from(most));
        let mut elements = 0_i128;
        while elements < budget {
            let Some((parameter, place)) = trace.entry(self.queue) else { break };
            self.queue += 1;
            let fetched = &mut self.fetched_for[parameter];
            *fetched = (*fetched).max(Some(place));
            if self.storages.is_released(parameter) && !self.is_chosen[parameter] {
                self.is_chosen[parameter] = true;
                self.chosen.push(parameter);
                elements += i128::from(self.sizes[parameter].elements);
            }
        }
        self.chosen.sort_unstable();
        for &parameter in &self.chosen {
            self.is_chosen[parameter] = false;
        }
        self.gather_chosen(sink);
    }

    /// Keeps the present storage of a gathered parameter alive.
    ///
    /// A recomputation under checkpointing saves detached weights for backward, so that a release in between drops
    /// the parameter but not its storage. Outside of checkpointing a saved weight is the parameter itself.
    pub fn hold(&mut self, parameter: usize) -> Option<Hold> {
        self.storages.hold(parameter)
    }

    /// Ends a hold.
    pub fn let_go(&mut self, hold: Hold, sink: &mut impl Sink) {
        self.storages.let_go(hold, sink);
    }

    /// The first step, as far as later ones depend on it: the first micro step records, the second one (if there is
    /// one) decides. They are followed without counting; then everything is released. Says whether nothing is left
    /// that should have been counted.
    pub(crate) fn first_step(&mut self, events: impl Iterator<Item = Event> + Clone) -> bool {
        if self.run.accumulation_steps == 1 {
            self.recording =
                events.filter(|event| event.kind.is_enter()).map(|e| e.module).collect();
            self.is_lost = false;
            return true;
        }
        for _ in 0..2 {
            self.begin_micro_step(&mut Nobody);
            events.clone().for_each(|event| self.event(event, &mut Nobody));
            self.end_backward(&mut Nobody);
        }
        self.release_all(&mut Nobody);
        self.storages.under_way().is_empty()
    }

    /// Every parameter is gathered, each by itself (`GatheredParameters` of the whole model).
    pub fn gather_all(&mut self, sink: &mut impl Sink) {
        (0..self.sizes.len()).for_each(|parameter| self.gather_alone(parameter, sink));
    }

    fn gather_alone(&mut self, parameter: usize, sink: &mut impl Sink) {
        if self.storages.is_released(parameter) {
            self.storages.gather(&[parameter], sink);
            self.storages.land(parameter, sink);
        }
    }

    /// A generation ends: everything is released, and the next pass records the order anew.
    pub fn end_generation(&mut self, sink: &mut impl Sink) {
        self.release_all(sink);
        self.forget();
        self.begin_micro_step(sink);
        self.is_lost = true;
    }

    /// Another engine is given the weights (`GatheredParameters` of each parameter, or of all of them).
    pub fn publish(&mut self, publication: Publication, sink: &mut impl Sink) {
        match publication {
            Publication::AllAtOnce => self.gather_all(sink),
            Publication::EachInTurn => {
                for parameter in 0..self.sizes.len() {
                    self.gather_alone(parameter, sink);
                    self.release(parameter, sink);
                }
            }
        }
        self.release_all(sink);
    }

    /// The optimizer step ends: persistent parameters are gathered, secondary copies of trained ones are out of date.
    pub fn gather_persistent(&mut self, sink: &mut impl Sink) {
        let persistent: Vec<usize> =
            (0..self.sizes.len()).filter(|&p| self.sizes[p].persistent).collect();
        self.storages.gather_each(&persistent, sink);
        self.storages.invalidate_secondary(sink);
    }
}
