//! The blocks that segments are cut into: neighbours in a list, free ones in order of size.

use std::collections::BTreeSet;

use super::free_list::BySize;
use super::rounding::Pool;

/// A block by its place in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BlockId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A tensor lives in it.
    Used,
    /// Cached for the next request.
    Free,
    /// Address space of an expandable segment without memory behind it.
    Unmapped,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) stream: u16,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) pool: Pool,
    pub(super) state: State,
    /// Whether it belongs to a segment that can grow.
    pub(super) expandable: bool,
    pub(super) previous: Option<BlockId>,
    pub(super) next: Option<BlockId>,
}

impl Block {
    /// Whether other blocks share its segment.
    pub(super) fn is_split(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    arena: Vec<Block>,
    vacant: Vec<BlockId>,
    small: BySize,
    large: BySize,
    /// By pool, stream and address.
    unmapped: BTreeSet<(bool, u16, u64, BlockId)>,
}

impl Blocks {
    pub(super) fn get(&self, id: BlockId) -> &Block {
        &self.arena[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.arena[id.0 as usize]
    }

    /// A block that is in no index yet.
    pub(super) fn add(&mut self, block: Block) -> BlockId {
        if let Some(id) = self.vacant.pop() {
            *self.get_mut(id) = block;
            return id;
        }
        self.arena.push(block);
        BlockId(u32::try_from(self.arena.len() - 1).expect("fewer than 2^32 blocks"))
    }

    /// The free blocks of a pool and stream that have this size or more, best fit first.
    pub(super) fn fitting(
        &self,
        pool: Pool,
        stream: u16,
        size: u64,
    ) -> impl Iterator<Item = BlockId> {
        let free = match pool {
            Pool::Small => &self.small,
            Pool::Large => &self.large,
        };
        free.fitting(stream, size)
    }

    /// Writes a free or unmapped block into its index.
    pub(super) fn index(&mut self, id: BlockId) {
        let block = *self.get(id);
        match block.state {
            State::Used => {}
            State::Free => {
                let free = match block.pool {
                    Pool::Small => &mut self.small,
                    Pool::Large => &mut self.large,
                };
                free.insert(&block, id);
            }
            State::Unmapped => {
                let small = block.pool == Pool::Small;
                self.unmapped.insert((small, block.stream, block.address, id));
            }
        }
    }

    /// Takes a free or unmapped block out of its index, before it changes.
    pub(super) fn unindex(&mut self, id: BlockId) {
        let block = *self.get(id);
        match block.state {
            State::Used => {}
            State::Free => {
                let free = match block.pool {
                    Pool::Small => &mut self.small,
                    Pool::Large => &mut self.large,
                };
                free.remove(&block);
            }
            State::Unmapped => {
                let small = block.pool == Pool::Small;
                self.unmapped.remove(&(small, block.stream, block.address, id));
            }
        }
    }

    /// The unmapped blocks of a pool and stream, lowest address first.
    pub(super) fn unmapped_of(&self, pool: Pool, stream: u16) -> impl Iterator<Item = BlockId> {
        let small = pool == Pool::Small;
        let from = (small, stream, 0, BlockId(0));
        self.unmapped
            .range(from..)
            .take_while(move |(of_small, of_stream, ..)| *of_small == small && *of_stream == stream)
            .map(|(.., id)| *id)
    }

    /// Cuts the first `size` bytes off a block that is in no index. Returns the rest, in none either.
    pub(super) fn split(&mut self, id: BlockId, size: u64) -> BlockId {
        let block = *self.get(id);
        let rest = self.add(Block {
            address: block.address + size,
            size: block.size - size,
            previous: Some(id),
            ..block
        });
        if let Some(next) = block.next {
            self.get_mut(next).previous = Some(rest);
        }
        let first = self.get_mut(id);
        first.size = size;
        first.next = Some(rest);
        rest
    }

    /// Joins a block, in no index, with the neighbours of its own state.
    pub(super) fn merge(&mut self, id: BlockId) {
        let Block { state, previous, next, .. } = *self.get(id);
        if let Some(before) = previous.filter(|other| self.get(*other).state == state) {
            self.unindex(before);
            let Block { address, size, previous, .. } = *self.get(before);
            let block = self.get_mut(id);
            block.address = address;
            block.size += size;
            block.previous = previous;
            if let Some(previous) = previous {
                self.get_mut(previous).next = Some(id);
            }
            self.vacant.push(before);
        }
        if let Some(after) = next.filter(|other| self.get(*other).state == state) {
            self.unindex(after);
            let Block { size, next, .. } = *self.get(after);
            let block = self.get_mut(id);
            block.size += size;
            block.next = next;
            if let Some(next) = next {
                self.get_mut(next).previous = Some(id);
            }
            self.vacant.push(after);
        }
    }

    /// Forgets a block that is a whole segment.
    pub(super) fn remove(&mut self, id: BlockId) {
        self.unindex(id);
        self.vacant.push(id);
    }

    /// Every free block, whatever its pool.
    pub(super) fn all_free(&self) -> Vec<BlockId> {
        self.large.all().chain(self.small.all()).collect()
    }
}
