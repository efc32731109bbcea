//! The highest points of a phase and of a micro step.

use zeropilot_units::Bytes;

use super::prediction::Phase;
use crate::zero::{Collective, Ledger, Moment, Place, Rest, Stream};

/// The highest point of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peak {
    /// Host and device together.
    pub total: Bytes,
    /// Of each place, in the order of [`Place::ALL`].
    pub places: [Bytes; Place::ALL.len()],
    /// Of each stream's pool of the device, by [`Stream`].
    pub streams: [Bytes; Stream::COUNT],
    /// What was alive when the device was fullest.
    pub at_device_peak: Rest,
    /// Which item of the phase that was.
    pub moment: Moment,
    /// What was alive in the host when its pinned and its other memory were fullest.
    pub on_host: Rest,
}

impl Peak {
    /// What a ledger has seen since its last restart.
    pub fn of(ledger: &Ledger) -> Self {
        let mut on_host = Rest::default();
        for place in [Place::Pinned, Place::Host] {
            let alive = ledger.at_peak_in(place);
            let there = alive.iter().filter(|(_, other, _)| *other == place);
            there.for_each(|(category, place, bytes)| on_host.add(category, place, bytes.0));
        }
        Self {
            on_host,
            total: ledger.peak(),
            places: Place::ALL.map(|place| ledger.peak_in(place)),
            streams: ledger.peak_of_streams(),
            at_device_peak: ledger.at_peak_in(Place::Device),
            moment: ledger.peak_moment_in(Place::Device),
        }
    }

    /// The higher of two.
    fn or_higher(self, other: Self) -> Self {
        let height = |peak: &Self| (peak.at(Place::Device), peak.total);
        if height(&other) > height(&self) { other } else { self }
    }

    /// The most bytes alive at once in a place.
    pub fn at(&self, place: Place) -> Bytes {
        self.places[place as usize]
    }
}

/// The highest point of something that runs beside the passes of the trained model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhasePeak {
    /// What runs.
    pub phase: Phase,
    /// Its highest point.
    pub peak: Peak,
    /// Calls of the communication library.
    pub calls: Vec<Collective>,
}

/// One micro step of a steady step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroStepPeaks {
    /// Its forward pass.
    pub forward: Peak,
    /// Other models and the loss outside of the model, in order.
    pub others: Vec<PhasePeak>,
    /// Its backward pass.
    pub backward: Peak,
    /// What is alive at its end.
    pub end: Rest,
    /// Calls of the communication library, forward then backward.
    pub calls: [Vec<Collective>; 2],
}

/// The phases of a forward pass, one after the other; those of one kind are taken together.
#[derive(Debug, Default)]
pub(super) struct Phases(Vec<PhasePeak>);

impl Phases {
    pub(super) fn add(&mut self, phase: Phase, peak: Peak, calls: Vec<Collective>) {
        match self.0.iter_mut().find(|other| other.phase == phase) {
            Some(known) => {
                known.peak = known.peak.clone().or_higher(peak);
                known.calls.extend(calls);
            }
            None => self.0.push(PhasePeak { phase, peak, calls }),
        }
    }

    /// The forward pass of the trained model, and the others.
    pub(super) fn split(mut self, otherwise: Peak) -> (PhasePeak, Vec<PhasePeak>) {
        let forward = self.0.iter().position(|it| it.phase == Phase::Forward);
        let forward = match forward {
            Some(place) => self.0.remove(place),
            None => PhasePeak { phase: Phase::Forward, peak: otherwise, calls: Vec::new() },
        };
        (forward, self.0)
    }
}
