//! How large the pieces are in which PyTorch's CUDA allocator hands out memory.
//!
//! The numbers are those of `c10/core/AllocatorConfig.h`, which every PyTorch installs; a test compares them with it.

/// Every size is a multiple of this.
pub const MIN_BLOCK: u64 = 512;

/// The largest request that is served from the small pool.
pub const SMALL_REQUEST: u64 = 1 << 20;

/// A segment of the small pool.
pub const SMALL_SEGMENT: u64 = 2 << 20;

/// Requests from here on get a segment of their own size.
pub const OWN_SEGMENT: u64 = 10 << 20;

/// A segment for requests below that.
pub const LARGE_SEGMENT: u64 = 20 << 20;

/// Segments of their own size are multiples of this.
pub const SEGMENT_STEP: u64 = 2 << 20;

/// Small and large requests never share a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pool {
    Small,
    Large,
}

impl Pool {
    /// The pool that serves a block of this size.
    pub(super) fn of(block: u64) -> Self {
        if block <= SMALL_REQUEST { Self::Small } else { Self::Large }
    }

    /// The pages in which an expandable segment of this pool grows.
    pub(super) fn page(self) -> u64 {
        match self {
            Self::Small => SMALL_SEGMENT,
            Self::Large => LARGE_SEGMENT,
        }
    }
}

/// What a request takes of a segment.
pub fn block_size(request: u64) -> u64 {
    request.max(1).next_multiple_of(MIN_BLOCK)
}

/// What is asked of the driver for a block that no cached memory holds.
pub fn segment_size(block: u64) -> u64 {
    if block <= SMALL_REQUEST {
        SMALL_SEGMENT
    } else if block < OWN_SEGMENT {
        LARGE_SEGMENT
    } else {
        block.next_multiple_of(SEGMENT_STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_up_to_blocks_and_blocks_to_segments() {
        let mib = 1 << 20;
        let cases = [
            (1, 512, 2 * mib),
            (512, 512, 2 * mib),
            (513, 1024, 2 * mib),
            (mib, mib, 2 * mib),
            (mib + 1, mib + 512, 20 * mib),
            (10 * mib - 512, 10 * mib - 512, 20 * mib),
            (10 * mib, 10 * mib, 10 * mib),
            (11 * mib, 11 * mib, 12 * mib),
        ];
        for (request, block, segment) in cases {
            assert_eq!((block_size(request), segment_size(block)), (block, segment), "{request}");
        }
    }
}
