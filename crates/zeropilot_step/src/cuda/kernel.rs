//! What CUDA kernels allocate where the operations on a CPU do not.
//!
//! FlashAttention 2 (`csrc/flash_attn/flash_api.cpp` of Dao-AILab/flash-attention, `mha_bwd`; PyTorch's own copy in
//! `aten/src/ATen/native/transformers/cuda/flash_attn` does the same) accumulates the gradient of the queries in fp32
//! and writes gradients of shared keys and values once for every head of the queries. FlashAttention 3
//! (`hopper/flash_api.cpp`) adds those up in fp32, once for every head of the keys.

use crate::primitive::Heads;
use crate::tape::AttentionForm;

/// Sequences are rounded to this in scratch tensors.
const SEQUENCE_STEP: u64 = 128;

/// Head sizes are.
const HEAD_STEP: u64 = 32;

/// Bytes of the tensors that backward of a fused attention makes for itself, in the order in which it does: the row
/// sums, the fp32 gradient of the queries, and, where heads share keys, what the gradients of keys and values are added
/// up from.
pub(crate) fn flash_backward_scratch(
    heads: &Heads,
    element: u64,
    attention: AttentionForm,
) -> Vec<u64> {
    let queries = heads.queries.next_multiple_of(SEQUENCE_STEP);
    let keys = heads.keys.next_multiple_of(SEQUENCE_STEP);
    let wide = |width: u64| width.next_multiple_of(HEAD_STEP);
    let rows = heads.batch * heads.heads * queries;
    let mut scratch = vec![4 * rows, 4 * rows * wide(heads.width)];
    if heads.is_grouped() {
        scratch.extend([heads.width, heads.value_width].map(|width| match attention {
            AttentionForm::Flash3 => 4 * heads.batch * keys * heads.kv_heads * wide(width),
            _ => element * heads.batch * heads.keys * heads.heads * width,
        }));
    }
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One layer of Llama 3.1 8B, one sequence of 8192: 32 heads of 128, 8 of them for keys.
    const LAYER: Heads = Heads {
        batch: 1,
        heads: 32,
        kv_heads: 8,
        queries: 8192,
        keys: 8192,
        width: 128,
        value_width: 128,
    };

    #[test]
    fn flash_attention_allocates_what_its_source_says() {
        // Row sums: 4 bytes × 32 heads × 8192. The fp32 gradient of the queries is 4 × 8192 × 32 × 128, an expanded
        // gradient 2 × 8192 × 32 × 128.
        let second = flash_backward_scratch(&LAYER, 2, AttentionForm::Flash);
        assert_eq!(second, [1 << 20, 128 << 20, 64 << 20, 64 << 20]);
        // Gradients of keys and values: 4 × 8192 × 8 × 128.
        let third = flash_backward_scratch(&LAYER, 2, AttentionForm::Flash3);
        assert_eq!(third, [1 << 20, 128 << 20, 32 << 20, 32 << 20]);
    }

    #[test]
    fn heads_that_share_nothing_need_no_more() {
        let whole = Heads { kv_heads: 32, ..LAYER };
        assert_eq!(flash_backward_scratch(&whole, 2, AttentionForm::Flash).len(), 2);
    }
}
