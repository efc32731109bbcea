//! From the bytes of tensors to what the driver shows.
//!
//! [`Allocator`] replays allocations and releases as PyTorch's caching allocator serves them and knows how much it
//! reserves.

mod allocator;
mod blocks;
mod expandable;
mod rounding;

pub use allocator::{Allocation, Allocator, OutOfMemory, Settings};
pub use rounding::{
    LARGE_SEGMENT, MIN_BLOCK, OWN_SEGMENT, SEGMENT_STEP, SMALL_REQUEST, SMALL_SEGMENT, block_size,
    segment_size,
};
