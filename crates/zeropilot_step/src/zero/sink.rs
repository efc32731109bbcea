//! Where every part of the step program reports what it allocates and frees, and the book that keeps the account.

use std::collections::BTreeMap;

use zeropilot_units::Bytes;

use super::rest::{Category, Place, Rest};

/// An allocation that has not been freed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u32);

/// What a group of ranks does together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank gets the shares of all.
    AllGather,
    /// Every rank gets its share of the sum.
    ReduceScatter,
    /// Every rank gets the sum.
    AllReduce,
    /// One rank gets the sum.
    Reduce {
        /// Which.
        to: u64,
    },
}

/// One call of the communication library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collective {
    /// What it does.
    pub kind: CollectiveKind,
    /// Elements of the whole: what a gather ends with, what a reduction begins with.
    pub elements: u64,
    /// Bytes of an element on the wire.
    pub element: u64,
    /// Ranks that take part.
    pub ranks: u64,
}

/// Receives allocations, releases and calls in the order in which they happen.
pub trait Sink {
    /// Something of this many bytes begins to live.
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle;

    /// It ends.
    fn free(&mut self, handle: Handle);

    /// Ranks communicate.
    fn communicate(&mut self, _call: Collective) {}

    /// A tensor that lives for one operation.
    fn touch(&mut self, category: Category, place: Place, bytes: u64) {
        let handle = self.allocate(category, place, bytes);
        self.free(handle);
    }
}

/// One running total with its highest point.
#[derive(Debug, Clone, Default)]
struct Meter {
    now: u64,
    peak: u64,
    at_peak: BTreeMap<(Category, Place), u64>,
    /// The present total is the highest so far and what makes it up has not been written down.
    rising: bool,
}

impl Meter {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        if self.now > self.peak {
            self.peak = self.now;
            self.rising = true;
        }
    }

    fn restart(&mut self) {
        self.peak = self.now;
        self.rising = true;
    }

    fn at_peak(&self, alive: &BTreeMap<(Category, Place), u64>) -> Rest {
        rest(if self.rising { alive } else { &self.at_peak })
    }

    /// Writes down what makes up the highest point before it changes.
    fn settle(&mut self, alive: &BTreeMap<(Category, Place), u64>) {
        if self.rising {
            self.at_peak.clone_from(alive);
            self.rising = false;
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    category: Category,
    place: Place,
    bytes: u64,
}

/// Keeps a running total of all that is alive, its highest point, and what was alive there; of everything together
/// and of each place.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    alive: BTreeMap<(Category, Place), u64>,
    everywhere: Meter,
    places: [Meter; Place::ALL.len()],
    /// Categories that are not counted.
    ignored: Vec<Category>,
}

impl Ledger {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty book that does not count these categories; a measurement that cannot see them is compared so.
    pub fn without(ignored: &[Category]) -> Self {
        Self { ignored: ignored.to_vec(), ..Self::default() }
    }

    /// Bytes alive.
    pub fn total(&self) -> Bytes {
        Bytes(self.everywhere.now)
    }

    /// The most bytes that were alive at once, host and device together, since the last [`Ledger::restart`].
    pub fn peak(&self) -> Bytes {
        Bytes(self.everywhere.peak)
    }

    /// The most bytes that were alive at once in a place.
    pub fn peak_in(&self, place: Place) -> Bytes {
        Bytes(self.places[place as usize].peak)
    }

    /// What was alive everywhere at the highest point of the total.
    pub fn at_peak(&self) -> Rest {
        self.everywhere.at_peak(&self.alive)
    }

    /// What was alive everywhere at the highest point of a place.
    pub fn at_peak_in(&self, place: Place) -> Rest {
        self.places[place as usize].at_peak(&self.alive)
    }

    /// What is alive now.
    pub fn alive(&self) -> Rest {
        rest(&self.alive)
    }

    /// Begins a new phase: the highest points are what is alive now.
    pub fn restart(&mut self) {
        self.everywhere.restart();
        self.places.iter_mut().for_each(Meter::restart);
    }
}

fn rest(alive: &BTreeMap<(Category, Place), u64>) -> Rest {
    let mut rest = Rest::default();
    for (&(category, place), &bytes) in alive {
        rest.add(category, place, bytes);
    }
    rest
}

impl Sink for Ledger {
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle {
        let bytes = if self.ignored.contains(&category) { 0 } else { bytes };
        let entry = Entry { category, place, bytes };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        for other in Place::ALL.into_iter().filter(|other| *other != place) {
            self.places[other as usize].settle(&self.alive);
        }
        *self.alive.entry((category, place)).or_default() += bytes;
        self.everywhere.add(bytes);
        self.places[place as usize].add(bytes);
        Handle(index)
    }

    fn free(&mut self, handle: Handle) {
        let Entry { category, place, bytes } = self.entries[handle.0 as usize];
        self.everywhere.settle(&self.alive);
        self.everywhere.now -= bytes;
        self.places.iter_mut().for_each(|meter| meter.settle(&self.alive));
        self.places[place as usize].now -= bytes;
        if let Some(alive) = self.alive.get_mut(&(category, place)) {
            *alive -= bytes;
        }
        self.vacant.push(handle.0);
    }
}

/// Allocations of a rest state, by category, so that a later phase can end them.
#[derive(Debug, Clone, Default)]
pub struct Resident(BTreeMap<Category, Vec<Handle>>);

impl Resident {
    /// Everything of a rest state becomes alive.
    pub fn open(rest: &Rest, sink: &mut impl Sink) -> Self {
        let mut handles = BTreeMap::<Category, Vec<Handle>>::new();
        for (category, place, bytes) in rest.iter() {
            handles.entry(category).or_default().push(sink.allocate(category, place, bytes.0));
        }
        Self(handles)
    }

    /// Ends what is left of a category.
    pub fn free(&mut self, category: Category, sink: &mut impl Sink) {
        for handle in self.0.remove(&category).unwrap_or_default() {
            sink.free(handle);
        }
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
}
