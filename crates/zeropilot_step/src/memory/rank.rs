//! One rank through its steps: a micro step, ZeRO's hooks on its events, and the account of what is alive.

use std::collections::BTreeMap;

use zeropilot_config::settings::Stage;

use super::peak::{MicroStepPeaks, Peak};
use super::prediction::Phase;
use crate::micro_step::{Item, MicroStep};
use crate::model::Model;
use crate::steady::{STEPS_UNTIL_STEADY, Steps};
use crate::zero::gather::{EventKind, Gatherer, Hold, Modules, Resting};
use crate::zero::reduction::Reducer;
use crate::zero::{
    Backend, Category, Collective, Handle, Ledger, Moment, Place, Resident, Rest, RestStates, Run,
    Sink,
};

/// The micro steps of a steady step; of many that are alike only one is told.
///
/// The first step differs from all others: in it stage 3 records the order of modules and decides what it releases
/// when, and offloaded sums of gradients come to life. What the later ones need of it is run, then one of them; of
/// micro steps that begin in the same state only the first. If that step does not end in the state in which it began
/// all are run in full.
pub fn steady_step(
    run: &Run<'_>,
    model: &Model,
    modules: &Modules,
    micro_step: &MicroStep,
    backend: Backend,
) -> Vec<MicroStepPeaks> {
    let mut rank = Rank::new(run, model, modules, micro_step, backend);
    let steady = rank.first_step().and_then(|()| rank.steady_step());
    steady.unwrap_or_else(|| nth_step(run, model, modules, micro_step, backend, STEPS_UNTIL_STEADY))
}

/// The micro steps of any step, counted from zero, with every step before it and every micro step run in full.
pub fn nth_step(
    run: &Run<'_>,
    model: &Model,
    modules: &Modules,
    micro_step: &MicroStep,
    backend: Backend,
    number: usize,
) -> Vec<MicroStepPeaks> {
    let mut rank = Rank::new(run, model, modules, micro_step, backend);
    (0..number).for_each(|_| drop(rank.step()));
    rank.step()
}

/// Counts what is alive and keeps the calls.
#[derive(Debug, Default)]
struct Account {
    ledger: Ledger,
    calls: Vec<Collective>,
}

impl Sink for Account {
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle {
        self.ledger.allocate(category, place, bytes)
    }

    fn free(&mut self, handle: Handle) {
        self.ledger.free(handle);
    }

    fn communicate(&mut self, call: Collective) {
        self.calls.push(call);
    }
}

/// Follows the last micro step of a steady step, stretch by stretch.
pub(super) struct Follower<'a>(Rank<'a>);

impl<'a> Follower<'a> {
    pub(super) fn new(
        run: &'a Run<'a>,
        model: &Model,
        modules: &'a Modules,
        micro_step: &'a MicroStep,
        backend: Backend,
    ) -> Self {
        let new = || Rank::new(run, model, modules, micro_step, backend);
        let mut rank = new();
        let mut before = STEPS_UNTIL_STEADY - 1;
        if rank.first_step().is_none() {
            (rank, before) = (new(), STEPS_UNTIL_STEADY);
        }
        (0..before).for_each(|_| drop(rank.step()));
        Self(rank)
    }

    /// Tells the account of `stretches` stretches of each pass, each since the end of the one before.
    pub(super) fn last_micro_step(
        &mut self,
        stretches: usize,
        tell: &mut impl FnMut(Phase, &Ledger),
    ) {
        let rank = &mut self.0;
        let count = rank.different_micro_steps();
        (1..count).for_each(|_| drop(rank.micro_step(false)));
        if let Some(gatherer) = &mut rank.gatherer {
            gatherer.begin_micro_step(&mut rank.account);
        }
        let (forward, backward) = (&rank.micro_step.forward, &rank.micro_step.backward);
        rank.tell(forward, Phase::Forward, stretches, tell);
        rank.reducer.begin_backward(true, &mut rank.account);
        rank.tell(backward, Phase::Backward, stretches, tell);
    }
}

struct Rank<'a> {
    run: &'a Run<'a>,
    micro_step: &'a MicroStep,
    account: Account,
    gatherer: Option<Gatherer<'a>>,
    reducer: Reducer<'a>,
    /// The block each parameter is inside of that stage 3 treats as one; its hooks wait for the block.
    block_of: Vec<Option<u32>>,
    /// Gradients that wait for their block.
    waiting: BTreeMap<u32, Vec<(usize, Handle)>>,
    /// Weights that are held, the latest last.
    held: Vec<(u32, Hold)>,
}

/// The state in which a micro step begins: what follows depends on nothing else.
#[derive(Debug, PartialEq, Eq)]
struct Beginning {
    gathered: Resting,
    alive: Rest,
    /// Whether it is the last one of its step, where that makes a difference.
    is_last: bool,
}

impl<'a> Rank<'a> {
    fn new(
        run: &'a Run<'a>,
        model: &Model,
        modules: &'a Modules,
        micro_step: &'a MicroStep,
        backend: Backend,
    ) -> Self {
        let mut account = Account::default();
        let mut rest = RestStates::of(run).after_step;
        // The gatherer and the reducer keep these themselves.
        for apart in [
            Category::PersistentParameters,
            Category::SecondaryPartitions,
            Category::HostAccumulation,
        ] {
            rest = rest.without(apart);
        }
        Resident::open(&rest, &mut account);
        let sharded = run.zero.stage == Stage::Three;
        let gatherer = sharded.then(|| Gatherer::new(run, modules, backend, &mut account));
        let block_of = if sharded { model.blocks() } else { vec![None; run.parameters.len()] };
        Self {
            run,
            micro_step,
            account,
            gatherer,
            reducer: Reducer::new(run, backend),
            block_of,
            waiting: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    /// What later steps need of the first one; none if it must be run for that.
    fn first_step(&mut self) -> Option<()> {
        let items = self.micro_step.forward.iter().chain(&self.micro_step.backward);
        if let Some(gatherer) = &mut self.gatherer {
            let events = items.filter_map(|item| match item {
                Item::Module(event) => Some(*event),
                _ => None,
            });
            gatherer.first_step(events).then(|| gatherer.gather_persistent(&mut self.account))
        } else {
            if self.reducer.keeps_sums() {
                self.step();
            }
            Some(())
        }
    }

    fn tell(
        &mut self,
        items: &[Item],
        phase: Phase,
        stretches: usize,
        tell: &mut impl FnMut(Phase, &Ledger),
    ) {
        for stretch in items.chunks(items.len().div_ceil(stretches).max(1)) {
            self.account.ledger.restart();
            stretch.iter().for_each(|item| self.item(*item));
            tell(phase, &self.account.ledger);
        }
    }

    fn follow(&mut self, items: &[Item]) {
        for (place, item) in items.iter().enumerate() {
            // A micro step has far fewer than four billion items.
            #[allow(clippy::cast_possible_truncation)]
            self.account.ledger.at(Moment(place as u32));
            self.item(*item);
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Swing(place) => {
                self.account.ledger.swing(&self.micro_step.swings[place as usize]);
            }
            Item::Gradient { parameter, bytes, counted_as } => {
                let gradient = self.account.ledger.adopt_gradient(counted_as, bytes);
                let parameter = parameter as usize;
                match self.block_of[parameter] {
                    Some(block) => {
                        self.waiting.entry(block).or_default().push((parameter, gradient));
                    }
                    None => self.reducer.ready(parameter, gradient, &mut self.account),
                }
            }
            Item::Module(event) => {
                if event.kind == EventKind::LeaveBackward {
                    self.reduce_block(event.module);
                }
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.event(event, &mut self.account);
                }
            }
            Item::Hold(parameter) => {
                if let Some(gatherer) = &mut self.gatherer
                    && let Some(hold) = gatherer.hold(parameter as usize)
                {
                    self.held.push((parameter, hold));
                }
            }
            Item::LetGo(parameter) => {
                let held = self.held.iter().rposition(|(other, _)| *other == parameter);
                if let (Some(place), Some(gatherer)) = (held, &mut self.gatherer) {
                    let (_, hold) = self.held.remove(place);
                    gatherer.let_go(hold, &mut self.account);
                }
            }
        }
    }

    /// The hooks of a block run when its backward is complete, in the order of its parameters.
    fn reduce_block(&mut self, block: u32) {
        let mut gradients = self.waiting.remove(&block).unwrap_or_default();
        gradients.sort_unstable_by_key(|(parameter, _)| *parameter);
        for (parameter, gradient) in gradients {
            self.reducer.ready(parameter, gradient, &mut self.account);
        }
    }
}

impl Steps for Rank<'_> {
    type MicroStep = MicroStepPeaks;
    type Beginning = Beginning;

    fn accumulation(&self) -> u64 {
        self.run.accumulation_steps
    }

    fn is_sharded(&self) -> bool {
        self.gatherer.is_some()
    }

    fn beginning(&self, is_last: bool) -> Option<Beginning> {
        let gathered = self.gatherer.as_ref()?.at_rest()?;
        let is_idle = self.waiting.is_empty() && self.held.is_empty();
        is_idle.then(|| Beginning {
            gathered,
            alive: self.account.ledger.alive(),
            is_last: is_last && self.reducer.ends_differ(),
        })
    }

    fn end_step(&mut self) {
        self.reducer.end_step(&mut self.account);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.release_all(&mut self.account);
            gatherer.gather_persistent(&mut self.account);
        }
    }

    fn micro_step(&mut self, is_last: bool) -> MicroStepPeaks {
        self.account.ledger.at(Moment(0));
        self.account.ledger.restart();
        self.account.calls.clear();
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.begin_micro_step(&mut self.account);
        }
        self.follow(&self.micro_step.forward);
        let forward = Peak::of(&self.account.ledger);
        let forward_calls = std::mem::take(&mut self.account.calls);
        self.account.ledger.at(Moment(0));
        self.account.ledger.restart();
        self.reducer.begin_backward(is_last, &mut self.account);
        self.follow(&self.micro_step.backward);
        self.reducer.end_backward(&mut self.account);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.end_backward(&mut self.account);
        }
        MicroStepPeaks {
            forward,
            backward: Peak::of(&self.account.ledger),
            end: self.account.ledger.alive(),
            calls: [forward_calls, std::mem::take(&mut self.account.calls)],
        }
    }
}
