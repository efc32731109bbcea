//! Segments that grow: one range of addresses per pool and stream, filled with memory page by page.

use super::allocator::Allocator;
use super::blocks::{Block, BlockId, State};
use super::rounding::Pool;

/// More addresses than any device has memory.
const ADDRESSES: u64 = 1 << 46;

impl Allocator {
    /// The size of a free block with the room behind it that has no memory yet.
    pub(super) fn growable_size(&self, id: BlockId) -> u64 {
        let block = self.blocks.get(id);
        let behind = block.next.map(|next| self.blocks.get(next));
        let room = behind.filter(|next| next.state == State::Unmapped).map_or(0, |next| next.size);
        block.size + room
    }

    /// A block of at least this size made of free blocks and new pages, in no index.
    pub(super) fn expand(&mut self, pool: Pool, stream: u16, size: u64) -> Option<BlockId> {
        let mut id = self.room_for(pool, stream, size);
        if self.blocks.get(id).state == State::Unmapped {
            id = self.map(id, size)?;
        }
        while self.blocks.get(id).size < size {
            let block = *self.blocks.get(id);
            let next = block.next.filter(|next| self.blocks.get(*next).state == State::Unmapped)?;
            id = self.map(next, size - block.size)?;
        }
        self.blocks.unindex(id);
        Some(id)
    }

    /// Where so many bytes can become one block: the lowest address first.
    fn room_for(&mut self, pool: Pool, stream: u16, size: u64) -> BlockId {
        let candidates: Vec<BlockId> = self.blocks.unmapped_of(pool, stream).collect();
        for unmapped in candidates {
            let before = self.blocks.get(unmapped).previous;
            let first =
                before.filter(|id| self.blocks.get(*id).state == State::Free).unwrap_or(unmapped);
            if self.contiguous(first, size) {
                return first;
            }
        }
        let address = self.next_address.next_multiple_of(pool.page());
        let room = ADDRESSES / pool.page() * pool.page();
        self.next_address = address + room;
        let id = self.blocks.add(Block {
            stream,
            address,
            size: room,
            pool,
            state: State::Unmapped,
            expandable: true,
            previous: None,
            next: None,
        });
        self.blocks.index(id);
        id
    }

    /// Whether the blocks from this one on, none of them used, add up to so many bytes.
    fn contiguous(&self, first: BlockId, size: u64) -> bool {
        let mut found = 0;
        let mut at = Some(first);
        while let Some(id) = at {
            let block = self.blocks.get(id);
            if block.state == State::Used {
                return false;
            }
            found += block.size;
            if found >= size {
                return true;
            }
            at = block.next;
        }
        false
    }

    /// Puts memory behind the first bytes of an unmapped block, in whole pages. The result is free and indexed, and
    /// has joined its free neighbours.
    fn map(&mut self, id: BlockId, size: u64) -> Option<BlockId> {
        let block = *self.blocks.get(id);
        let mapped = size.next_multiple_of(block.pool.page()).min(block.size);
        self.take_from_driver(mapped)?;
        self.blocks.unindex(id);
        if mapped < block.size {
            let rest = self.blocks.split(id, mapped);
            self.blocks.index(rest);
        }
        self.blocks.get_mut(id).state = State::Free;
        self.blocks.merge(id);
        self.blocks.index(id);
        Some(id)
    }

    /// Takes the memory away from the whole pages of a free block.
    pub(super) fn unmap(&mut self, id: BlockId) {
        let block = *self.blocks.get(id);
        let page = block.pool.page();
        let start = block.address.next_multiple_of(page);
        let end = (block.address + block.size) / page * page;
        if start >= end {
            return;
        }
        self.blocks.unindex(id);
        let mut whole = id;
        if start > block.address {
            whole = self.blocks.split(id, start - block.address);
            self.blocks.index(id);
        }
        if end < block.address + block.size {
            let rest = self.blocks.split(whole, end - start);
            self.blocks.index(rest);
        }
        self.give_back(end - start);
        self.blocks.get_mut(whole).state = State::Unmapped;
        self.blocks.merge(whole);
        self.blocks.index(whole);
    }
}
