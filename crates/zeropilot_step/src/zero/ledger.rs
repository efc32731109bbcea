//! The book that keeps the account of a rank: what is alive, its highest points, and what was alive there.

use zeropilot_units::Bytes;

use super::rest::{Category, Place, Rest};
use super::sink::{Handle, Sink};
use super::swing::Swing;

/// Bytes of every category in every place.
type Account = [u64; Category::COUNT * Place::ALL.len()];

const fn slot(category: Category, place: Place) -> usize {
    category as usize * Place::ALL.len() + place as usize
}

/// The streams a rank of stage 3 allocates on: PyTorch's allocator keeps a pool for each, and a block of one cannot
/// serve another (`__allgather_stream` in DeepSpeed's `partitioned_param_coordinator.py`, `reduce_and_partition_stream`
/// in `stage3.py`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The model and the optimizer.
    Compute,
    /// Gathered parameters.
    Gather,
    /// Gradients while they are reduced.
    Reduce,
}

impl Stream {
    /// How many there are.
    pub const COUNT: usize = 3;

    fn of(category: Category) -> Self {
        match category {
            Category::GatheredParameters
            | Category::GatherBuffer
            | Category::PersistentParameters => Self::Gather,
            Category::ReductionCopies | Category::CommunicationCopies => Self::Reduce,
            _ => Self::Compute,
        }
    }
}

/// What is alive in the pool of a stream, and the most there was.
#[derive(Debug, Clone, Copy, Default)]
struct Pool {
    now: u64,
    peak: u64,
}

impl Pool {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        self.peak = self.peak.max(self.now);
    }
}

/// A place in the order of events, as whoever drives the ledger counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u32);

/// One running total with its highest point.
#[derive(Debug, Clone)]
struct Meter {
    now: u64,
    peak: u64,
    moment: Moment,
    at_peak: Account,
}

impl Default for Meter {
    fn default() -> Self {
        Self { now: 0, peak: 0, moment: Moment::default(), at_peak: EMPTY }
    }
}

const EMPTY: Account = [0; Category::COUNT * Place::ALL.len()];

impl Meter {
    /// Whether the total is now the highest so far.
    fn add(&mut self, bytes: u64, moment: Moment) -> bool {
        self.now += bytes;
        let is_peak = self.now > self.peak;
        if is_peak {
            self.peak = self.now;
            self.moment = moment;
        }
        is_peak
    }

    fn restart(&mut self, moment: Moment) {
        self.peak = self.now;
        self.moment = moment;
    }
}

/// A set of meters, one bit for each place and one for everything together.
type Meters = u8;

const EVERYWHERE: Meters = 1 << Place::ALL.len();
const ALL_METERS: Meters = 2 * EVERYWHERE - 1;

const fn meter_of(place: Place) -> Meters {
    1 << place as usize
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: usize,
    place: Place,
    bytes: u64,
}

/// Keeps a running total of all that is alive, its highest point, and what was alive there; of everything together
/// and of each place.
#[derive(Debug, Clone)]
pub struct Ledger {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    alive: Account,
    everywhere: Meter,
    places: [Meter; Place::ALL.len()],
    /// The pools of the device, by [`Stream`].
    pools: [Pool; Stream::COUNT],
    /// Meters whose present total is their highest so far, and what makes it up has not been written down.
    rising: Meters,
    moment: Moment,
    /// Categories that are not counted.
    ignored: Vec<Category>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// An empty book.
    pub fn new() -> Self {
        Self::without(&[])
    }

    /// An empty book that does not count these categories; a measurement that cannot see them is compared so.
    pub fn without(ignored: &[Category]) -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
            alive: EMPTY,
            everywhere: Meter::default(),
            places: Default::default(),
            pools: Default::default(),
            rising: ALL_METERS,
            moment: Moment::default(),
            ignored: ignored.to_vec(),
        }
    }

    /// What follows happens at this moment.
    pub fn at(&mut self, moment: Moment) {
        self.moment = moment;
    }

    /// Bytes alive.
    pub fn total(&self) -> Bytes {
        Bytes(self.everywhere.now)
    }

    /// Bytes alive in a place.
    pub fn total_in(&self, place: Place) -> Bytes {
        Bytes(self.places[place as usize].now)
    }

    /// The most bytes that were alive at once, host and device together, since the last [`Ledger::restart`].
    pub fn peak(&self) -> Bytes {
        Bytes(self.everywhere.peak)
    }

    /// The most bytes that were alive at once in a place.
    pub fn peak_in(&self, place: Place) -> Bytes {
        Bytes(self.places[place as usize].peak)
    }

    /// The most bytes that were alive at once in each pool of the device, by [`Stream`].
    pub fn peak_of_streams(&self) -> [Bytes; Stream::COUNT] {
        self.pools.map(|pool| Bytes(pool.peak))
    }

    /// When a place was at its highest point.
    pub fn peak_moment_in(&self, place: Place) -> Moment {
        self.places[place as usize].moment
    }

    /// What was alive everywhere at the highest point of the total.
    pub fn at_peak(&self) -> Rest {
        self.snapshot(&self.everywhere, EVERYWHERE)
    }

    /// What was alive everywhere at the highest point of a place.
    pub fn at_peak_in(&self, place: Place) -> Rest {
        self.snapshot(&self.places[place as usize], meter_of(place))
    }

    fn snapshot(&self, meter: &Meter, bit: Meters) -> Rest {
        rest(if self.rising & bit == 0 { &meter.at_peak } else { &self.alive })
    }

    /// What is alive now.
    pub fn alive(&self) -> Rest {
        rest(&self.alive)
    }

    /// Begins a new phase: the highest points are what is alive now.
    pub fn restart(&mut self) {
        self.everywhere.restart(self.moment);
        self.places.iter_mut().for_each(|meter| meter.restart(self.moment));
        self.pools.iter_mut().for_each(|pool| pool.peak = pool.now);
        self.rising = ALL_METERS;
    }

    /// A gradient that swings have counted, by place in [`Swing::CATEGORIES`], becomes an allocation of its own.
    pub(crate) fn adopt_gradient(&mut self, counted_as: u8, bytes: u64) -> Handle {
        let category = Swing::CATEGORIES[counted_as as usize];
        self.alive[slot(category, Place::Device)] -= bytes;
        let slot = slot(Category::Gradients, Place::Device);
        self.alive[slot] += bytes;
        self.enter(Entry { slot, place: Place::Device, bytes })
    }

    fn enter(&mut self, entry: Entry) -> Handle {
        let Some(index) = self.vacant.pop() else {
            self.entries.push(entry);
            return Handle((self.entries.len() - 1) as u32);
        };
        self.entries[index as usize] = entry;
        Handle(index)
    }

    /// The device's memory swings.
    pub fn swing(&mut self, swing: &Swing) {
        if swing.rise > 0 {
            self.settle(ALL_METERS & !EVERYWHERE & !meter_of(Place::Device));
            self.shift(&swing.at_rise);
            self.add(Place::Device, swing.rise);
            self.settle(ALL_METERS);
            self.shift(&std::array::from_fn(|index| swing.net[index] - swing.at_rise[index]));
        } else {
            self.settle(ALL_METERS);
            self.shift(&swing.net);
        }
        let net = swing.end();
        let rise = i64::try_from(swing.rise).unwrap_or(i64::MAX);
        for meter in [&mut self.everywhere, &mut self.places[Place::Device as usize]] {
            meter.now = meter.now.saturating_add_signed(net - rise);
        }
        let compute = &mut self.pools[Stream::Compute as usize];
        compute.add(swing.rise);
        compute.now = compute.now.saturating_add_signed(net - rise);
    }

    fn shift(&mut self, by: &[i64; Swing::CATEGORIES.len()]) {
        for (category, bytes) in Swing::CATEGORIES.into_iter().zip(by) {
            let alive = &mut self.alive[slot(category, Place::Device)];
            *alive = alive.wrapping_add_signed(*bytes);
        }
    }

    fn add(&mut self, place: Place, bytes: u64) {
        if self.everywhere.add(bytes, self.moment) {
            self.rising |= EVERYWHERE;
        }
        if self.places[place as usize].add(bytes, self.moment) {
            self.rising |= meter_of(place);
        }
    }

    /// Writes down what makes up the highest points of these meters before it changes.
    fn settle(&mut self, meters: Meters) {
        let due = self.rising & meters;
        if due == 0 {
            return;
        }
        self.rising &= !due;
        if due & EVERYWHERE != 0 {
            self.everywhere.at_peak = self.alive;
        }
        for place in Place::ALL {
            if due & meter_of(place) != 0 {
                self.places[place as usize].at_peak = self.alive;
            }
        }
    }
}

fn rest(alive: &Account) -> Rest {
    let mut rest = Rest::default();
    for category in Category::ALL {
        for place in Place::ALL {
            rest.add(category, place, alive[slot(category, place)]);
        }
    }
    rest
}

impl Sink for Ledger {
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle {
        let bytes = if self.ignored.contains(&category) { 0 } else { bytes };
        let entry = Entry { slot: slot(category, place), place, bytes };
        let handle = self.enter(entry);
        self.settle(ALL_METERS & !EVERYWHERE & !meter_of(place));
        self.alive[entry.slot] += bytes;
        self.add(place, bytes);
        if place == Place::Device {
            self.pools[Stream::of(category) as usize].add(bytes);
        }
        handle
    }

    fn free(&mut self, handle: Handle) {
        let Entry { slot, place, bytes } = self.entries[handle.0 as usize];
        self.settle(ALL_METERS);
        self.everywhere.now -= bytes;
        self.places[place as usize].now -= bytes;
        self.alive[slot] -= bytes;
        if place == Place::Device {
            let category = Category::ALL[slot / Place::ALL.len()];
            self.pools[Stream::of(category) as usize].now -= bytes;
        }
        self.vacant.push(handle.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_remembers_what_was_alive() {
        let mut ledger = Ledger::new();
        let master = ledger.allocate(Category::Master, Place::Device, 40);
        ledger.touch(Category::NormCopies, Place::Device, 60);
        ledger.free(master);
        ledger.touch(Category::NormCopies, Place::Device, 30);
        assert_eq!(ledger.peak(), Bytes(100));
        assert_eq!(ledger.at_peak().of(Category::Master), Bytes(40));
        assert_eq!(ledger.total(), Bytes(0));
    }

    #[test]
    fn each_place_has_its_own_peak() {
        let mut ledger = Ledger::new();
        let weights = ledger.allocate(Category::FlatParameters, Place::Device, 10);
        let master = ledger.allocate(Category::Master, Place::Host, 40);
        ledger.free(weights);
        ledger.touch(Category::HostStaging, Place::Host, 5);
        ledger.free(master);
        assert_eq!(ledger.peak(), Bytes(50));
        assert_eq!(
            (ledger.peak_in(Place::Device), ledger.peak_in(Place::Host)),
            (Bytes(10), Bytes(45))
        );
        assert_eq!(ledger.at_peak_in(Place::Device).of(Category::Master), Bytes(0));
        assert_eq!(ledger.at_peak_in(Place::Host).of(Category::Master), Bytes(40));
    }

    #[test]
    fn each_stream_has_its_own_peak() {
        let mut ledger = Ledger::new();
        ledger.touch(Category::GatheredParameters, Place::Device, 30);
        let bucket = ledger.allocate(Category::ReduceBucket, Place::Device, 20);
        ledger.touch(Category::ReductionCopies, Place::Device, 5);
        ledger.free(bucket);
        assert_eq!(ledger.peak_in(Place::Device), Bytes(30));
        assert_eq!(ledger.peak_of_streams(), [Bytes(20), Bytes(30), Bytes(5)]);
    }

    #[test]
    fn a_swing_is_what_its_allocations_are() {
        let mut ledger = Ledger::new();
        ledger.allocate(Category::Master, Place::Device, 40);
        ledger.at(Moment(7));
        // 10 activations stay; 25 bytes of logits come and go.
        let (at_rise, net) = ([10, 25, 0, 0], [10, 0, 0, 0]);
        ledger.swing(&Swing { rise: 35, at_rise, net, ..Swing::default() });
        assert_eq!((ledger.peak_in(Place::Device), ledger.total()), (Bytes(75), Bytes(50)));
        assert_eq!(ledger.peak_moment_in(Place::Device), Moment(7));
        let peak = ledger.at_peak_in(Place::Device);
        assert_eq!(
            (peak.of(Category::Logits), peak.of(Category::Activations)),
            (Bytes(25), Bytes(10))
        );
        ledger.swing(&Swing { net: [-10, 0, 0, 0], ..Swing::default() });
        assert_eq!((ledger.peak(), ledger.total()), (Bytes(75), Bytes(40)));
    }
}
