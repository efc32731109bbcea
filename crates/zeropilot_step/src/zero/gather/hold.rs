//! Storages that outlive the release of their parameter.

use crate::zero::sink::Handle;

/// A reference to the storage a parameter had when it was taken; the storage outlives a release of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold(Handle);

/// A storage that is held: how often, and whether only holds are left.
#[derive(Debug, Clone, Copy)]
struct Held {
    storage: Handle,
    times: u32,
    released: bool,
}

/// All that are held: few at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds(Vec<Held>);

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, storage: Handle) -> Option<usize> {
        self.0.iter().rposition(|held| held.storage == storage)
    }

    pub(super) fn hold(&mut self, storage: Handle) -> Hold {
        match self.place(storage) {
            Some(place) => self.0[place].times += 1,
            None => self.0.push(Held { storage, times: 1, released: false }),
        }
        Hold(storage)
    }

    /// The parameter lets go of its storage; whether nobody holds it.
    pub(super) fn release(&mut self, storage: Handle) -> bool {
        let place = self.place(storage);
        if let Some(place) = place {
            self.0[place].released = true;
        }
        place.is_none()
    }

    /// Ends a hold; the storage, if nobody needs it any more.
    pub(super) fn let_go(&mut self, Hold(storage): Hold) -> Option<Handle> {
        let place = self.place(storage)?;
        let held = &mut self.0[place];
        held.times -= 1;
        (held.times == 0 && self.0.swap_remove(place).released).then_some(storage)
    }
}
