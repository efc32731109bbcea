//! What towers with images of one size have in common: attention over all patches of an image.

use crate::family::build::Builder;
use crate::family::layer::{Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::Heads;
use crate::shape::Vision;
use crate::tape::Tensor;

/// Attention of every patch of an image with every other.
#[derive(Debug)]
pub(super) struct Attention {
    module: Module,
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    late: Option<Late>,
    heads: Heads,
}

/// `InternViT` calls modules between the projections and the heads, even where they do nothing.
#[derive(Debug)]
struct Late {
    q_norm: HeadNorm,
    k_norm: HeadNorm,
    dropout: Module,
}

#[derive(Debug)]
enum HeadNorm {
    Rms(Norm),
    Nothing(Module),
}

/// Sequences of so many patches.
pub(super) fn heads(vision: &Vision, length: u64) -> Heads {
    let width = vision.hidden / vision.heads.max(1);
    Heads {
        batch: vision.images.len() as u64,
        queries: length,
        keys: length,
        heads: vision.heads,
        kv_heads: vision.heads,
        width,
        value_width: width,
    }
}

impl Attention {
    /// SigLIP: key, value, query, output.
    pub(super) fn siglip(parent: &mut Builder<'_>, vision: &Vision, length: u64) -> Self {
        let hidden = vision.hidden;
        let (module, mut at) = parent.inside(Label::Name("self_attn"));
        let k = at.linear("k_proj", hidden, hidden, true);
        let v = at.linear("v_proj", hidden, hidden, true);
        let q = at.linear("q_proj", hidden, hidden, true);
        let out = at.linear("out_proj", hidden, hidden, true);
        Self { module, q, k, v, out, late: None, heads: heads(vision, length) }
    }

    /// `InternViT`: query, key, value, output, and the modules around them.
    pub(super) fn intern(parent: &mut Builder<'_>, vision: &Vision, length: u64) -> Self {
        let hidden = vision.hidden;
        let has_bias = vision.has_attention_bias;
        let (module, mut at) = parent.inside(Label::Name("attention"));
        let q = at.linear("q_proj", hidden, hidden, has_bias);
        let k = at.linear("k_proj", hidden, hidden, has_bias);
        let v = at.linear("v_proj", hidden, hidden, has_bias);
        let out = at.linear("projection_layer", hidden, hidden, true);
        let dropout = at.plain("projection_dropout");
        let mut norm = |name| {
            if vision.has_head_norms {
                HeadNorm::Rms(at.norm(name, hidden, NormKind::Rms))
            } else {
                HeadNorm::Nothing(at.plain(name))
            }
        };
        let late = Late { q_norm: norm("q_norm"), k_norm: norm("k_norm"), dropout };
        Self { module, q, k, v, out, late: Some(late), heads: heads(vision, length) }
    }

    pub(super) fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        match &self.late {
            None => tape.call_by_keyword(self.module, || {
                let (q, k, v) =
                    (self.q.call(x).view(), self.k.call(x).view(), self.v.call(x).view());
                let out = q.flash_both_ways(&k, &v, self.heads).view();
                self.out.call(&out)
            }),
            Some(late) => tape.call(self.module, x, |x| {
                let (mut q, mut k, v) = (self.q.call(&x), self.k.call(&x), self.v.call(&x));
                q = late.q_norm.call(&q);
                k = late.k_norm.call(&k);
                let (q, k, v) = (q.view(), k.view(), v.view());
                let attended = q.flash_both_ways(&k, &v, self.heads).view();
                let out = self.out.call(&attended);
                tape.call(late.dropout, &out, |out| out)
            }),
        }
    }
}

impl HeadNorm {
    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        match self {
            Self::Rms(norm) => norm.call(x),
            Self::Nothing(module) => x.tape().call(*module, x, |x| x),
        }
    }
}
