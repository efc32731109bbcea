//! Attention over a sequence that several ranks share (DeepSpeed's `UlyssesSPAttentionHF`): ranks exchange their tokens
//! of all heads for all tokens of their heads, attend, and exchange back.

use crate::primitive::Heads;
use crate::tape::Tensor;

/// A sequence that several ranks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedSequence {
    ranks: u64,
    /// What attention sees on this rank: all tokens, some heads.
    local: Heads,
    /// Copies of a key or value head, where there are fewer than ranks.
    copies: u64,
}

impl SharedSequence {
    /// `None` for a rank that has whole sequences. The heads are those of this rank's tokens.
    pub(super) fn of(heads: Heads, ranks: u64) -> Option<Self> {
        if ranks <= 1 {
            return None;
        }
        let copies = (ranks / heads.kv_heads.max(1)).max(1);
        let local = Heads {
            queries: heads.queries * ranks,
            keys: heads.keys * ranks,
            heads: heads.heads / ranks,
            kv_heads: (heads.kv_heads * copies / ranks).max(1),
            ..heads
        };
        Some(Self { ranks, local, copies })
    }

    /// The context of this rank's tokens, as the output projection gets it.
    pub(super) fn attend<'t>(&self, q: &Tensor<'t>, k: &Tensor<'t>, v: &Tensor<'t>) -> Tensor<'t> {
        let Heads { batch, heads, kv_heads, .. } = self.local;
        let out = {
            let tokens = batch * self.local.queries / self.ranks;
            let _positions = q.tape().gather_positions(tokens, self.ranks);
            let mut q = self.combine(q, 1, heads);
            let mut k = self.combine(k, self.copies, kv_heads);
            let mut v = self.combine(v, self.copies, kv_heads);
            q = self.heads_first(&q, heads);
            k = self.heads_first(&k, kv_heads);
            v = self.heads_first(&v, kv_heads);
            let context = {
                let made = q.flash(&k, &v, None, self.local);
                if heads > 1 { made.view().copy() } else { made.view() }
            };
            self.partition(&context)
        };
        if batch > 1 { out.view().copy() } else { out }
    }

    /// This rank's tokens of all heads become all tokens of this rank's heads.
    fn combine<'t>(&self, x: &Tensor<'t>, copies: u64, local_heads: u64) -> Tensor<'t> {
        let packed = {
            let repeated = if copies > 1 { x.repeat(x.elements() * copies) } else { x.view() };
            let parts = if local_heads > 1 {
                repeated.view_with_copied_gradient()
            } else {
                repeated.view()
            };
            parts.copy()
        };
        packed.all_to_all(self.ranks, self.local.batch > 1)
    }

    /// Laid out head by head, by a copy unless it already is.
    fn heads_first<'t>(&self, x: &Tensor<'t>, local_heads: u64) -> Tensor<'t> {
        if local_heads > 1 || self.local.batch > 1 { x.view().copy() } else { x.view() }
    }

    /// All tokens of this rank's heads become this rank's tokens of all heads.
    fn partition<'t>(&self, context: &Tensor<'t>) -> Tensor<'t> {
        let parts = if self.local.batch > 1 { context.view().copy() } else { context.view() };
        let exchanged = parts.all_to_all(self.ranks, true);
        exchanged.view().copy()
    }
}
