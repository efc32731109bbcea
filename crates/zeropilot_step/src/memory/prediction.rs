//! What a rank holds between and within the phases of training.

use zeropilot_units::Bytes;

use super::peak::{MicroStepPeaks, Peak};
use super::rank::steady_step;
use crate::lower::{Lowered, RankOf};
use crate::micro_step::Item;
use crate::zero::{
    Backend, Category, Ledger, Place, Rest, RestStates, Run, Stream, initialize, optimizer_step,
};

/// A phase of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// `deepspeed.initialize`.
    Init,
    /// A forward pass.
    Forward,
    /// A backward pass.
    Backward,
    /// The optimizer step.
    Step,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 4] = [Self::Init, Self::Forward, Self::Backward, Self::Step];
}

/// The memory of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// Between the phases.
    pub states: RestStates,
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
        let micro_steps = steady_step(
            &run,
            lowered.model(),
            lowered.modules(),
            lowered.micro_step(),
            counting.backend,
        );
        let around = |run: &Run<'_>| Self {
            states: RestStates::of(run),
            init: phase(counting, |ledger| initialize(run, lowered.loading(), ledger)),
            micro_steps,
            step: phase(counting, |ledger| optimizer_step(run, ledger)),
            buffers: lowered.buffers(),
            batch: lowered.batch(),
        };
        match lowered.real_run(rank) {
            None => around(&run),
            Some(real) => around(&real).with_states_in_place_of(&RestStates::of(&run)),
        }
    }

    /// The highest point of a phase, over all its micro steps.
    pub fn peak(&self, phase: Phase) -> &Peak {
        let of_micro_steps = |of: fn(&MicroStepPeaks) -> &Peak| {
            let device = |peak: &&Peak| (peak.at(Place::Device), peak.total);
            self.micro_steps.iter().map(of).max_by_key(device).unwrap_or(&self.step)
        };
        match phase {
            Phase::Init => &self.init,
            Phase::Forward => of_micro_steps(|micro| &micro.forward),
            Phase::Backward => of_micro_steps(|micro| &micro.backward),
            Phase::Step => &self.step,
        }
    }

    /// The phase in which a place is fullest.
    pub fn fullest(&self, place: Place) -> Phase {
        // Of equals the earliest.
        let phases = Phase::ALL.into_iter().rev();
        phases.max_by_key(|phase| self.peak(*phase).at(place)).unwrap_or(Phase::Init)
    }

    /// The most bytes ever alive in a place.
    pub fn most(&self, place: Place) -> Bytes {
        self.peak(self.fullest(place)).at(place)
    }

    /// The most bytes ever alive, wherever they are; what they are of processors that have one memory for all.
    pub fn most_anywhere(&self) -> Bytes {
        let peaks = Phase::ALL.into_iter().map(|phase| self.peak(phase).total);
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
            for peak in [&mut micro.forward, &mut micro.backward] {
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

fn phase(counting: Counting, events: impl FnOnce(&mut Ledger)) -> Peak {
    let hidden: &[Category] =
        if counting.tensors_only { &[Category::KernelTemporaries] } else { &[] };
    let mut ledger = Ledger::without(hidden);
    events(&mut ledger);
    Peak::of(&ledger)
}

impl Lowered {
    /// The name of the module or parameter nearest to a peak of a micro step.
    pub fn nearest_name(&self, phase: Phase, peak: &Peak) -> Option<String> {
        let items = match phase {
            Phase::Forward => &self.micro_step().forward,
            Phase::Backward => &self.micro_step().backward,
            Phase::Init | Phase::Step => return None,
        };
        let until = items.len().min(peak.moment.0 as usize + 1);
        let model = self.model();
        items[..until].iter().rev().find_map(|item| match item {
            Item::Module(event) => {
                let module = model.module_id(event.module as usize)?;
                Some(model.module_name(module)).filter(|name| !name.is_empty())
            }
            Item::Gradient { parameter, .. } => {
                Some(model.parameter_name(model.parameters[*parameter as usize].parameter.id))
            }
            _ => None,
        })
    }
}
