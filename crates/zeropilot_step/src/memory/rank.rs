//! One rank through its steps: a micro step, ZeRO's hooks on its events, and the account of what is alive.

use std::collections::BTreeMap;

use zeropilot_config::settings::Stage;

use super::peak::{MicroStepPeaks, Peak, Phases};
use super::prediction::Phase;
use crate::lower::{FrozenModel, Lowered, RankOf};
use crate::micro_step::{Item, MicroStep};
use crate::model::Model;
use crate::steady::{STEPS_UNTIL_STEADY, Steps};
use crate::task::Role;
use crate::zero::gather::{EventKind, Gatherer, Hold, Modules, Resting};
use crate::zero::reduction::Reducer;
use crate::zero::{
    Backend, Category, Collective, Direction, Handle, HostCopy, Ledger, Moment, Place, Resident,
    Rest, RestStates, Run, Sink, Swing, frozen_weights,
};

/// The engine of a frozen model on the same rank.
#[derive(Debug, Clone)]
pub struct FrozenRank<'a> {
    /// What the model is for.
    pub(super) role: Role,
    /// Its engine, with the parameters of the program.
    run: Run<'a>,
    /// The same with those of the model itself.
    pub(super) real: Run<'a>,
    modules: &'a Modules,
    /// A forward pass; what it returns is freed in what would be backward.
    pass: &'a MicroStep,
}

impl<'a> FrozenRank<'a> {
    /// Those of all frozen models, by [`Lowered::frozen_ranks`].
    pub(super) fn all(lowered: &'a Lowered, ranks: &'a [RankOf<'static>]) -> Vec<Self> {
        let of = |(model, rank): (&'a FrozenModel, &'a RankOf<'static>)| Self {
            role: model.role(),
            run: model.run(rank),
            real: model.real_run(rank),
            modules: model.modules(),
            pass: model.pass(),
        };
        lowered.frozen().iter().zip(ranks).map(of).collect()
    }
}

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
    frozen: &[FrozenRank<'_>],
    backend: Backend,
) -> Vec<MicroStepPeaks> {
    let number = STEPS_UNTIL_STEADY;
    if !frozen.is_empty() || micro_step.has_more_passes() {
        return nth_step(run, model, modules, micro_step, frozen, backend, number);
    }
    let mut rank = Rank::new(run, model, modules, micro_step, frozen, backend);
    let steady = rank.first_step().and_then(|()| rank.steady_step());
    steady.unwrap_or_else(|| nth_step(run, model, modules, micro_step, frozen, backend, number))
}

/// The micro steps of any step, counted from zero, with every step before it and every micro step run in full.
pub fn nth_step(
    run: &Run<'_>,
    model: &Model,
    modules: &Modules,
    micro_step: &MicroStep,
    frozen: &[FrozenRank<'_>],
    backend: Backend,
    number: usize,
) -> Vec<MicroStepPeaks> {
    let mut rank = Rank::new(run, model, modules, micro_step, frozen, backend);
    (0..number).for_each(|_| drop(rank.step()));
    let mut micro_steps = rank.step();
    if micro_step.is_reused {
        // The step after it, which generates nothing.
        micro_steps.extend(rank.step());
    }
    micro_steps
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
        frozen: &'a [FrozenRank<'a>],
        backend: Backend,
    ) -> Self {
        let new = || Rank::new(run, model, modules, micro_step, frozen, backend);
        let mut rank = new();
        let mut before = STEPS_UNTIL_STEADY - 1;
        let is_alone = frozen.is_empty() && !micro_step.has_more_passes();
        if !is_alone || rank.first_step().is_none() {
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
        rank.begin_micro_step();
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
    /// Checkpoints on the host, the latest last.
    checkpoints: Vec<Handle>,
    /// Weights that are held, the latest last.
    held: Vec<(u32, Hold)>,
    frozen: Vec<Visited<'a>>,
    /// The next micro step is the first that learns from what was generated.
    is_first: bool,
    /// The step before has generated what this one learns from again.
    has_rolled: bool,
}

/// In which phase of a forward pass a rank is. Before the first border it is not known yet.
#[derive(Debug, Default)]
struct Course {
    phase: Option<Phase>,
    /// The trained model has run to be trained.
    has_run: bool,
}

impl Course {
    fn is_border(item: &Item) -> bool {
        use Item::{Begin, Generate, Generated, Loss, Publish, Reference, Score, Value, Visit};
        matches!(
            item,
            Begin | Generate | Generated | Loss | Publish(_) | Reference | Score | Value | Visit(_)
        )
    }

    fn pass_border(&mut self, border: Item) {
        self.phase = match border {
            Item::Begin => Some(Phase::Forward),
            Item::Score | Item::Value => Some(Phase::Score),
            Item::Reference => Some(Phase::Frozen(Role::Reference)),
            Item::Generate | Item::Publish(_) => Some(Phase::Generate),
            Item::Visit(_) if !self.has_run => None,
            Item::Visit(_) | Item::Loss => Some(Phase::Loss),
            _ => None,
        };
        self.has_run |= border == Item::Begin;
    }
}

/// A frozen model and what is gathered of it.
struct Visited<'a> {
    rank: &'a FrozenRank<'a>,
    gatherer: Option<Gatherer<'a>>,
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
        frozen: &'a [FrozenRank<'a>],
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
        let visited = |rank: &'a FrozenRank<'a>| {
            Resident::open(&frozen_weights(&rank.real), &mut account);
            let gatherer = (rank.run.zero.stage == Stage::Three)
                .then(|| Gatherer::new(&rank.run, rank.modules, backend, &mut account));
            Visited { rank, gatherer }
        };
        let frozen = frozen.iter().map(visited).collect();
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
            checkpoints: Vec::new(),
            held: Vec::new(),
            frozen,
            is_first: true,
            has_rolled: false,
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
            (self.micro_step.bypasses_model || gatherer.first_step(events))
                .then(|| gatherer.gather_persistent(&mut self.account))
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
        pass: Phase,
        stretches: usize,
        tell: &mut impl FnMut(Phase, &Ledger),
    ) {
        let length = items.len().div_ceil(stretches).max(1);
        let mut course = Course::default();
        let mut begin = 0;
        while begin < items.len() {
            let border = items[begin..].iter().position(Course::is_border);
            let end = border.map_or(items.len(), |place| begin + place);
            for stretch in items[begin..end].chunks(length) {
                self.account.ledger.restart();
                stretch.iter().for_each(|item| self.item(*item));
                tell(course.phase.unwrap_or(pass), &self.account.ledger);
            }
            if let Some(&item) = items.get(end) {
                self.account.ledger.restart();
                if let Item::Visit(model) = item
                    && let Some(role) = self.visit(model)
                {
                    tell(Phase::Frozen(role), &self.account.ledger);
                    self.hand_over(model);
                } else {
                    self.item(item);
                }
                course.pass_border(item);
            }
            begin = end + 1;
        }
    }

    fn begin_micro_step(&mut self) {
        if let Some(gatherer) = self.gatherer.as_mut().filter(|_| self.micro_step.is_announced()) {
            gatherer.begin_micro_step(&mut self.account);
        }
    }

    /// Follows forward, phase by phase.
    fn forward(&mut self) -> Phases {
        let mut phases = Phases::default();
        let mut course = Course::default();
        let once = if std::mem::take(&mut self.is_first) { 0 } else { self.micro_step.once };
        for (place, item) in self.micro_step.forward.iter().enumerate().skip(once) {
            // A micro step has far fewer than four billion items.
            #[allow(clippy::cast_possible_truncation)]
            self.account.ledger.at(Moment(place as u32));
            if Course::is_border(item) {
                if *item == Item::Generated {
                    course.phase = Some(Phase::Generate);
                }
                if let Some(phase) = course.phase {
                    self.close(phase, &mut phases);
                }
                course.pass_border(*item);
            }
            match *item {
                Item::Visit(model) => {
                    if let Some(role) = self.visit(model) {
                        self.close(Phase::Frozen(role), &mut phases);
                    }
                    self.hand_over(model);
                    self.account.ledger.restart();
                }
                Item::Generated => {
                    self.item(Item::Generated);
                    // What was gathered for it is no part of what follows.
                    self.account.ledger.restart();
                }
                item => self.item(item),
            }
        }
        self.close(course.phase.unwrap_or(Phase::Forward), &mut phases);
        phases
    }

    fn close(&mut self, phase: Phase, phases: &mut Phases) {
        let peak = Peak::of(&self.account.ledger);
        phases.add(phase, peak, std::mem::take(&mut self.account.calls));
        self.account.ledger.restart();
    }

    /// A frozen model runs.
    fn visit(&mut self, model: u8) -> Option<Role> {
        let Visited { rank, gatherer } = self.frozen.get_mut(usize::from(model))?;
        let count = |account: &mut Account, swing: &Swing| account.ledger.swing(swing);
        rank.pass.follow_pass(gatherer.as_mut(), &mut self.account, count);
        Some(rank.role)
    }

    /// What a frozen model has returned belongs to the trained model's program from here on.
    fn hand_over(&mut self, model: u8) {
        let Some(Visited { rank, .. }) = self.frozen.get(usize::from(model)) else { return };
        for item in &rank.pass.backward {
            if let Some(swing) = rank.pass.swing(*item) {
                self.account.ledger.swing(swing);
            }
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
            Item::PartOfGradient { parameter, bytes, counted_as } => {
                let gradient = self.account.ledger.adopt_gradient(counted_as, bytes);
                self.reducer.part_ready(parameter as usize, gradient, &mut self.account);
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
            Item::Begin | Item::Score | Item::Reference => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.begin_micro_step(&mut self.account);
                }
            }
            Item::Generate => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.gather_all(&mut self.account);
                }
            }
            Item::Generated => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.end_generation(&mut self.account);
                }
            }
            Item::Publish(publication) => {
                if let Some(gatherer) = &mut self.gatherer {
                    gatherer.publish(publication, &mut self.account);
                }
            }
            Item::Visit(model) => {
                self.visit(model);
                self.hand_over(model);
            }
            Item::Offload(HostCopy { direction: Direction::ToHost, bytes }) => {
                let (category, place) = (Category::Activations, Place::Host);
                self.checkpoints.push(self.account.ledger.allocate(category, place, bytes));
            }
            Item::Offload(HostCopy { direction: Direction::ToDevice, .. }) => {
                if let Some(checkpoint) = self.checkpoints.pop() {
                    self.account.ledger.free(checkpoint);
                }
            }
            Item::Exchange(call) => self.account.communicate(call.among(self.run.world)),
            Item::Value | Item::Loss => {}
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
        let is_idle = self.waiting.is_empty() && self.held.is_empty() && self.frozen.is_empty();
        is_idle.then(|| Beginning {
            gathered,
            alive: self.account.ledger.alive(),
            is_last: is_last && self.reducer.ends_differ(),
        })
    }

    fn begin_step(&mut self) {
        self.has_rolled = self.micro_step.is_reused && !self.has_rolled;
        self.is_first = self.has_rolled || !self.micro_step.is_reused;
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
        self.begin_micro_step();
        let phases = self.forward();
        let (forward, others) = phases.split(Peak::of(&self.account.ledger));
        self.account.ledger.at(Moment(0));
        self.account.ledger.restart();
        self.reducer.begin_backward(is_last, &mut self.account);
        self.follow(&self.micro_step.backward);
        self.reducer.end_backward(&mut self.account);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.end_backward(&mut self.account);
        }
        MicroStepPeaks {
            forward: forward.peak,
            others,
            backward: Peak::of(&self.account.ledger),
            end: self.account.ledger.alive(),
            calls: [forward.calls, std::mem::take(&mut self.account.calls)],
        }
    }
}
