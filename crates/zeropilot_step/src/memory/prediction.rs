//! What a rank holds between and within the phases of training.

use zeropilot_units::Bytes;

use super::peak::{MicroStepPeaks, Peak};
use super::rank::{FrozenRank, steady_step};
use crate::lower::{FrozenModel, Lowered, RankOf};
use crate::micro_step::Item;
use crate::task::Role;
use crate::zero::{
    Backend, Category, Ledger, Place, Resident, Rest, RestStates, Run, Stream, frozen_rest,
    initialize, optimizer_step,
};

/// A phase of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// `deepspeed.initialize`.
    Init,
    /// Completions are generated.
    Generate,
    /// The trained model runs without gradients, before it runs to be trained.
    Score,
    /// A forward pass of the trained model.
    Forward,
    /// A forward pass of another model.
    Frozen(Role),
    /// The loss, where models have returned and it is computed outside of them.
    Loss,
    /// A backward pass.
    Backward,
    /// The optimizer step.
    Step,
}

/// What the engine of a frozen model keeps on a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenRest {
    /// What the model is for.
    pub role: Role,
    /// Between the phases.
    pub rest: Rest,
}

/// The memory of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// Between the phases, of all engines.
    pub states: RestStates,
    /// What each frozen model has of that.
    pub frozen: Vec<FrozenRest>,
    /// While the engine is built.
    pub init: Peak,
    /// The micro steps of a steady step; of many that are alike only one.
    pub micro_steps: Vec<MicroStepPeaks>,
    /// The optimizer step.
    pub step: Peak,
    /// Buffers of the model.
    pub buffers: Bytes,
    /// What a micro batch takes.
    pub batch: Bytes,
}

/// How a prediction is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counting {
    /// What the ranks run on.
    pub backend: Backend,
    /// Leave out what a kernel allocates inside, which a recorder of tensors cannot see.
    pub tensors_only: bool,
}

impl Counting {
    /// As tensors of CPU ranks were recorded.
    pub const AS_MEASURED: Self = Self { backend: Backend::Gloo, tensors_only: true };
}

impl Prediction {
    /// Of a rank.
    #[must_use]
    pub fn new(lowered: &Lowered, rank: &RankOf<'_>, counting: Counting) -> Self {
        let run = lowered.run(rank);
        let frozen_ranks = lowered.frozen_ranks(rank);
        let ranks = FrozenRank::all(lowered, &frozen_ranks);
        let micro_steps = steady_step(
            &run,
            lowered.model(),
            lowered.modules(),
            lowered.micro_step(),
            &ranks,
            counting.backend,
        );
        let frozen: Vec<FrozenRest> = ranks
            .iter()
            .map(|rank| FrozenRest { role: rank.role, rest: frozen_rest(&rank.real) })
            .collect();
        let mut beside = Rest::default();
        frozen.iter().for_each(|model| beside.add_rest(&model.rest));
        let around = |run: &Run<'_>| Self {
            states: RestStates::of(run).with(&beside),
            frozen,
            init: phase(counting, &beside, |ledger| initialize(run, lowered.loading(), ledger)),
            micro_steps,
            step: phase(counting, &beside, |ledger| optimizer_step(run, ledger)),
            buffers: lowered.buffers()
                + lowered.frozen().iter().map(FrozenModel::buffers).sum::<Bytes>(),
            batch: lowered.batch(),
        };
        match lowered.real_run(rank) {
            None => around(&run),
            Some(real) => {
                around(&real).with_states_in_place_of(&RestStates::of(&run).with(&beside))
            }
        }
    }

    /// Every phase of a step and of what precedes it, in order.
    pub fn phases(&self) -> Vec<Phase> {
        let mut phases = vec![Phase::Init, Phase::Forward];
        for micro in &self.micro_steps {
            for other in &micro.others {
                if !phases.contains(&other.phase) {
                    phases.push(other.phase);
                }
            }
        }
        phases.extend([Phase::Backward, Phase::Step]);
        phases
    }

    /// The highest point of a phase, over all its micro steps.
    pub fn peak(&self, phase: Phase) -> &Peak {
        let of_micro_steps = |of: &dyn Fn(&MicroStepPeaks) -> Option<&Peak>| {
            let device = |peak: &&Peak| (peak.at(Place::Device), peak.total);
            self.micro_steps.iter().filter_map(of).max_by_key(device).unwrap_or(&self.step)
        };
        match phase {
            Phase::Init => &self.init,
            Phase::Forward => of_micro_steps(&|micro| Some(&micro.forward)),
            Phase::Generate | Phase::Score | Phase::Frozen(_) | Phase::Loss => {
                of_micro_steps(&|micro| {
                    micro.others.iter().find(|other| other.phase == phase).map(|other| &other.peak)
                })
            }
            Phase::Backward => of_micro_steps(&|micro| Some(&micro.backward)),
            Phase::Step => &self.step,
        }
    }

    /// The phase in which a place is fullest.
    pub fn fullest(&self, place: Place) -> Phase {
        self.fullest_among(place, |_| true)
    }

    fn fullest_among(&self, place: Place, counts: impl Fn(&Phase) -> bool) -> Phase {
        // Of equals the earliest.
        let phases = self.phases().into_iter().rev().filter(counts);
        phases.max_by_key(|phase| self.peak(*phase).at(place)).unwrap_or(Phase::Init)
    }

    /// The most bytes ever alive in a place.
    pub fn most(&self, place: Place) -> Bytes {
        self.peak(self.fullest(place)).at(place)
    }

    /// The phase other than generation in which the device is fullest.
    pub(super) fn fullest_in_training(&self) -> Phase {
        self.fullest_among(Place::Device, |phase| *phase != Phase::Generate)
    }

    /// The most bytes ever alive, wherever they are; what they are of processors that have one memory for all.
    pub fn most_anywhere(&self) -> Bytes {
        let peaks = self.phases().into_iter().map(|phase| self.peak(phase).total);
        peaks.max().unwrap_or_default() + self.buffers + self.batch
    }

    /// Bytes that the pools of the device hold in steady steps beyond the highest point of everything: a block of one
    /// stream's pool cannot serve another.
    pub fn apart(&self) -> Bytes {
        let steady = [Phase::Forward, Phase::Backward, Phase::Step];
        let phases = steady.map(|phase| self.peak(phase).streams);
        let most = |stream: usize| phases.iter().map(|streams| streams[stream]).max();
        let together: Bytes = (0..Stream::COUNT).filter_map(most).sum();
        together.saturating_sub(self.most(Place::Device))
    }

    /// A stand-in's program ran with its own states; what it kept is replaced by what the model itself keeps.
    fn with_states_in_place_of(mut self, lent: &RestStates) -> Self {
        let (real, lent) = (self.states.after_step.clone(), &lent.after_step);
        for micro in &mut self.micro_steps {
            let others = micro.others.iter_mut().map(|other| &mut other.peak);
            for peak in [&mut micro.forward, &mut micro.backward].into_iter().chain(others) {
                peak.replace(lent, &real);
            }
            micro.end = replace(&micro.end, lent, &real);
        }
        self
    }
}

impl Peak {
    fn replace(&mut self, lent: &Rest, real: &Rest) {
        let shift = |bytes: Bytes, lent: Bytes, real: Bytes| {
            Bytes((bytes.0 + real.0).saturating_sub(lent.0))
        };
        self.total = shift(self.total, lent.total(), real.total());
        for place in Place::ALL {
            let slot = &mut self.places[place as usize];
            *slot = shift(*slot, lent.at(place), real.at(place));
        }
        let compute = &mut self.streams[Stream::Compute as usize];
        *compute = shift(*compute, lent.at(Place::Device), real.at(Place::Device));
        self.at_device_peak = replace(&self.at_device_peak, lent, real);
        self.on_host = replace(&self.on_host, lent, real).without_place(Place::Device);
    }
}

fn replace(alive: &Rest, lent: &Rest, real: &Rest) -> Rest {
    let mut replaced = real.clone();
    for (category, place, bytes) in alive.iter() {
        replaced.add(category, place, bytes.0.saturating_sub(lent.of_at(category, place).0));
    }
    replaced
}

/// The highest point of `events`, with what lies beside them all the time.
fn phase(counting: Counting, beside: &Rest, events: impl FnOnce(&mut Ledger)) -> Peak {
    let hidden: &[Category] =
        if counting.tensors_only { &[Category::KernelTemporaries] } else { &[] };
    let mut ledger = Ledger::without(hidden);
    Resident::open(beside, &mut ledger);
    events(&mut ledger);
    Peak::of(&ledger)
}

impl Lowered {
    /// The name of the module or parameter nearest to a peak of a micro step.
    pub fn nearest_name(&self, phase: Phase, peak: &Peak) -> Option<String> {
        let items = match phase {
            Phase::Forward => &self.micro_step().forward,
            Phase::Backward => &self.micro_step().backward,
            _ => return None,
        };
        let until = items.len().min(peak.moment.0 as usize + 1);
        let model = self.model();
        items[..until].iter().rev().find_map(|item| match item {
            Item::Module(event) => {
                let module = model.module_id(event.module as usize)?;
                Some(model.module_name(module)).filter(|name| !name.is_empty())
            }
            Item::Gradient { parameter, .. } | Item::PartOfGradient { parameter, .. } => {
                Some(model.parameter_name(model.parameters[*parameter as usize].parameter.id))
            }
            _ => None,
        })
    }
}
