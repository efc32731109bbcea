//! Which parameters stage 3 gathers when, and what that allocates.
//!
//! The engine records the order of module events in its first micro step. From then on it gathers what a module
//! lacks, prefetches what the recorded order will need next, and releases what will not be needed soon. Which
//! parameters a module releases at a place in the order is decided once and remembered.

mod storage;
mod trace;

use std::collections::BTreeMap;

pub use self::storage::Hold;
use self::storage::Storages;
use self::trace::Trace;
use super::run::{Backend, Run};
use super::sink::Sink;
use super::stage3::persistent_parameters;

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

/// Something that happens to a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Index of the module.
    pub module: u32,
}

/// Parameters (indices into [`Run::parameters`]) each module holds itself, by module; containers hold none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    parameters: Vec<usize>,
    ends: Vec<usize>,
}

impl Modules {
    /// Adds a module and gives it the next index.
    pub fn push(&mut self, parameters: impl IntoIterator<Item = usize>) -> u32 {
        let start = self.parameters.len();
        self.parameters.extend(parameters);
        // The engine handles the parameters of a module in the order in which they were built.
        self.parameters[start..].sort_unstable();
        self.ends.push(self.parameters.len());
        (self.ends.len() - 1) as u32
    }

    /// Parameters of a module.
    pub fn parameters(&self, module: u32) -> &[usize] {
        let module = module as usize;
        let start = if module == 0 { 0 } else { self.ends[module - 1] };
        &self.parameters[start..self.ends[module]]
    }

    /// Number of modules.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no module.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Follows module events and gathers and releases parameters as the engine does.
#[derive(Debug, Clone)]
pub struct Gatherer<'a> {
    run: &'a Run<'a>,
    modules: &'a Modules,
    persistent: Vec<bool>,
    storages: Storages<'a>,
    recording: Vec<u32>,
    trace: Option<Trace>,
    /// Place in the recorded order: module events seen in this micro step.
    step: usize,
    /// First entry of the recorded parameter order that has not been fetched.
    queue: usize,
    /// For each parameter, the last place it was fetched for in this micro step.
    fetched_for: Vec<Option<usize>>,
    /// Elements gathered less elements released in this micro step; what was gathered before is not counted.
    available: i128,
    /// Modules that hold a parameter in use.
    users: Vec<Vec<u32>>,
    /// Modules whose backward has begun and not ended, in that order.
    in_backward: Vec<u32>,
    /// Frozen parameters a recomputation used, by the backward module that caused it.
    recomputed: BTreeMap<u32, Vec<usize>>,
    decisions: BTreeMap<(usize, u32), Vec<usize>>,
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
        let mut persistent = vec![false; count];
        for index in persistent_parameters(run) {
            persistent[index] = true;
        }
        Self {
            run,
            modules,
            storages: Storages::new(run, &persistent, backend, sink),
            persistent,
            recording: Vec::new(),
            trace: None,
            step: 0,
            queue: 0,
            fetched_for: vec![None; count],
            available: 0,
            users: vec![Vec::new(); count],
            in_backward: Vec::new(),
            recomputed: BTreeMap::new(),
            decisions: BTreeMap::new(),
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
        if self.trace.is_none() && !self.recording.is_empty() {
            let recorded = std::mem::take(&mut self.recording);
            self.trace = Some(Trace::new(&recorded, self.modules, self.run));
        }
        self.step = 0;
        self.queue = 0;
        self.fetched_for.fill(None);
        self.available = 0;
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

    fn enter(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let modules = self.modules;
        let parameters = modules.parameters(module);
        if backward && !self.in_backward.contains(&module) {
            self.in_backward.push(module);
        }
        let missing: Vec<usize> =
            parameters.iter().copied().filter(|&p| self.storages.is_released(p)).collect();
        self.gather(&missing, sink);
        for &parameter in parameters {
            if !self.users[parameter].contains(&module) {
                self.users[parameter].push(module);
            }
            self.storages.land(parameter, sink);
            if !backward && !self.run.parameters[parameter].trainable {
                self.note_recomputation(parameter);
            }
        }
        if self.trace.is_some() {
            self.skip_fetched(parameters);
            self.prefetch(sink);
        } else {
            self.recording.push(module);
        }
        self.step += 1;
    }

    /// A frozen parameter used by a recomputation has no backward of its own to release it.
    fn note_recomputation(&mut self, parameter: usize) {
        if let Some(&cause) = self.in_backward.last() {
            self.recomputed.entry(cause).or_default().push(parameter);
        }
    }

    fn gather(&mut self, parameters: &[usize], sink: &mut impl Sink) {
        let elements: u64 = parameters.iter().map(|&p| self.run.parameters[p].elements.0).sum();
        self.available += i128::from(elements);
        self.storages.gather(parameters, sink);
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
        let zero = self.run.zero;
        let room = i128::from(zero.max_live_parameters.0) - self.available;
        let budget = room.min(i128::from(zero.prefetch_bucket.0));
        let mut selected: Vec<usize> = Vec::new();
        let mut elements = 0_i128;
        while elements < budget {
            let Some((parameter, place)) =
                self.trace.as_ref().and_then(|trace| trace.entry(self.queue))
            else {
                break;
            };
            self.queue += 1;
            let fetched = &mut self.fetched_for[parameter];
            *fetched = (*fetched).max(Some(place));
            if self.storages.is_released(parameter) && !selected.contains(&parameter) {
                selected.push(parameter);
                elements += i128::from(self.run.parameters[parameter].elements.0);
            }
        }
        selected.sort_unstable();
        self.gather(&selected, sink);
    }

    fn leave(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let mut parameters = self.modules.parameters(module).to_vec();
        let mut releasable = self.releasable(module);
        if backward {
            let recomputed = self.recomputed.remove(&module).unwrap_or_default();
            releasable.extend(recomputed.iter().copied().filter(|&p| !self.persistent[p]));
            parameters.extend(recomputed);
            self.in_backward.retain(|&other| other != module);
        }
        for parameter in parameters {
            self.users[parameter].retain(|&other| other != module);
            if releasable.contains(&parameter) {
                self.release(parameter, sink);
            }
        }
    }

    /// Parameters of a module that may go at the present place. While recording, all of them.
    fn releasable(&mut self, module: u32) -> Vec<usize> {
        let parameters = self.modules.parameters(module);
        let Some(trace) = &self.trace else { return parameters.to_vec() };
        let (step, reuse) = (self.step, self.run.zero.max_reuse_distance.0);
        let decide = || {
            let may_go = |&p: &usize| {
                // One whose later use the prefetch has already passed must stay, or that use would come too late.
                let awaited = self.fetched_for[p].is_some_and(|place| place > step);
                !self.persistent[p] && !awaited && !trace.returns_within(p, step, reuse)
            };
            parameters.iter().copied().filter(may_go).collect()
        };
        self.decisions.entry((step, module)).or_insert_with(decide).clone()
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

    fn release(&mut self, parameter: usize, sink: &mut impl Sink) {
        if self.users[parameter].is_empty() && self.storages.release(parameter, sink) {
            self.available -= i128::from(self.run.parameters[parameter].elements.0);
        }
    }

    /// Backward is over: modules whose inputs needed no gradient let go now, the latest first.
    pub fn end_backward(&mut self, sink: &mut impl Sink) {
        while let Some(module) = self.in_backward.pop() {
            let mut parameters = self.modules.parameters(module).to_vec();
            parameters.extend(self.recomputed.remove(&module).unwrap_or_default());
            for parameter in parameters {
                self.users[parameter].retain(|&other| other != module);
                if !self.persistent[parameter] {
                    self.release(parameter, sink);
                }
            }
        }
    }

    /// The optimizer step begins: everything is released.
    pub fn release_all(&mut self, sink: &mut impl Sink) {
        for parameter in 0..self.run.parameters.len() {
            self.users[parameter].clear();
            self.storages.land(parameter, sink);
            self.release(parameter, sink);
        }
    }

    /// The optimizer step ends: persistent parameters are gathered, secondary copies of trained ones are out of date.
    pub fn gather_persistent(&mut self, sink: &mut impl Sink) {
        let persistent: Vec<usize> =
            (0..self.persistent.len()).filter(|&p| self.persistent[p]).collect();
        self.storages.gather_each(&persistent, sink);
        self.storages.invalidate_secondary(sink);
    }
}
