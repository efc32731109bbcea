//! The free blocks of a pool in the order in which the allocator takes them.

use super::blocks::{Block, BlockId};
use super::rounding::MIN_BLOCK;

/// Free blocks in the order of best fit: the smallest first, of equal ones that with the lowest address. A training has
/// few sizes and many blocks of each.
#[derive(Debug, Clone, Default)]
pub(super) struct BySize {
    sizes: Vec<OfSize>,
    /// Emptied lists, to be filled again.
    spare: Vec<Vec<(u64, BlockId)>>,
}

#[derive(Debug, Clone)]
struct OfSize {
    key: SizeKey,
    /// By address, the lowest last, where it is taken from.
    blocks: Vec<(u64, BlockId)>,
}

/// The stream, then the size, in one number of 16 and 48 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SizeKey(u64);

impl SizeKey {
    fn new(stream: u16, size: u64) -> Self {
        Self((u64::from(stream) << 48) | (size / MIN_BLOCK))
    }

    fn of(block: &Block) -> Self {
        Self::new(block.stream, block.size)
    }

    fn is_of(self, stream: u16) -> bool {
        self.0 >> 48 == u64::from(stream)
    }
}

impl BySize {
    fn place(&self, key: SizeKey) -> Result<usize, usize> {
        self.sizes.binary_search_by_key(&key, |size| size.key)
    }

    pub(super) fn insert(&mut self, block: &Block, id: BlockId) {
        let key = SizeKey::of(block);
        let place = self.place(key).unwrap_or_else(|place| {
            let blocks = self.spare.pop().unwrap_or_default();
            self.sizes.insert(place, OfSize { key, blocks });
            place
        });
        let blocks = &mut self.sizes[place].blocks;
        let before = blocks.partition_point(|(address, _)| *address > block.address);
        blocks.insert(before, (block.address, id));
    }

    pub(super) fn remove(&mut self, block: &Block) {
        let Ok(place) = self.place(SizeKey::of(block)) else { return };
        let blocks = &mut self.sizes[place].blocks;
        let found = blocks.binary_search_by(|(address, _)| block.address.cmp(address));
        if let Ok(found) = found {
            blocks.remove(found);
        }
        if blocks.is_empty() {
            self.spare.push(self.sizes.remove(place).blocks);
        }
    }

    /// Those of a stream that have this size or more.
    pub(super) fn fitting(&self, stream: u16, size: u64) -> impl Iterator<Item = BlockId> {
        let from = self.place(SizeKey::new(stream, size)).unwrap_or_else(|place| place);
        let of_stream = self.sizes[from..].iter().take_while(move |size| size.key.is_of(stream));
        of_stream.flat_map(|size| size.blocks.iter().rev().map(|(_, id)| *id))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = BlockId> {
        self.sizes.iter().flat_map(|size| size.blocks.iter().rev().map(|(_, id)| *id))
    }
}
