//! The memory behind gathered parameters.
//!
//! One parameter is gathered into a buffer of its own. Several are gathered into one flat buffer; when the first of
//! them is needed each gets its own copy, and the flat buffer stays until the last of them has been needed.

use std::collections::BTreeMap;

use crate::zero::rest::{Category, Place};
use crate::zero::run::{Backend, Run};
use crate::zero::sink::{Collective, CollectiveKind, Handle, Sink};
use crate::zero::stage3::{gathered, secondary_bytes, secondary_place};

/// Where a parameter's full value is.
#[derive(Debug, Clone, Copy)]
enum Status {
    /// Nowhere: only this rank's share exists.
    Released,
    /// In its own storage, if it needs one. In flight still when its group's number is known.
    Gathered { storage: Option<Handle>, flight: Option<usize> },
    /// In a group's flat buffer.
    Grouped { flight: usize },
}

/// A reference to the storage a parameter had when it was taken; the storage outlives a release of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold(Handle);

/// How often a storage is held, and whether only holds are left.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    times: u32,
    released: bool,
}

/// A gather whose parameters have not all been needed yet.
#[derive(Debug, Clone)]
struct Flight {
    members: Vec<usize>,
    flat: Option<Handle>,
    /// Members that have not been needed yet.
    waiting: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Storages<'a> {
    run: &'a Run<'a>,
    /// Shares lie on the host and are copied to the device to be gathered.
    from_host: bool,
    categories: Vec<Category>,
    status: Vec<Status>,
    /// Gathers under way, in the order in which they were started.
    flights: BTreeMap<usize, Flight>,
    launched: usize,
    secondary: Vec<Option<Handle>>,
    held: BTreeMap<Handle, Held>,
}

impl<'a> Storages<'a> {
    /// As after initialization: nothing gathered; with hpZ every parameter has a secondary copy.
    pub(super) fn new(
        run: &'a Run<'a>,
        persistent: &[bool],
        backend: Backend,
        sink: &mut impl Sink,
    ) -> Self {
        let category = |&kept: &bool| {
            if kept { Category::PersistentParameters } else { Category::GatheredParameters }
        };
        let count = run.parameters.len();
        let mut storages = Self {
            run,
            from_host: backend == Backend::Nccl && run.zero.offload_param.is_some(),
            categories: persistent.iter().map(category).collect(),
            status: vec![Status::Released; count],
            flights: BTreeMap::new(),
            launched: 0,
            secondary: vec![None; count],
            held: BTreeMap::new(),
        };
        (0..count).for_each(|parameter| storages.ensure_secondary(parameter, sink));
        storages
    }

    pub(super) fn is_released(&self, parameter: usize) -> bool {
        matches!(self.status[parameter], Status::Released)
    }

    fn full(&self, parameter: usize) -> u64 {
        gathered(self.run.parameters[parameter].elements.0, self.run.world)
            * self.run.element(parameter)
    }

    fn own(&self, parameter: usize, bytes: u64, sink: &mut impl Sink) -> Option<Handle> {
        // With one rank the share is the parameter, if it is on the device.
        (self.run.world > 1 || self.from_host)
            .then(|| sink.allocate(self.categories[parameter], Place::Device, bytes))
    }

    /// Starts to gather; parameters with a valid secondary copy (hpZ) form a group of their own, and within it those
    /// of one element size.
    pub(super) fn gather(&mut self, parameters: &[usize], sink: &mut impl Sink) {
        let (near, far): (Vec<usize>, Vec<usize>) =
            parameters.iter().partition(|&&p| self.secondary[p].is_some());
        for mut members in [near, far] {
            while let Some(&first) = members.first() {
                let element = self.run.element(first);
                let (alike, others) =
                    members.iter().partition(|&&p| self.run.element(p) == element);
                self.launch(alike, sink);
                members = others;
            }
        }
    }

    /// One all-gather, inside the secondary group where secondary copies are valid; with one rank there is none.
    fn communicate(&self, members: &[usize], sink: &mut impl Sink) {
        let near = self.secondary[members[0]].is_some();
        let ranks = if near { self.run.zero.hpz_partition_size } else { self.run.world };
        if self.run.world > 1 {
            let element = self.run.element(members[0]);
            let elements = members.iter().map(|&p| self.full(p) / element).sum();
            let kind = CollectiveKind::AllGather;
            sink.communicate(Collective { kind, elements, element, ranks });
        }
    }

    fn launch(&mut self, members: Vec<usize>, sink: &mut impl Sink) {
        self.communicate(&members, sink);
        let flight = self.launched;
        self.launched += 1;
        let mut flat = None;
        if members.len() == 1 || self.run.world == 1 {
            for &parameter in &members {
                let storage = self.own(parameter, self.full(parameter), sink);
                self.status[parameter] = Status::Gathered { storage, flight: Some(flight) };
            }
        } else {
            let bytes = members.iter().map(|&p| self.full(p)).sum();
            flat = Some(sink.allocate(Category::GatherBuffer, Place::Device, bytes));
            for &parameter in &members {
                self.status[parameter] = Status::Grouped { flight };
            }
        }
        let shares = members.iter().map(|&p| self.share_copy(p)).sum();
        sink.touch(Category::GatherBuffer, Place::Device, shares);
        self.flights.insert(flight, Flight { waiting: members.len(), members, flat });
    }

    /// Bytes of the copy on the device from which an offloaded share is sent.
    fn share_copy(&self, parameter: usize) -> u64 {
        // A frozen parameter that stays gathered has its share on the device.
        let kept = self.categories[parameter] == Category::PersistentParameters;
        let on_device = kept && !self.run.parameters[parameter].trainable;
        match self.secondary[parameter] {
            _ if !self.from_host || self.run.world == 1 || on_device => 0,
            Some(_) => secondary_bytes(self.run, parameter),
            None => self.full(parameter) / self.run.world,
        }
    }

    /// Waits for a parameter that a module needs.
    pub(super) fn land(&mut self, parameter: usize, sink: &mut impl Sink) {
        if let Status::Grouped { flight } = self.status[parameter] {
            self.copy_out(flight, sink);
        }
        let Status::Gathered { flight: Some(flight), storage } = self.status[parameter] else {
            return;
        };
        self.status[parameter] = Status::Gathered { storage, flight: None };
        let Some(landing) = self.flights.get_mut(&flight) else { return };
        landing.waiting -= 1;
        if landing.waiting == 0 {
            landing.flat.take().into_iter().for_each(|flat| sink.free(flat));
            self.flights.remove(&flight);
        }
    }

    /// Every parameter of a group gets its own copy.
    fn copy_out(&mut self, flight: usize, sink: &mut impl Sink) {
        let members =
            self.flights.get(&flight).map(|group| group.members.clone()).unwrap_or_default();
        for member in members {
            let bytes = self.run.parameters[member].elements.0 * self.run.element(member);
            let storage = self.own(member, bytes, sink);
            self.status[member] = Status::Gathered { storage, flight: Some(flight) };
        }
    }

    /// Gathers under way, the oldest first.
    pub(super) fn under_way(&self) -> Vec<usize> {
        self.flights.keys().copied().collect()
    }

    /// Waits for a gather and says which parameters nobody had needed; its flat buffer stays until
    /// [`Storages::drop_landed`].
    pub(super) fn land_flight(&mut self, flight: usize, sink: &mut impl Sink) -> Vec<usize> {
        let members =
            self.flights.get(&flight).map(|group| group.members.clone()).unwrap_or_default();
        if members.iter().any(|&member| matches!(self.status[member], Status::Grouped { flight: own } if own == flight)) {
            self.copy_out(flight, sink);
        }
        let mut landed = Vec::new();
        for member in members {
            if let Status::Gathered { storage, flight: Some(own) } = self.status[member]
                && own == flight
            {
                self.status[member] = Status::Gathered { storage, flight: None };
                landed.push(member);
            }
        }
        landed
    }

    pub(super) fn drop_landed(&mut self, sink: &mut impl Sink) {
        for flat in std::mem::take(&mut self.flights).into_values().filter_map(|flight| flight.flat)
        {
            sink.free(flat);
        }
    }

    /// Drops the full value; whether there was one. With hpZ a secondary copy is made if there is none.
    pub(super) fn release(&mut self, parameter: usize, sink: &mut impl Sink) -> bool {
        let Status::Gathered { storage, .. } = self.status[parameter] else { return false };
        self.ensure_secondary(parameter, sink);
        self.status[parameter] = Status::Released;
        if let Some(storage) = storage {
            match self.held.get_mut(&storage) {
                Some(held) => held.released = true,
                None => sink.free(storage),
            }
        }
        true
    }

    /// Holds the storage of a gathered parameter, if it has one of its own.
    pub(super) fn hold(&mut self, parameter: usize) -> Option<Hold> {
        let Status::Gathered { storage: Some(storage), .. } = self.status[parameter] else {
            return None;
        };
        self.held.entry(storage).or_default().times += 1;
        Some(Hold(storage))
    }

    pub(super) fn let_go(&mut self, Hold(storage): Hold, sink: &mut impl Sink) {
        let Some(held) = self.held.get_mut(&storage) else { return };
        held.times -= 1;
        if held.times == 0 {
            let released = held.released;
            self.held.remove(&storage);
            if released {
                sink.free(storage);
            }
        }
    }

    fn ensure_secondary(&mut self, parameter: usize, sink: &mut impl Sink) {
        let bytes = secondary_bytes(self.run, parameter);
        if bytes > 0 && self.secondary[parameter].is_none() {
            let place = secondary_place(self.run);
            self.secondary[parameter] =
                Some(sink.allocate(Category::SecondaryPartitions, place, bytes));
        }
    }

    /// Gathers parameters each into its own buffer and waits for them. With one rank a single one is copied all the
    /// same.
    pub(super) fn gather_each(&mut self, parameters: &[usize], sink: &mut impl Sink) {
        let copied = self.run.world > 1 || self.from_host || parameters.len() == 1;
        // These gathers use shares, not secondary copies, of all parameters at once.
        let share =
            |&p: &usize| if self.share_copy(p) > 0 { self.full(p) / self.run.world } else { 0 };
        let shares = parameters.iter().map(share).sum();
        let shares = sink.allocate(Category::GatherBuffer, Place::Device, shares);
        for &parameter in parameters {
            if self.is_released(parameter) {
                let bytes = self.full(parameter);
                let storage =
                    copied.then(|| sink.allocate(self.categories[parameter], Place::Device, bytes));
                self.status[parameter] = Status::Gathered { storage, flight: None };
            }
        }
        sink.free(shares);
    }

    /// Secondary copies of trained parameters are out of date after a step.
    pub(super) fn invalidate_secondary(&mut self, sink: &mut impl Sink) {
        for (copy, parameter) in self.secondary.iter_mut().zip(self.run.parameters) {
            if parameter.trainable
                && let Some(copy) = copy.take()
            {
                sink.free(copy);
            }
        }
    }
}
