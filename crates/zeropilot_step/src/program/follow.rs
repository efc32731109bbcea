//! A rank through its micro steps, writing down what it does.

use std::collections::BTreeMap;

use zeropilot_config::settings::Stage;

use super::{MicroOps, Op};
use crate::lower::{FrozenModel, Lowered};
use crate::micro_step::{Item, MicroStep};
use crate::steady::{STEPS_UNTIL_STEADY, Steps};
use crate::tape::Work;
use crate::task::Role;
use crate::zero::gather::{EventKind, Gatherer, Resting};
use crate::zero::reduction::Reducer;
use crate::zero::{Backend, Category, Collective, Handle, HostCopy, Place, Run, Sink, Swing};

/// Writes down what happens; allocations are not its business.
#[derive(Debug, Default)]
pub(super) struct Notes {
    ops: Vec<Op>,
}

impl Sink for Notes {
    fn allocate(&mut self, _category: Category, _place: Place, _bytes: u64) -> Handle {
        Handle::UNCOUNTED
    }

    fn free(&mut self, _handle: Handle) {}

    fn communicate(&mut self, call: Collective) {
        self.ops.push(Op::Call(call));
    }

    fn exchange(&mut self, call: Collective) {
        self.ops.push(Op::Exchange(call));
    }

    fn launch(&mut self, flight: u32) {
        if let Some(Op::Call(call)) = self.ops.pop() {
            self.ops.push(Op::Launch(call, flight));
        }
    }

    fn join(&mut self, flight: u32) {
        if self.ops.last() != Some(&Op::Join(flight)) {
            self.ops.push(Op::Join(flight));
        }
    }

    fn copy(&mut self, copy: HostCopy) {
        match self.ops.last_mut() {
            _ if copy.bytes == 0 => {}
            Some(Op::Copy(last)) if last.direction == copy.direction => last.bytes += copy.bytes,
            _ => self.ops.push(Op::Copy(copy)),
        }
    }

    fn update(&mut self, elements: u64, place: Place) {
        self.ops.push(Op::Update { elements, place });
    }
}

impl Notes {
    fn compute(&mut self, work: Work) {
        match self.ops.last_mut() {
            _ if work.is_nothing() => {}
            Some(Op::Compute(last)) => *last += work,
            _ => self.ops.push(Op::Compute(work)),
        }
    }
}

/// What `work` reports.
pub(super) fn ops_of(work: impl FnOnce(&mut Notes)) -> Vec<Op> {
    let mut notes = Notes::default();
    work(&mut notes);
    notes.ops
}

/// Follows a rank.
pub(super) struct Follower<'a> {
    run: &'a Run<'a>,
    micro_step: &'a MicroStep,
    notes: Notes,
    gatherer: Option<Gatherer<'a>>,
    reducer: Reducer<'a>,
    /// The block each parameter is inside of that stage 3 treats as one; its hooks wait for the block.
    block_of: Vec<Option<u32>>,
    /// Gradients that wait for their block.
    waiting: BTreeMap<u32, Vec<usize>>,
    frozen: Vec<Visited<'a>>,
    /// No micro step of this step has run.
    is_first: bool,
    /// What the models do with a piece of completions.
    piece: Vec<Op>,
}

/// Whether a pass of a model begins.
fn is_pass(item: &Item) -> bool {
    matches!(item, Item::Score | Item::Reference | Item::Value | Item::Visit(_))
}

/// A steady step as it was followed.
pub(super) struct Followed {
    /// The micro steps that differ.
    pub(super) micro_steps: Vec<MicroOps>,
    /// What the models do with a piece of completions; nothing if all of them are one piece.
    pub(super) piece: Vec<Op>,
}

/// A frozen model: its forward pass, and what is gathered of it.
struct Visited<'a> {
    /// Whether it runs on all completions at once: the reward models of GRPO.
    takes_all: bool,
    pass: &'a MicroStep,
    gatherer: Option<Gatherer<'a>>,
}

/// What a micro step depends on: what is gathered, and whether it is the last where that matters.
type Beginning = (Resting, bool);

impl<'a> Follower<'a> {
    /// A steady step.
    pub(super) fn steady_step_of(
        run: &'a Run<'a>,
        lowered: &'a Lowered,
        frozen: &'a [Run<'a>],
    ) -> Followed {
        let mut follower = Self::new(run, lowered, frozen);
        let is_alone = frozen.is_empty() && !lowered.micro_step().has_more_passes();
        let steady =
            is_alone.then(|| follower.first_step().and_then(|()| follower.steady_step())).flatten();
        if let Some(micro_steps) = steady {
            return Followed { micro_steps, piece: Vec::new() };
        }
        let mut follower = Self::new(run, lowered, frozen);
        (0..STEPS_UNTIL_STEADY).for_each(|_| drop(follower.step()));
        let micro_steps = follower.step();
        Followed { micro_steps, piece: follower.piece }
    }

    fn new(run: &'a Run<'a>, lowered: &'a Lowered, frozen: &'a [Run<'a>]) -> Self {
        let mut notes = Notes::default();
        let backend = Backend::Nccl;
        let sharded = run.zero.stage == Stage::Three;
        let gatherer = sharded.then(|| Gatherer::new(run, lowered.modules(), backend, &mut notes));
        let block_of =
            if sharded { lowered.model().blocks() } else { vec![None; run.parameters.len()] };
        let is_ppo = lowered.micro_step().has_value_pass;
        let visited = |(model, run): (&'a FrozenModel, &'a Run<'a>)| Visited {
            takes_all: model.role() == Role::Reward && !is_ppo,
            pass: model.pass(),
            gatherer: (run.zero.stage == Stage::Three)
                .then(|| Gatherer::new(run, model.modules(), backend, &mut notes)),
        };
        let frozen = lowered.frozen().iter().zip(frozen).map(visited).collect();
        Self {
            run,
            micro_step: lowered.micro_step(),
            notes,
            gatherer,
            reducer: Reducer::new(run, backend),
            block_of,
            waiting: BTreeMap::new(),
            frozen,
            is_first: true,
            piece: Vec::new(),
        }
    }

    /// What later steps need of the first one; none if it must be run for that.
    fn first_step(&mut self) -> Option<()> {
        let Some(gatherer) = &mut self.gatherer else { return Some(()) };
        let items = self.micro_step.forward.iter().chain(&self.micro_step.backward);
        let events = items.filter_map(|item| match item {
            Item::Module(event) => Some(*event),
            _ => None,
        });
        (self.micro_step.bypasses_model || gatherer.first_step(events))
            .then(|| gatherer.gather_persistent(&mut self.notes))
    }

    fn follow(&mut self, items: &[Item]) {
        for &item in items {
            self.item(item);
        }
    }

    /// What happens once in a step, before any completion is learned from.
    fn roll(&mut self, items: &[Item]) {
        if self.micro_step.pieces <= 1 {
            return self.follow(items);
        }
        self.piece.clear();
        for pass in items.chunk_by(|_, next| !is_pass(next)) {
            // Apart from the others: without a call between them, the work of two passes becomes one.
            let before = std::mem::take(&mut self.notes.ops);
            self.follow(pass);
            let ops = std::mem::replace(&mut self.notes.ops, before);
            if pass.first().is_some_and(|first| self.is_of_a_piece(first)) {
                self.piece.extend_from_slice(&ops);
            }
            self.notes.ops.extend(ops);
        }
    }

    /// Whether a pass that begins so runs on a piece of completions, and not on all of them.
    fn is_of_a_piece(&self, first: &Item) -> bool {
        match *first {
            Item::Visit(model) => {
                self.frozen.get(usize::from(model)).is_some_and(|visited| !visited.takes_all)
            }
            _ => is_pass(first),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Swing(place) => {
                self.notes.compute(self.micro_step.swings[place as usize].work);
            }
            Item::Gradient { parameter, .. } => {
                let parameter = parameter as usize;
                match self.block_of[parameter] {
                    Some(block) => self.waiting.entry(block).or_default().push(parameter),
                    None => self.reducer.ready(parameter, Handle::UNCOUNTED, &mut self.notes),
                }
            }
            Item::PartOfGradient { parameter, .. } => {
                let parameter = parameter as usize;
                self.reducer.part_ready(parameter, Handle::UNCOUNTED, &mut self.notes);
            }
            Item::Module(event) => {
                if event.kind == EventKind::LeaveBackward {
                    self.reduce_block(event.module);
                }
                if event.kind.is_enter() {
                    self.notes.ops.push(Op::Enter(event.module));
                }
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.event(event, &mut self.notes);
                }
            }
            Item::Begin | Item::Score | Item::Reference => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.begin_micro_step(&mut self.notes);
                }
            }
            Item::Generate => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.gather_all(&mut self.notes);
                }
            }
            Item::Generated => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.end_generation(&mut self.notes);
                }
            }
            Item::Publish(publication) => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.publish(publication, &mut self.notes);
                }
            }
            Item::Visit(model) => self.visit(model),
            Item::Offload(copy) => self.notes.ops.push(Op::Offload(copy)),
            Item::Exchange(call) => self.notes.exchange(call.among(self.run.world)),
            // Memory only.
            Item::Hold(_) | Item::LetGo(_) | Item::Value | Item::Loss => {}
        }
    }

    /// A frozen model runs.
    fn visit(&mut self, model: u8) {
        let Some(Visited { pass, gatherer, .. }) = self.frozen.get_mut(usize::from(model)) else {
            return;
        };
        let compute = |notes: &mut Notes, swing: &Swing| notes.compute(swing.work);
        pass.follow_pass(gatherer.as_mut(), &mut self.notes, compute);
    }

    /// The hooks of a block run when its backward is complete, in the order of its parameters.
    fn reduce_block(&mut self, block: u32) {
        let mut parameters = self.waiting.remove(&block).unwrap_or_default();
        parameters.sort_unstable();
        for parameter in parameters {
            self.reducer.ready(parameter, Handle::UNCOUNTED, &mut self.notes);
        }
    }
}

impl Steps for Follower<'_> {
    type MicroStep = MicroOps;
    type Beginning = Beginning;

    fn accumulation(&self) -> u64 {
        self.run.accumulation_steps
    }

    fn is_sharded(&self) -> bool {
        self.gatherer.is_some()
    }

    fn beginning(&self, is_last: bool) -> Option<Beginning> {
        let gathered = self.gatherer.as_ref()?.at_rest()?;
        let is_idle = self.waiting.is_empty() && self.frozen.is_empty();
        is_idle.then(|| (gathered, is_last && self.reducer.ends_differ()))
    }

    fn begin_step(&mut self) {
        self.is_first = true;
    }

    fn end_step(&mut self) {
        self.reducer.end_step(&mut self.notes);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.release_all(&mut self.notes);
            gatherer.gather_persistent(&mut self.notes);
        }
    }

    fn micro_step(&mut self, is_last: bool) -> MicroOps {
        self.notes.ops.clear();
        if let Some(gatherer) = self.gatherer.as_mut().filter(|_| self.micro_step.is_announced()) {
            gatherer.begin_micro_step(&mut self.notes);
        }
        let (once, forward) = self.micro_step.forward.split_at(self.micro_step.once);
        if std::mem::take(&mut self.is_first) {
            self.roll(once);
        }
        self.follow(forward);
        let forward = std::mem::take(&mut self.notes.ops);
        self.reducer.begin_backward(is_last, &mut self.notes);
        self.follow(&self.micro_step.backward);
        self.reducer.end_backward(&mut self.notes);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.end_backward(&mut self.notes);
        }
        MicroOps { forward, backward: std::mem::take(&mut self.notes.ops) }
    }
}
