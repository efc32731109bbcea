//! A rank through its micro steps, writing down what it does.

use std::collections::BTreeMap;

use zeropilot_config::settings::Stage;

use super::{MicroOps, Op};
use crate::lower::Lowered;
use crate::micro_step::{Item, MicroStep};
use crate::steady::{STEPS_UNTIL_STEADY, Steps};
use crate::zero::gather::{EventKind, Gatherer, Resting};
use crate::zero::reduction::Reducer;
use crate::zero::{Backend, Category, Collective, Handle, HostCopy, Place, Run, Sink};

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
}

/// What a micro step depends on: what is gathered, and whether it is the last where that matters.
type Beginning = (Resting, bool);

impl<'a> Follower<'a> {
    /// The micro steps of a steady step that differ.
    pub(super) fn micro_steps(run: &'a Run<'a>, lowered: &'a Lowered) -> Vec<MicroOps> {
        let mut follower = Self::new(run, lowered);
        let steady = follower.first_step().and_then(|()| follower.steady_step());
        steady.unwrap_or_else(|| {
            let mut follower = Self::new(run, lowered);
            (0..STEPS_UNTIL_STEADY).for_each(|_| drop(follower.step()));
            follower.step()
        })
    }

    fn new(run: &'a Run<'a>, lowered: &'a Lowered) -> Self {
        let mut notes = Notes::default();
        let backend = Backend::Nccl;
        let sharded = run.zero.stage == Stage::Three;
        let gatherer = sharded.then(|| Gatherer::new(run, lowered.modules(), backend, &mut notes));
        let block_of =
            if sharded { lowered.model().blocks() } else { vec![None; run.parameters.len()] };
        Self {
            run,
            micro_step: lowered.micro_step(),
            notes,
            gatherer,
            reducer: Reducer::new(run, backend),
            block_of,
            waiting: BTreeMap::new(),
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
        gatherer.first_step(events).then(|| gatherer.gather_persistent(&mut self.notes))
    }

    fn follow(&mut self, items: &[Item]) {
        for &item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Swing(place) => {
                let work = self.micro_step.swings[place as usize].work;
                match self.notes.ops.last_mut() {
                    _ if work.is_nothing() => {}
                    Some(Op::Compute(last)) => *last += work,
                    _ => self.notes.ops.push(Op::Compute(work)),
                }
            }
            Item::Gradient { parameter, .. } => {
                let parameter = parameter as usize;
                match self.block_of[parameter] {
                    Some(block) => self.waiting.entry(block).or_default().push(parameter),
                    None => self.reducer.ready(parameter, Handle::UNCOUNTED, &mut self.notes),
                }
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
            // Memory only.
            Item::Hold(_) | Item::LetGo(_) => {}
        }
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
        self.waiting.is_empty().then(|| (gathered, is_last && self.reducer.ends_differ()))
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
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.begin_micro_step(&mut self.notes);
        }
        self.follow(&self.micro_step.forward);
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
