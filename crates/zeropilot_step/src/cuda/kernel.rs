//! What CUDA kernels allocate where the operations on a CPU do not.
//!
//! FlashAttention 2 (`csrc/flash_attn/flash_api.cpp` of Dao-AILab/flash-attention, `mha_fwd` and `mha_bwd`; PyTorch's
//! own copy in `aten/src/ATen/native/transformers/cuda/flash_attn` does the same) saves a log-sum-exp for every query
//! and accumulates the gradient of the queries in fp32.

use zeropilot_units::Bytes;

/// Sequences are rounded to this in scratch tensors.
const SEQUENCE_STEP: u64 = 128;

/// Head sizes are.
const HEAD_STEP: u64 = 32;

/// The shape of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashAttention {
    /// Sequences.
    pub batch: u64,
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of the keys and values.
    pub key_heads: u64,
    /// Queries of a sequence.
    pub queries: u64,
    /// Keys of a sequence.
    pub keys: u64,
    /// Numbers in a head.
    pub head_size: u64,
    /// Bytes of a number.
    pub element: u64,
}

impl FlashAttention {
    /// The log-sum-exp that forward saves for backward, in fp32.
    pub fn saved(&self) -> Bytes {
        Bytes(4 * self.batch * self.heads * self.queries)
    }

    /// Scratch tensors of backward, one after the other as they are allocated: the row sums, the fp32 gradient of the
    /// queries, and, where keys are shared by heads, the gradients of keys and values for each head of the queries.
    pub fn backward_scratch(&self) -> Vec<Bytes> {
        let queries = self.queries.next_multiple_of(SEQUENCE_STEP);
        let head = self.head_size.next_multiple_of(HEAD_STEP);
        let rows = self.batch * self.heads * queries;
        let mut scratch = vec![Bytes(4 * rows), Bytes(4 * rows * head)];
        if self.key_heads != self.heads {
            let expanded = self.batch * self.keys * self.heads * self.head_size * self.element;
            scratch.extend([Bytes(expanded); 2]);
        }
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One layer of Llama 3.1 8B, one sequence of 8192: 32 heads of 128, 8 of them for keys.
    #[test]
    fn flash_attention_allocates_what_its_source_says() {
        let layer = FlashAttention {
            batch: 1,
            heads: 32,
            key_heads: 8,
            queries: 8192,
            keys: 8192,
            head_size: 128,
            element: 2,
        };
        // 4 bytes × 32 heads × 8192 queries
        assert_eq!(layer.saved(), Bytes(1 << 20));
        // The fp32 gradient of the queries is 4 × 8192 × 32 × 128, an expanded gradient 2 × 8192 × 32 × 128.
        let expected = [Bytes(1 << 20), Bytes(128 << 20), Bytes(64 << 20), Bytes(64 << 20)];
        assert_eq!(layer.backward_scratch(), expected);
    }
}
