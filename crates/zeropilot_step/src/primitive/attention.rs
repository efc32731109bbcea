//! Attention: the fused kernel, and the forms PyTorch and the models compose from other operations.

use super::{operation, product};
use crate::cuda::flash_backward_scratch;
use crate::shape::Segments;
use crate::tape::{
    Accounting, Arithmetic, AttentionForm, Category, Formula, Kernels, Options, Tape, Tensor,
};

/// The sizes of one attention call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Sequences.
    pub batch: u64,
    /// Query positions per sequence.
    pub queries: u64,
    /// Key positions per sequence.
    pub keys: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Elements of a query or key head.
    pub width: u64,
    /// Elements of a value head.
    pub value_width: u64,
}

impl Heads {
    /// Elements of the attention scores.
    #[must_use]
    pub fn scores(&self) -> u64 {
        self.batch * self.heads * self.queries * self.keys
    }

    /// Elements of the output.
    #[must_use]
    pub fn output(&self) -> u64 {
        self.batch * self.queries * self.heads * self.value_width
    }

    /// Operations of both products, every query with every key.
    #[must_use]
    pub fn operations(&self) -> u64 {
        2 * self.scores() * (self.width + self.value_width)
    }

    /// Whether query heads share key and value heads.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.kv_heads < self.heads
    }
}

/// Which operands of a composed attention lie in memory head by head, so that batch and heads merge
/// into one dimension without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeadsFirst {
    /// The query.
    pub query: bool,
    /// The key.
    pub key: bool,
    /// The value.
    pub value: bool,
}

/// The mask a composed attention adds to its scores.
#[derive(Debug)]
pub enum Mask<'a, 't> {
    /// None.
    None,
    /// Made on the spot from `is_causal`.
    Causal,
    /// A float tensor, broadcast over the scores.
    Float(&'a Tensor<'t>),
}

impl<'t> Tensor<'t> {
    /// The fused kernel, with `self` as the query and perhaps a float mask that wants no gradient.
    #[must_use]
    pub fn flash(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        mask: Option<&Tensor<'t>>,
        heads: Heads,
    ) -> Tensor<'t> {
        if self.tape.options().attention == AttentionForm::Eager {
            return self.eager_attention(key, value, mask, heads, false).0;
        }
        // Without a mask the kernel is causal and skips what nobody may see.
        let part = if mask.is_none() && heads.queries == heads.keys { 2 } else { 1 };
        let operations = heads.operations() / part;
        if self.tape.casts_products() {
            let (query, key, value) = (self.cast(2), key.cast(2), value.cast(2));
            return query.fused(&key, &value, mask, heads, operations);
        }
        self.fused(key, value, mask, heads, operations)
    }

    /// The fused kernel where every query sees every key, as in an encoder.
    #[must_use]
    pub fn flash_both_ways(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        heads: Heads,
    ) -> Tensor<'t> {
        if self.tape.options().attention == AttentionForm::Eager {
            return self.eager_attention(key, value, None, heads, false).0;
        }
        self.fused(key, value, None, heads, heads.operations())
    }

    /// Attention within the stretches of a packed sequence: the result, and the pieces it was joined from, which the
    /// model holds as long as its variables.
    ///
    /// The fused kernel for such sequences takes them in one call; all other forms take one stretch after the other and
    /// join the results by a copy.
    #[must_use]
    pub fn packed_attention(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        heads: Heads,
        segments: Segments,
    ) -> (Tensor<'t>, Option<Tensor<'t>>) {
        let operations = 2 * heads.heads * segments.pairs * (heads.width + heads.value_width);
        let form = self.tape.options().attention;
        if form.is_fused() {
            return (self.fused(key, value, None, heads, operations), None);
        }
        let (q, k, v) = (self.in_stretches(), key.in_stretches(), value.in_stretches());
        let out = if form == AttentionForm::Eager {
            q.packed_eager(&k, &v, heads, segments)
        } else {
            q.fused(&k, &v, None, heads, operations)
        };
        // Joined by a copy even if there is only one.
        (out.view().view().joined(), Some(out))
    }

    /// Cut along the sequence: views whose gradients are joined in a new tensor.
    fn in_stretches(&self) -> Tensor<'t> {
        let [whole] = self.split([self.elements]);
        whole
    }

    /// Pieces joined by a copy.
    pub(crate) fn joined(&self) -> Tensor<'t> {
        let inputs = [self.input()];
        let operation = operation(Formula::View, &inputs, &[]);
        self.tape.record(&operation, self.elements, self.element_bytes, false, &[])
    }

    /// Scores and weights of every stretch, in 32 bits for the softmax.
    fn packed_eager(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        heads: Heads,
        segments: Segments,
    ) -> Tensor<'t> {
        let scores = heads.heads * segments.pairs;
        let weights = {
            let scaled = {
                let product = self.matmul(key, scores, heads.width);
                product.scale()
            };
            let wide = scaled.softmax_in_fp32();
            wide.cast(self.element_bytes)
        };
        let mean_length = segments.pairs / segments.length.max(1);
        weights.matmul(value, heads.output(), mean_length).copy()
    }

    fn fused(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        mask: Option<&Tensor<'t>>,
        heads: Heads,
        operations: u64,
    ) -> Tensor<'t> {
        let inputs = [self.input(), key.input(), value.input()];
        let log_sum = 4 * heads.batch * heads.heads * heads.queries;
        let all =
            [self.storage, key.storage, value.storage, mask.map_or(self.storage, |m| m.storage)];
        let saved = if mask.is_some() { &all[..] } else { &all[..3] };
        let arithmetic = Arithmetic::Attention(operations);
        let formula = Formula::FreshAll(self.scratch_of_backward(heads));
        let operation = product(formula, arithmetic, &inputs, saved);
        self.tape.record(&operation, heads.output(), self.element_bytes, true, &[log_sum])
    }

    /// What the kernel's backward allocates for itself; on a CPU nothing that tensors show.
    fn scratch_of_backward(&self, heads: Heads) -> Option<u32> {
        let Options { kernels, attention, .. } = self.tape.options();
        (kernels == Kernels::Cuda).then(|| {
            let element = u64::from(self.element_bytes);
            self.tape.keep_scratch(flash_backward_scratch(&heads, element, attention))
        })
    }

    /// Key or value heads repeated to the number of query heads: a copy, or a view of a single head.
    #[must_use]
    pub fn repeat_heads(&self, heads: Heads) -> Tensor<'t> {
        let elements = self.elements / heads.kv_heads * heads.heads;
        match heads.kv_heads {
            kv_heads if kv_heads == heads.heads => self.clone(),
            1 => self.expand(elements),
            _ => self.repeat(elements),
        }
    }

    /// A single key or value head seen by every query head.
    fn broadcast_heads(&self, heads: Heads) -> Tensor<'t> {
        if heads.is_grouped() {
            self.expand(self.elements / heads.kv_heads * heads.heads)
        } else {
            self.clone()
        }
    }

    /// An operand of a batched product: copied when batch and heads do not merge.
    fn merged(&self, heads: Heads, is_heads_first: bool) -> Tensor<'t> {
        if heads.batch > 1 && !is_heads_first { self.copy() } else { self.view() }
    }

    /// The product of a batched attention seen by heads again: with several sequences the gradient
    /// comes token by token and must be copied.
    fn split_from_batch(&self, heads: Heads) -> Tensor<'t> {
        if heads.batch > 1 { self.view_with_copied_gradient() } else { self.view() }
    }

    /// Scaled dot-product attention composed of plain operations, all in 32 bits.
    ///
    /// PyTorch takes this form when the fused kernel refuses its inputs: dropout on a CPU, a mask that
    /// wants a gradient, other value heads, broadcast key heads.
    #[must_use]
    pub fn composed_attention(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        mask: &Mask<'_, 't>,
        heads: Heads,
        layout: HeadsFirst,
        has_dropout: bool,
    ) -> Tensor<'t> {
        let tape = self.tape;
        if tape.options().kernels == Kernels::Cuda {
            let mask = if let Mask::Float(mask) = mask { Some(*mask) } else { None };
            return self.flash(key, value, mask, heads);
        }
        let (q, k, v) = (self.cast(4), key.cast(4), value.cast(4));
        let q_scaled = q.scale();
        let made = matches!(mask, Mask::Causal).then(|| tape.causal_mask(heads));
        let mut scores = {
            let k_scaled = k.scale();
            let left = q_scaled.merged(heads, layout.query);
            let right = k_scaled.broadcast_heads(heads).merged(heads, layout.key);
            left.matmul(&right, heads.scores(), heads.width)
        };
        scores = match (mask, &made) {
            (Mask::Float(mask), _) => scores.add_mask(mask),
            (_, Some(mask)) => scores.add_mask(mask),
            _ => scores,
        };
        let mut weights = scores.squash();
        drop(scores);
        weights = weights.dropout(has_dropout);
        let _returned = weights.cast(self.element_bytes);
        let out = {
            let right = v.broadcast_heads(heads).merged(heads, layout.value);
            weights.matmul(&right, heads.output(), heads.keys).split_from_batch(heads)
        };
        out.cast(self.element_bytes)
    }

    /// Add a mask; the recorder sees a new tensor, a real run writes into the scores.
    fn add_mask(&self, mask: &Tensor<'t>) -> Tensor<'t> {
        if self.tape.options().accounting == Accounting::Real {
            return self.add_in_place(mask);
        }
        self.add(mask)
    }

    /// Attention as the models write it themselves, with optional soft-capping of the scores: the
    /// output and the attention weights.
    #[must_use]
    pub fn eager_attention(
        &self,
        key: &Tensor<'t>,
        value: &Tensor<'t>,
        mask: Option<&Tensor<'t>>,
        heads: Heads,
        has_soft_cap: bool,
    ) -> (Tensor<'t>, Tensor<'t>) {
        if self.tape.options().attention.is_fused() {
            let part = if heads.queries == heads.keys { 2 } else { 1 };
            let out = self.fused(key, value, None, heads, heads.operations() / part);
            return (out, self.tape.outside(0, self.element_bytes));
        }
        let (key, value) = (key.repeat_heads(heads), value.repeat_heads(heads));
        let is_repeated = heads.is_grouped() && heads.kv_heads > 1;
        let mut weights = {
            let product = {
                let left = self.merged(heads, false);
                let right = key.merged(heads, is_repeated);
                left.matmul(&right, heads.scores(), heads.width)
            };
            product.scale()
        };
        if has_soft_cap {
            weights = weights.scale();
            weights = weights.squash();
            weights = weights.scale();
        }
        if let Some(mask) = mask {
            weights = weights.add(mask);
        }
        weights = {
            let wide = weights.softmax_in_fp32();
            wide.cast(self.element_bytes)
        };
        let out = {
            let right = value.merged(heads, is_repeated);
            weights.matmul(&right, heads.output(), heads.keys).split_from_batch(heads)
        };
        (out.copy(), weights)
    }
}

impl Tape {
    /// The causal mask PyTorch builds when it composes attention: two byte masks, then floats.
    fn causal_mask(&self, heads: Heads) -> Tensor<'_> {
        let places = heads.queries * heads.keys;
        let lower = {
            let _ones = self.fresh(places, 1, Category::Index);
            self.fresh(places, 1, Category::Index)
        };
        let mask = self.fresh(places, 4, Category::Activation);
        drop(lower);
        mask
    }
}

impl<'t> Tensor<'t> {
    /// The product of a batched attention brought back to token order by a copy.
    #[must_use]
    pub fn split_heads_and_copy(&self, heads: Heads) -> Tensor<'t> {
        self.split_from_batch(heads).copy()
    }
}
