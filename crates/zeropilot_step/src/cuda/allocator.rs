//! PyTorch's caching allocator for CUDA, as far as it decides how much memory is reserved.
//!
//! It follows `c10/cuda/CUDACachingAllocator.cpp`: requests are rounded to blocks, small and large ones have pools of
//! their own, a free block of the stream that fits best is taken and split if enough remains, freed blocks join their
//! neighbours, and only what no free block can serve is asked of the driver. Addresses are assumed to grow with every
//! new segment. Blocks whose release waits for another stream (`record_stream`) and CUDA graphs are not modelled.

use zeropilot_units::Bytes;

use super::blocks::{Block, BlockId, Blocks, State};
use super::rounding::{LARGE_SEGMENT, MIN_BLOCK, Pool, SMALL_REQUEST, block_size, segment_size};

/// What `PYTORCH_CUDA_ALLOC_CONF` says, and how much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// `max_split_size_mb`, in bytes: larger blocks are never split.
    pub max_split_size: Option<u64>,
    /// `expandable_segments:True`.
    pub expandable_segments: bool,
    /// What the driver can give, if that is to be tried.
    pub limit: Option<Bytes>,
}

/// Memory that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation(Option<BlockId>);

/// A request that neither the cache nor the driver could serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What was asked for.
    pub requested: Bytes,
    /// What tensors held then.
    pub allocated: Bytes,
    /// What was reserved then, after all that could be was given back.
    pub reserved: Bytes,
}

/// A total and its highest point.
#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    now: u64,
    peak: u64,
}

impl Gauge {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        self.peak = self.peak.max(self.now);
    }
}

/// The allocator of one device.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    pub(super) settings: Settings,
    pub(super) blocks: Blocks,
    pub(super) next_address: u64,
    allocated: Gauge,
    reserved: Gauge,
    /// All that was ever taken from the driver.
    taken: u64,
}

impl Allocator {
    /// An allocator that has reserved nothing.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Memory for a tensor on the default stream.
    ///
    /// # Errors
    ///
    /// If the limit does not allow it.
    pub fn allocate(&mut self, bytes: u64) -> Result<Allocation, OutOfMemory> {
        self.allocate_on(0, bytes)
    }

    /// Memory for a tensor on a stream. Blocks are reused on their own stream only.
    ///
    /// # Errors
    ///
    /// If the limit does not allow it.
    pub fn allocate_on(&mut self, stream: u16, bytes: u64) -> Result<Allocation, OutOfMemory> {
        if bytes == 0 {
            return Ok(Allocation(None));
        }
        let size = block_size(bytes);
        let pool = Pool::of(size);
        let found = self
            .take_free(pool, stream, size)
            .or_else(|| self.grow(pool, stream, size))
            .or_else(|| {
                self.release_oversize(pool, stream, size)
                    .and_then(|()| self.grow(pool, stream, size))
            })
            .or_else(|| {
                self.empty_cache();
                self.grow(pool, stream, size)
            });
        let Some(id) = found else {
            return Err(OutOfMemory {
                requested: Bytes(bytes),
                allocated: self.allocated(),
                reserved: self.reserved(),
            });
        };
        if self.should_split(pool, self.blocks.get(id).size, size) {
            let rest = self.blocks.split(id, size);
            self.blocks.index(rest);
        }
        let block = self.blocks.get_mut(id);
        block.state = State::Used;
        self.allocated.add(block.size);
        Ok(Allocation(Some(id)))
    }

    /// Gives memory back to the cache.
    pub fn free(&mut self, allocation: Allocation) {
        let Some(id) = allocation.0 else { return };
        let block = self.blocks.get_mut(id);
        debug_assert_eq!(block.state, State::Used, "freed twice");
        self.allocated.now -= block.size;
        block.state = State::Free;
        self.blocks.merge(id);
        self.blocks.index(id);
    }

    /// Gives every segment without a tensor back to the driver, as `torch.cuda.empty_cache` does.
    pub fn empty_cache(&mut self) {
        for id in self.blocks.all_free() {
            let block = *self.blocks.get(id);
            if block.expandable {
                self.unmap(id);
            } else if !block.is_split() {
                self.blocks.remove(id);
                self.give_back(block.size);
            }
        }
    }

    /// What tensors hold: `torch.cuda.memory_allocated`.
    pub fn allocated(&self) -> Bytes {
        Bytes(self.allocated.now)
    }

    /// The most they held: `torch.cuda.max_memory_allocated`.
    pub fn peak_allocated(&self) -> Bytes {
        Bytes(self.allocated.peak)
    }

    /// What was taken from the driver: `torch.cuda.memory_reserved`.
    pub fn reserved(&self) -> Bytes {
        Bytes(self.reserved.now)
    }

    /// The most that was taken: `torch.cuda.max_memory_reserved`.
    pub fn peak_reserved(&self) -> Bytes {
        Bytes(self.reserved.peak)
    }

    /// All that was ever taken from the driver, given back or not.
    pub(super) fn taken(&self) -> Bytes {
        Bytes(self.taken)
    }

    /// Forgets the peaks, as `torch.cuda.reset_peak_memory_stats` does.
    pub fn reset_peaks(&mut self) {
        self.allocated.peak = self.allocated.now;
        self.reserved.peak = self.reserved.now;
    }

    /// The free block that fits best.
    fn best_fit(&self, pool: Pool, stream: u16, size: u64) -> Option<BlockId> {
        let mut fitting = self.blocks.fitting(pool, stream, size);
        let mut best = fitting.next()?;
        if self.settings.expandable_segments {
            // The last block of a growing segment counts with what it could become, so that it is taken last.
            for other in fitting {
                if self.growable_size(other) >= self.growable_size(best) {
                    break;
                }
                best = other;
            }
        }
        Some(best)
    }

    /// The free block to use, out of its index.
    fn take_free(&mut self, pool: Pool, stream: u16, size: u64) -> Option<BlockId> {
        let best = self.best_fit(pool, stream, size)?;
        let found = self.blocks.get(best).size;
        if let Some(max) = self.settings.max_split_size {
            let oversize_for_small = size < max && found >= max;
            let too_large = size >= max && found >= size + LARGE_SEGMENT;
            if oversize_for_small || too_large {
                return None;
            }
        }
        self.blocks.unindex(best);
        Some(best)
    }

    fn should_split(&self, pool: Pool, found: u64, size: u64) -> bool {
        let rest = found - size;
        if pool == Pool::Small || self.settings.expandable_segments {
            rest >= MIN_BLOCK
        } else {
            self.settings.max_split_size.is_none_or(|max| size < max) && rest > SMALL_REQUEST
        }
    }

    /// A block of new memory, in no index.
    fn grow(&mut self, pool: Pool, stream: u16, size: u64) -> Option<BlockId> {
        if self.settings.expandable_segments {
            return self.expand(pool, stream, size);
        }
        let segment = segment_size(size);
        self.take_from_driver(segment)?;
        let address = self.next_address;
        self.next_address += segment;
        Some(self.blocks.add(Block {
            stream,
            address,
            size: segment,
            pool,
            state: State::Free,
            expandable: false,
            previous: None,
            next: None,
        }))
    }

    /// Where large blocks are never split, gives back as many of them as the request needs.
    fn release_oversize(&mut self, pool: Pool, stream: u16, size: u64) -> Option<()> {
        let max = self.settings.max_split_size?;
        let needed = size.max(max);
        let sized = |id: BlockId| (self.blocks.get(id).size, id);
        let oversize: Vec<(u64, BlockId)> =
            self.blocks.fitting(pool, stream, max).map(sized).collect();
        let enough = oversize.iter().position(|(size, _)| *size >= needed);
        let chosen = match enough {
            Some(one) => &oversize[one..=one],
            None => largest(&oversize, needed),
        };
        for (size, id) in chosen {
            self.blocks.remove(*id);
            self.give_back(*size);
        }
        (chosen.iter().map(|(size, _)| size).sum::<u64>() >= needed).then_some(())
    }

    /// Asks the driver for memory; nothing if there is not so much.
    pub(super) fn take_from_driver(&mut self, bytes: u64) -> Option<()> {
        if self.settings.limit.is_some_and(|limit| self.reserved.now + bytes > limit.0) {
            return None;
        }
        self.reserved.add(bytes);
        self.taken += bytes;
        Some(())
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.reserved.now -= bytes;
    }
}

/// The largest of blocks in ascending order that together reach `needed`, or all.
fn largest(ascending: &[(u64, BlockId)], needed: u64) -> &[(u64, BlockId)] {
    let mut total = 0;
    for (index, (size, _)) in ascending.iter().enumerate().rev() {
        total += size;
        if total >= needed {
            return &ascending[index..];
        }
    }
    ascending
}
