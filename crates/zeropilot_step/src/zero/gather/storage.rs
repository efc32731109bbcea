//! The memory behind gathered parameters.
//!
//! One parameter is gathered into a buffer of its own. Several are gathered into one flat buffer; when the first of
//! them is needed each gets its own copy, and the flat buffer stays until the last of them has been needed.

use super::hold::{Hold, Holds};
use super::sizes::Size;
use crate::zero::rest::{Category, Place};
use crate::zero::run::{Backend, Run};
use crate::zero::sink::{Collective, CollectiveKind, Direction, Handle, HostCopy, Sink};
use crate::zero::stage3::secondary_place;

/// Where a parameter's full value is.
#[derive(Debug, Clone, Copy)]
enum Status {
    /// Nowhere: only this rank's share exists.
    Released,
    /// In its own storage, if it needs one. In flight still when its group's number is known.
    Gathered { storage: Option<Handle>, bytes: u64, flight: Option<u32> },
    /// In a group's flat buffer.
    Grouped { flight: u32 },
}

/// What there is of a parameter between two micro steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtRest {
    /// The bytes of its full value, and whether they are a storage of its own.
    gathered: Option<(u64, bool)>,
    has_secondary: bool,
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
    sizes: Vec<Size>,
    /// Shares lie on the host and are copied to the device to be gathered.
    from_host: bool,
    status: Vec<Status>,
    /// Gathers of this micro step in the order in which they were started; none once it has landed.
    flights: Vec<Option<Flight>>,
    secondary: Vec<Option<Handle>>,
    holds: Holds,
    /// Lists that are not in use.
    spare: Vec<Vec<usize>>,
}

impl<'a> Storages<'a> {
    /// As after initialization: nothing gathered; with hpZ every parameter has a secondary copy.
    pub(super) fn new(
        run: &'a Run<'a>,
        sizes: &[Size],
        backend: Backend,
        sink: &mut impl Sink,
    ) -> Self {
        let count = sizes.len();
        let mut storages = Self {
            run,
            sizes: sizes.to_vec(),
            from_host: backend == Backend::Nccl && run.zero.offload_param.is_some(),
            status: vec![Status::Released; count],
            flights: Vec::new(),
            secondary: vec![None; count],
            holds: Holds::default(),
            spare: Vec::new(),
        };
        (0..count).for_each(|parameter| storages.ensure_secondary(parameter, sink));
        storages
    }

    pub(super) fn is_released(&self, parameter: usize) -> bool {
        matches!(self.status[parameter], Status::Released)
    }

    fn category(&self, parameter: usize) -> Category {
        if self.sizes[parameter].persistent {
            Category::PersistentParameters
        } else {
            Category::GatheredParameters
        }
    }

    fn own(&self, parameter: usize, bytes: u64, sink: &mut impl Sink) -> Option<Handle> {
        // With one rank the share is the parameter, if it is on the device.
        (self.run.world > 1 || self.from_host)
            .then(|| sink.allocate(self.category(parameter), Place::Device, bytes))
    }

    fn list(&mut self) -> Vec<usize> {
        self.spare.pop().unwrap_or_default()
    }

    fn give_back(&mut self, mut list: Vec<usize>) {
        list.clear();
        self.spare.push(list);
    }

    /// Starts to gather; parameters with a valid secondary copy (hpZ) form a group of their own, and within it those
    /// of one element size.
    pub(super) fn gather(&mut self, parameters: &[usize], sink: &mut impl Sink) {
        if parameters.len() == 1 || self.run.zero.allgather_sequential {
            for &parameter in parameters {
                let mut alone = self.list();
                alone.push(parameter);
                self.launch(alone, sink);
            }
            return;
        }
        for near in [true, false] {
            let mut left = self.list();
            left.extend(parameters.iter().filter(|&&p| self.secondary[p].is_some() == near));
            while let Some(&first) = left.first() {
                let element = self.sizes[first].element;
                let mut alike = self.list();
                alike.extend(left.iter().filter(|&&p| self.sizes[p].element == element));
                left.retain(|&p| self.sizes[p].element != element);
                self.launch(alike, sink);
            }
            self.give_back(left);
        }
    }

    /// One all-gather, inside the secondary group where secondary copies are valid; with one rank there is none.
    fn communicate(&self, members: &[usize], sink: &mut impl Sink) {
        let near = self.secondary[members[0]].is_some();
        let ranks = if near { self.run.zero.hpz_partition_size } else { self.run.world };
        if self.run.world > 1 {
            let element = self.sizes[members[0]].element;
            let elements = members.iter().map(|&p| self.sizes[p].padded).sum::<u64>() / element;
            let is_reduced = self.run.zero.all_reduce_for_fetch && members.len() > 1 && !near;
            let kind =
                if is_reduced { CollectiveKind::AllReduce } else { CollectiveKind::AllGather };
            sink.communicate(Collective { kind, elements, element, ranks });
        }
    }

    // A micro step starts far fewer than four billion gathers.
    #[allow(clippy::cast_possible_truncation)]
    fn launch(&mut self, members: Vec<usize>, sink: &mut impl Sink) {
        let flight = self.flights.len() as u32;
        self.copy_from_host(&members, sink);
        self.communicate(&members, sink);
        if self.run.world > 1 {
            sink.launch(flight);
        }
        let mut flat = None;
        if members.len() == 1 || self.run.world == 1 {
            for &parameter in &members {
                let bytes = self.sizes[parameter].padded;
                let storage = self.own(parameter, bytes, sink);
                self.status[parameter] = Status::Gathered { storage, bytes, flight: Some(flight) };
            }
        } else {
            let bytes = members.iter().map(|&p| self.sizes[p].padded).sum();
            flat = Some(sink.allocate(Category::GatherBuffer, Place::Device, bytes));
            for &parameter in &members {
                self.status[parameter] = Status::Grouped { flight };
            }
        }
        let shares = members.iter().map(|&p| self.share_copy(p)).sum();
        sink.touch(Category::GatherBuffer, Place::Device, shares);
        self.flights.push(Some(Flight { waiting: members.len(), members, flat }));
    }

    fn copy_from_host(&self, members: &[usize], sink: &mut impl Sink) {
        if !self.from_host {
            return;
        }
        let is_alone = self.run.world == 1;
        let share = |&p: &usize| if is_alone { self.sizes[p].whole() } else { self.share_copy(p) };
        let bytes = members.iter().map(share).sum();
        sink.copy(HostCopy { direction: Direction::ToDevice, bytes });
    }

    /// Bytes of the copy on the device from which an offloaded share is sent.
    fn share_copy(&self, parameter: usize) -> u64 {
        let size = self.sizes[parameter];
        // A frozen parameter that stays gathered has its share on the device.
        let on_device = size.persistent && !size.trainable;
        match self.secondary[parameter] {
            _ if !self.from_host || self.run.world == 1 || on_device => 0,
            Some(_) => size.secondary,
            None => size.padded / self.run.world,
        }
    }

    /// Waits for a parameter that a module needs.
    pub(super) fn land(&mut self, parameter: usize, sink: &mut impl Sink) {
        if let Status::Grouped { flight } = self.status[parameter] {
            self.copy_out(flight, sink);
        }
        let Status::Gathered { flight: Some(flight), storage, bytes } = self.status[parameter]
        else {
            return;
        };
        self.status[parameter] = Status::Gathered { storage, bytes, flight: None };
        sink.join(flight);
        let Some(place) = self.flights.get_mut(flight as usize) else { return };
        let Some(landing) = place else { return };
        landing.waiting -= 1;
        if landing.waiting == 0
            && let Some(landed) = place.take()
        {
            landed.flat.into_iter().for_each(|flat| sink.free(flat));
            self.give_back(landed.members);
        }
    }

    /// Every parameter of a group gets its own copy.
    fn copy_out(&mut self, flight: u32, sink: &mut impl Sink) {
        let Some(group) = self.flights[flight as usize].take() else { return };
        for &member in &group.members {
            let bytes = self.sizes[member].whole();
            let storage = self.own(member, bytes, sink);
            self.status[member] = Status::Gathered { storage, bytes, flight: Some(flight) };
        }
        self.flights[flight as usize] = Some(group);
    }

    /// Gathers under way, the oldest first.
    // A micro step starts far fewer than four billion gathers.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn under_way(&self) -> Vec<u32> {
        let flights = self.flights.iter().enumerate();
        flights.filter(|(_, flight)| flight.is_some()).map(|(number, _)| number as u32).collect()
    }

    /// Waits for a gather and says which parameters nobody had needed; its flat buffer stays until
    /// [`Storages::drop_landed`].
    pub(super) fn land_flight(&mut self, flight: u32, sink: &mut impl Sink) -> Vec<usize> {
        let members =
            self.flights[flight as usize].as_ref().map_or_else(Vec::new, |f| f.members.clone());
        let is_waiting = |&member: &usize| matches!(self.status[member], Status::Grouped { flight: own } if own == flight);
        if members.iter().any(is_waiting) {
            self.copy_out(flight, sink);
        }
        let mut landed = Vec::new();
        for member in members {
            if let Status::Gathered { storage, bytes, flight: Some(own) } = self.status[member]
                && own == flight
            {
                self.status[member] = Status::Gathered { storage, bytes, flight: None };
                landed.push(member);
            }
        }
        landed
    }

    pub(super) fn drop_landed(&mut self, sink: &mut impl Sink) {
        let mut flights = std::mem::take(&mut self.flights);
        for flight in flights.drain(..).flatten() {
            flight.flat.into_iter().for_each(|flat| sink.free(flat));
            self.give_back(flight.members);
        }
        self.flights = flights;
    }

    /// What every parameter has, if nothing is under way and nothing is held.
    pub(super) fn at_rest(&self) -> Option<Vec<AtRest>> {
        if self.flights.iter().any(Option::is_some) || !self.holds.is_empty() {
            return None;
        }
        let states = self.status.iter().zip(&self.secondary).map(|(status, secondary)| {
            let gathered = match *status {
                Status::Released => None,
                Status::Gathered { bytes, storage, .. } => Some((bytes, storage.is_some())),
                Status::Grouped { .. } => return None,
            };
            Some(AtRest { gathered, has_secondary: secondary.is_some() })
        });
        states.collect()
    }

    /// Drops the full value; whether there was one. With hpZ a secondary copy is made if there is none.
    pub(super) fn release(&mut self, parameter: usize, sink: &mut impl Sink) -> bool {
        let Status::Gathered { storage, .. } = self.status[parameter] else { return false };
        self.ensure_secondary(parameter, sink);
        self.status[parameter] = Status::Released;
        if let Some(storage) = storage.filter(|&storage| self.holds.release(storage)) {
            sink.free(storage);
        }
        true
    }

    /// Holds the storage of a gathered parameter, if it has one of its own.
    pub(super) fn hold(&mut self, parameter: usize) -> Option<Hold> {
        let Status::Gathered { storage: Some(storage), .. } = self.status[parameter] else {
            return None;
        };
        Some(self.holds.hold(storage))
    }

    pub(super) fn let_go(&mut self, hold: Hold, sink: &mut impl Sink) {
        if let Some(storage) = self.holds.let_go(hold) {
            sink.free(storage);
        }
    }

    fn ensure_secondary(&mut self, parameter: usize, sink: &mut impl Sink) {
        let bytes = self.sizes[parameter].secondary;
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
        let share = |&p: &usize| {
            if self.share_copy(p) > 0 { self.sizes[p].padded / self.run.world } else { 0 }
        };
        let shares = parameters.iter().map(share).sum();
        let shares = sink.allocate(Category::GatherBuffer, Place::Device, shares);
        for &parameter in parameters {
            if self.is_released(parameter) {
                let bytes = self.sizes[parameter].padded;
                let category = self.category(parameter);
                let storage = copied.then(|| sink.allocate(category, Place::Device, bytes));
                self.status[parameter] = Status::Gathered { storage, bytes, flight: None };
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
