//! From the bytes of tensors to what the driver shows.
//!
//! [`Allocator`] replays allocations and releases as PyTorch's caching allocator serves them and knows how much it
//! reserves, and [`replay`] runs micro steps on it. [`Machine`] has what lies on a GPU beside tensors, each term with bounds and the figures it rests on.

mod allocator;
mod blocks;
mod expandable;
mod facts;
mod free_list;
mod kernel;
mod layer;
mod replay;
mod rounding;

pub use allocator::{Allocation, Allocator, OutOfMemory, Settings};
pub use facts::Observation;
pub(crate) use kernel::flash_backward_scratch;
pub use layer::{Counted, Machine, Term, TermKind};
pub use replay::{Before, Gradients, Replayed, replay};
pub use rounding::{
    LARGE_SEGMENT, MIN_BLOCK, OWN_SEGMENT, SEGMENT_STEP, SMALL_REQUEST, SMALL_SEGMENT, block_size,
    segment_size,
};
