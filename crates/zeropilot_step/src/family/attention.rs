//! Attention parts of decoder layers.

use super::build::Builder;
use super::layer::{Linear, Norm, NormKind, Split};
use super::ulysses::SharedSequence;
use super::{Family, Setup};
use crate::model::{Label, Module};
use crate::primitive::{Heads, HeadsFirst, Mask, Rotary};
use crate::shape::Shape;
use crate::tape::{Category, Tensor};

/// What a layer is given besides its hidden states.
#[derive(Debug)]
pub(super) struct Surroundings<'t> {
    pub(super) rotary: Rotary<'t>,
    pub(super) mask: Option<Tensor<'t>>,
}

/// The attention part of a decoder layer.
#[derive(Debug)]
pub(super) enum Attention {
    Separate(Box<SeparateAttention>),
    Fused(Box<FusedAttention>),
    Latent(Box<LatentAttention>),
}

impl Attention {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        match setup.family {
            Family::Phi3 => Self::Fused(Box::new(FusedAttention::build(parent, setup))),
            Family::DeepseekV3 => Self::Latent(Box::new(LatentAttention::build(parent, setup))),
            _ => Self::Separate(Box::new(SeparateAttention::build(parent, setup))),
        }
    }

    /// Called with keyword arguments only. Returns the output and, where the model computes them
    /// itself, the attention weights.
    pub(super) fn call<'t>(
        &self,
        x: &Tensor<'t>,
        around: &Surroundings<'t>,
    ) -> (Tensor<'t>, Option<Tensor<'t>>) {
        let module = match self {
            Self::Separate(attention) => attention.module,
            Self::Fused(attention) => attention.module,
            Self::Latent(attention) => attention.module,
        };
        let tape = x.tape();
        tape.enter_silently(module);
        let (out, weights) = match self {
            Self::Separate(attention) => attention.run(x, around),
            Self::Fused(attention) => (attention.run(x, around), None),
            Self::Latent(attention) => (attention.run(x, around), None),
        };
        tape.leave_silently(module);
        let weights = weights.map(|weights| tape.wrap_output(module, &weights));
        (tape.wrap_output(module, &out), weights)
    }
}

/// The sizes of self-attention in a decoder.
pub(super) fn self_heads(setup: &Setup) -> Heads {
    let Setup { shape, batch, .. } = setup;
    Heads {
        batch: batch.sequences,
        queries: batch.length,
        keys: batch.length,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        width: shape.head_width,
        value_width: shape.head_width,
    }
}

/// Three projections, perhaps with norms over the heads.
#[derive(Debug)]
pub(super) struct SeparateAttention {
    module: Module,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    head_norms: Option<(Norm, Norm)>,
    heads: Heads,
    kernel: Kernel,
    keeps_cache: bool,
    shared: Option<SharedSequence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Fused,
    /// Fused with a float mask, made from the layer's byte mask.
    Masked,
    EagerWithSoftCap,
}

impl SeparateAttention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let Setup { family, shape, .. } = setup;
        let (width, hidden) = (shape.head_width, shape.hidden);
        let has_bias = matches!(family, Family::Qwen2 | Family::Qwen2Moe);
        let (module, mut at) = parent.inside(Label::Name("self_attn"));
        let ranks = setup.tensor.ranks;
        let mut projection = |name, heads: u64| {
            at.linear(name, hidden, heads * width, has_bias).shared(Split::outputs(ranks))
        };
        let q = projection("q_proj", shape.heads);
        let k = projection("k_proj", shape.kv_heads);
        let v = projection("v_proj", shape.kv_heads);
        let o = at.linear("o_proj", shape.heads * width, hidden, false);
        let o = o.shared(Split::inputs(ranks));
        let norm = match family {
            Family::Qwen3 | Family::Qwen3Moe => Some(NormKind::Rms),
            Family::Gemma3 => Some(NormKind::Gemma),
            _ => None,
        };
        let mut head_norm = |name, kind| Norm { ranks, ..at.norm(name, width, kind) };
        let head_norms = norm.map(|kind| (head_norm("q_norm", kind), head_norm("k_norm", kind)));
        let kernel = match family {
            Family::Gemma2 => Kernel::EagerWithSoftCap,
            _ if setup.is_masked() => Kernel::Masked,
            _ => Kernel::Fused,
        };
        let (heads, keeps_cache) = (self_heads(setup), setup.keeps_cache);
        let shared = SharedSequence::of(heads, setup.long_context.sequence_ranks);
        Self { module, q, k, v, o, head_norms, heads, kernel, keeps_cache, shared }
    }

    fn run<'t>(
        &self,
        x: &Tensor<'t>,
        around: &Surroundings<'t>,
    ) -> (Tensor<'t>, Option<Tensor<'t>>) {
        let (mut q, mut k, v);
        if self.kernel == Kernel::EagerWithSoftCap || self.norms_last() {
            (q, k) = (self.q.call(x).view_with_copied_gradient(), self.key_view(x));
            v = self.value_view(x);
            if let Some((q_norm, k_norm)) = &self.head_norms {
                q = q_norm.call(&q);
                k = k_norm.call(&k);
            }
        } else {
            q = self.q.call(x).view_with_copied_gradient();
            if let Some((norm, _)) = &self.head_norms {
                q = norm.call(&q).view();
            }
            k = self.key_view(x);
            if let Some((_, norm)) = &self.head_norms {
                k = norm.call(&k).view();
            }
            v = self.value_view(x);
        }
        (q, k) = (q.rope(&around.rotary), k.rope(&around.rotary));
        let v = self.cached(&mut k, v);
        let (out, weights) = self.attend(&q, &k, &v, around.mask.as_ref());
        (self.o.call(&out), weights)
    }

    /// Keys and values as attention gets them: a cache takes copies of both.
    fn cached<'t>(&self, k: &mut Tensor<'t>, v: Tensor<'t>) -> Tensor<'t> {
        if !self.keeps_cache {
            return v;
        }
        let (keys, values) = (k.copy(), v.copy());
        k.tape().keep(&keys);
        k.tape().keep(&values);
        *k = keys;
        values
    }

    /// Gemma projects all three before it normalises.
    fn norms_last(&self) -> bool {
        self.head_norms.is_some_and(|(norm, _)| norm.kind == NormKind::Gemma)
    }

    fn attend<'t>(
        &self,
        q: &Tensor<'t>,
        k: &Tensor<'t>,
        v: &Tensor<'t>,
        mask: Option<&Tensor<'t>>,
    ) -> (Tensor<'t>, Option<Tensor<'t>>) {
        if let Some(shared) = self.shared {
            return (shared.attend(q, k, v), None);
        }
        match self.kernel {
            Kernel::Fused => (q.flash(k, v, None, self.heads), None),
            Kernel::Masked => (masked_flash(q, k, v, self.heads), None),
            Kernel::EagerWithSoftCap => {
                let (out, weights) = q.eager_attention(k, v, mask, self.heads, true);
                (out, Some(weights))
            }
        }
    }

    /// A single key head is contiguous either way; several are copied in backward.
    fn key_view<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let key = self.k.call(x);
        if self.heads.kv_heads > 1 { key.view_with_copied_gradient() } else { key.view() }
    }

    fn value_view<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let value = self.v.call(x);
        let is_copied = match self.shared {
            Some(_) => self.heads.batch > 1,
            None => self.kernel != Kernel::Fused && self.heads.kv_heads > 1,
        };
        if is_copied { value.view_with_copied_gradient() } else { value.view() }
    }
}

/// The fused kernel with a byte mask: key heads are repeated, and the mask is turned into floats.
pub(super) fn masked_flash<'t>(
    q: &Tensor<'t>,
    k: &Tensor<'t>,
    v: &Tensor<'t>,
    heads: Heads,
) -> Tensor<'t> {
    let (k, v) = (k.repeat_heads(heads), v.repeat_heads(heads));
    let places = heads.batch * heads.queries * heads.keys;
    let mask = q.tape().fresh(places, q.element_bytes(), Category::Activation);
    let heads = Heads { kv_heads: heads.heads, ..heads };
    q.flash(&k, &v, Some(&mask), heads)
}

/// Phi-3: one projection for query, key and value, and a partial rotation.
#[derive(Debug)]
pub(super) struct FusedAttention {
    module: Module,
    o: Linear,
    qkv: Linear,
    heads: Heads,
    rotated: u64,
}

impl FusedAttention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        let (module, mut at) = parent.inside(Label::Name("self_attn"));
        let width = shape.head_width;
        let all = (shape.heads + 2 * shape.kv_heads) * width;
        Self {
            module,
            o: at.linear("o_proj", shape.heads * width, shape.hidden, false),
            qkv: at.linear("qkv_proj", shape.hidden, all, false),
            heads: self_heads(setup),
            rotated: setup.rotated_width(),
        }
    }

    fn run<'t>(&self, x: &Tensor<'t>, around: &Surroundings<'t>) -> Tensor<'t> {
        let qkv = self.qkv.call(x);
        let tokens = self.heads.batch * self.heads.queries;
        let kv_elements = tokens * self.heads.kv_heads * self.heads.width;
        let mut q = qkv.slice(tokens * self.heads.heads * self.heads.width);
        let mut k = qkv.slice(kv_elements);
        let mut v = qkv.slice(kv_elements);
        q = q.view_with_copied_gradient();
        k = if self.heads.kv_heads > 1 { k.view_with_copied_gradient() } else { k.view() };
        v = v.view();
        (q, k) = q.partial_rope_by_turns(&k, &around.rotary, self.rotated, self.heads.width);
        let out = {
            let made = q.flash(&k, &v, None, self.heads);
            made.view().copy()
        };
        self.o.call(&out)
    }
}

/// DeepSeek: query, key and value through low-rank latents.
#[derive(Debug)]
pub(super) struct LatentAttention {
    module: Module,
    query: Query,
    kv_a: Linear,
    kv_norm: Norm,
    kv_b: Linear,
    o: Linear,
    shape: Shape,
    heads: Heads,
}

/// How the query is made: through a latent of its own, or, in the smaller models, at once.
#[derive(Debug)]
enum Query {
    Latent { down: Box<Linear>, norm: Norm, up: Box<Linear> },
    Whole(Linear),
}

impl Query {
    fn build(at: &mut Builder<'_>, shape: Shape, width: u64) -> Self {
        let (hidden, latent) = (shape.hidden, shape.query_latent);
        if latent == 0 {
            return Self::Whole(at.linear("q_proj", hidden, width, false));
        }
        Self::Latent {
            down: Box::new(at.linear("q_a_proj", hidden, latent, false)),
            norm: at.norm("q_a_layernorm", latent, NormKind::Rms),
            up: Box::new(at.linear("q_b_proj", latent, width, false)),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        match self {
            Self::Whole(linear) => linear.call(x),
            Self::Latent { down, norm, up } => {
                let latent = {
                    let low = down.call(x);
                    norm.call(&low)
                };
                up.call(&latent)
            }
        }
    }
}

impl LatentAttention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        let (module, mut at) = parent.inside(Label::Name("self_attn"));
        let (hidden, heads) = (shape.hidden, shape.heads);
        let width = shape.nope_width + shape.rope_width;
        let kv_width = shape.nope_width + shape.value_width;
        let query = Query::build(&mut at, shape, heads * width);
        let compressed = shape.kv_latent + shape.rope_width;
        let kv_a = at.linear("kv_a_proj_with_mqa", hidden, compressed, false);
        let kv_norm = at.norm("kv_a_layernorm", shape.kv_latent, NormKind::Rms);
        let kv_b = at.linear("kv_b_proj", shape.kv_latent, heads * kv_width, false);
        let o = at.linear("o_proj", heads * shape.value_width, hidden, false);
        let heads =
            Heads { kv_heads: heads, width, value_width: shape.value_width, ..self_heads(setup) };
        Self { module, query, kv_a, kv_norm, kv_b, o, shape, heads }
    }

    fn run<'t>(&self, x: &Tensor<'t>, around: &Surroundings<'t>) -> Tensor<'t> {
        let tokens = self.heads.batch * self.heads.queries;
        let shape = self.shape;
        let q = self.query.call(x).view_with_copied_gradient();
        let nope = tokens * shape.heads * shape.nope_width;
        let [q_pass, mut q_turn] = q.split([nope, tokens * shape.heads * shape.rope_width]);
        let compressed = self.kv_a.call(x);
        let [mut latent, mut k_turn] =
            compressed.split([tokens * shape.kv_latent, tokens * shape.rope_width]);
        latent = self.kv_norm.call(&latent).view();
        k_turn = k_turn.view();
        (q_turn, k_turn) = q_turn.interleaved_rope(&k_turn, &around.rotary);
        let query = q_pass.cat(&q_turn);
        let (key, value) = self.expand(&latent, &k_turn);
        let out = self.attend(&query, &key, &value);
        self.o.call(&out)
    }

    /// The key is a fresh tensor filled by two copies.
    fn expand<'t>(&self, latent: &Tensor<'t>, k_turn: &Tensor<'t>) -> (Tensor<'t>, Tensor<'t>) {
        let tokens = self.heads.batch * self.heads.queries;
        let shape = self.shape;
        let kv = self.kv_b.call(latent).view_with_copied_gradient();
        let per_head = tokens * shape.heads;
        let [k_pass, value] = kv.split([per_head * shape.nope_width, per_head * shape.value_width]);
        let k_turn = k_turn.expand(per_head * shape.rope_width);
        let width = per_head * self.heads.width;
        let mut key = latent.tape().fresh(width, latent.element_bytes(), Category::Activation);
        key = key.fill_slice(&k_pass);
        key = key.fill_slice(&k_turn);
        (key, value)
    }

    fn attend<'t>(&self, q: &Tensor<'t>, k: &Tensor<'t>, v: &Tensor<'t>) -> Tensor<'t> {
        let made = if self.heads.width == self.heads.value_width {
            q.flash(k, v, None, self.heads)
        } else {
            let layout = HeadsFirst { query: true, key: true, value: false };
            q.composed_attention(k, v, &Mask::Causal, self.heads, layout, false)
        };
        made.view().copy()
    }
}
