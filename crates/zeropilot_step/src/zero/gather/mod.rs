//! Which parameters stage 3 gathers when, and what that allocates.
//!
//! The engine records the order of module events in its first micro step. From then on it gathers what a module
//! lacks, prefetches what the recorded order will need next, and releases what will not be needed soon. Which
//! parameters a module releases at a place in the order is decided once and remembered.

mod decisions;
mod sizes;
mod storage;
mod trace;

use std::ops::Range;

use self::decisions::Decisions;
use self::sizes::{Size, sizes};
pub use self::storage::Hold;
use self::storage::{AtRest, Storages};
use self::trace::Trace;
use super::run::{Backend, Run};
use super::sink::{Nobody, Sink};

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
    /// Modules 0 to `count`, from pairs of a module and a parameter of it.
    pub fn new(count: usize, pairs: &[(usize, usize)]) -> Self {
        let mut ends = vec![0; count];
        for &(module, _) in pairs {
            ends[module] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            // For now where the parameters of a module begin.
            begin += std::mem::replace(end, begin);
        }
        let mut modules = Self { parameters: vec![0; pairs.len()], ends };
        for &(module, parameter) in pairs {
            let next = &mut modules.ends[module];
            modules.parameters[*next] = parameter;
            *next += 1;
        }
        let mut begin = 0;
        for &end in &modules.ends {
            modules.parameters[begin..end].sort_unstable();
            begin = end;
        }
        modules
    }

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
        &self.parameters[self.slots(module)]
    }

    /// Where the parameters of a module stand among those of all modules.
    fn slots(&self, module: u32) -> Range<usize> {
        let module = module as usize;
        let start = if module == 0 { 0 } else { self.ends[module - 1] };
        start..self.ends[module]
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
        let is_idle = self.trace.is_some()
            && self.in_backward.is_empty()
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

    fn enter(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let modules = self.modules;
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
        } else {
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
        let budget = room.min(i128::from(zero.prefetch_bucket.0));
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

    fn leave(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let slots = self.modules.slots(module);
        let mut recomputed = Vec::new();
        if backward {
            self.close_backward(module);
            recomputed = std::mem::take(&mut self.recomputed[module as usize]);
        }
        let decided = self.decide(module);
        for (offset, slot) in slots.enumerate() {
            let parameter = self.stop_using(slot);
            let with_others =
                || !self.sizes[parameter].persistent && recomputed.contains(&parameter);
            if self.goes(decided, offset) || with_others() {
                self.release(parameter, sink);
            }
        }
        for &parameter in &recomputed {
            let own = self.modules.parameters(module).iter().position(|&own| own == parameter);
            if !self.sizes[parameter].persistent
                || own.is_some_and(|offset| self.goes(decided, offset))
            {
                self.release(parameter, sink);
            }
        }
        if backward {
            recomputed.clear();
            self.recomputed[module as usize] = recomputed;
        }
    }

    fn close_backward(&mut self, module: u32) {
        if std::mem::replace(&mut self.is_in_backward[module as usize], false)
            && let Some(place) = self.in_backward.iter().rposition(|&other| other == module)
        {
            self.in_backward.remove(place);
        }
    }

    /// A module no longer uses one of its parameters; which one.
    fn stop_using(&mut self, slot: usize) -> usize {
        let parameter = self.modules.parameters[slot];
        if std::mem::replace(&mut self.in_use[slot], false) {
            self.users[parameter] -= 1;
        }
        parameter
    }

    /// Which parameters of a module may go at the present place, as [`Decisions`] keeps it; while recording all do.
    fn decide(&mut self, module: u32) -> Option<usize> {
        let trace = self.trace.as_ref()?;
        let parameters = self.modules.parameters(module);
        if parameters.is_empty() {
            return None;
        }
        let (step, reuse) = (self.step, self.run.zero.max_reuse_distance.0);
        let may_go = |&p: &usize| {
            // One whose later use the prefetch has already passed must stay, or that use would come too late.
            let awaited = self.fetched_for[p].is_some_and(|place| place > step);
            !self.sizes[p].persistent && !awaited && !trace.returns_within(p, step, reuse)
        };
        Some(self.decisions.at(step, module, parameters.iter().map(may_go)))
    }

    fn goes(&self, decided: Option<usize>, offset: usize) -> bool {
        decided.is_none_or(|begin| self.decisions.goes(begin + offset))
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
        if self.users[parameter] == 0 && self.storages.release(parameter, sink) {
            self.available -= i128::from(self.sizes[parameter].elements);
        }
    }

    /// Backward is over: modules whose inputs needed no gradient let go now, the latest first.
    pub fn end_backward(&mut self, sink: &mut impl Sink) {
        while let Some(module) = self.in_backward.pop() {
            self.is_in_backward[module as usize] = false;
            let recomputed = std::mem::take(&mut self.recomputed[module as usize]);
            for slot in self.modules.slots(module) {
                let parameter = self.stop_using(slot);
                self.release_if_not_persistent(parameter, sink);
            }
            for parameter in recomputed {
                self.release_if_not_persistent(parameter, sink);
            }
        }
    }

    fn release_if_not_persistent(&mut self, parameter: usize, sink: &mut impl Sink) {
        if !self.sizes[parameter].persistent {
            self.release(parameter, sink);
        }
    }

    /// The first step, as far as later ones depend on it: the first micro step records, the second one (if there is
    /// one) decides. Both are followed without counting; then everything is released.
    pub(crate) fn first_step(&mut self, events: impl Iterator<Item = Event> + Clone) {
        let different = self.run.accumulation_steps.min(2);
        for _ in 0..different {
            self.begin_micro_step(&mut Nobody);
            events.clone().for_each(|event| self.event(event, &mut Nobody));
            self.end_backward(&mut Nobody);
        }
        self.release_all(&mut Nobody);
        self.storages.drop_landed(&mut Nobody);
    }

    /// The optimizer step begins: everything is released.
    pub fn release_all(&mut self, sink: &mut impl Sink) {
        self.users.fill(0);
        self.in_use.fill(false);
        for parameter in 0..self.run.parameters.len() {
            self.storages.land(parameter, sink);
            self.release(parameter, sink);
        }
    }

    /// The optimizer step ends: persistent parameters are gathered, secondary copies of trained ones are out of date.
    pub fn gather_persistent(&mut self, sink: &mut impl Sink) {
        let persistent: Vec<usize> =
            (0..self.sizes.len()).filter(|&p| self.sizes[p].persistent).collect();
        self.storages.gather_each(&persistent, sink);
        self.storages.invalidate_secondary(sink);
    }
}
