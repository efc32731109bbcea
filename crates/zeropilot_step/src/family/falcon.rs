//! Falcon with one key head and parallel branches.

use super::Setup;
use super::attention::self_heads;
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::layer::{Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::{Heads, HeadsFirst, LinearKind, Mask, Rotary};
use crate::tape::{Category, Tape, Tensor};

#[derive(Debug)]
pub(super) struct Falcon {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Norm,
    rotary: Module,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Attention,
    mlp: Mlp,
    input_norm: Norm,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    dense: Linear,
    heads: Heads,
}

#[derive(Debug)]
struct Mlp {
    module: Module,
    up: Linear,
    act: Module,
    down: Linear,
}

impl Body for Falcon {
    const CONTAINER: &'static str = "transformer";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            embedding: at.embedding("word_embeddings", shape.vocabulary, shape.hidden),
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
            norm: at.norm("ln_f", shape.hidden, NormKind::Layer),
            rotary: at.plain("rotary_emb"),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let ids = tape.outside(setup.batch.tokens(), 8);
        let embedded = self.embedding.call_on_input(&ids, setup.switches, false);
        let length = setup.batch.length;
        let positions = tape.index_tensor(length);
        let mask = tape.fresh(length * length, 1, Category::Index);
        tape.enter_silently(self.rotary);
        let rotary = tape.rotary(length, setup.rotated_width(), setup.training.element_bytes);
        tape.leave_silently(self.rotary);
        let others = [rotary.cos.clone(), rotary.sin.clone(), positions, mask];
        let mut x = self.run_layers(setup, embedded.clone(), |_| others.to_vec());
        x = self.norm.call(&x);
        x.into()
    }

    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        let rotary = Rotary { cos: arguments[1].clone(), sin: arguments[2].clone() };
        self.layers[index].call(&arguments[0], &rotary)
    }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u64) -> Self {
        let (module, mut at) = parent.inside(item("h", index));
        Self {
            module,
            attention: Attention::build(&mut at, setup),
            mlp: Mlp::build(&mut at, setup),
            input_norm: at.norm("input_layernorm", setup.shape.hidden, NormKind::Layer),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| {
            let normed = self.input_norm.call(&x);
            let attended = self.attention.call(&normed, rotary);
            let mut fed = self.mlp.call(&normed);
            fed = fed.add_in_place(&attended);
            x.add(&fed)
        })
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let (hidden, width) = (setup.shape.hidden, setup.shape.head_width);
        let (module, mut at) = parent.inside(Label::Name("self_attention"));
        let all = hidden + 2 * width;
        let qkv = at.linear_of("query_key_value", hidden, all, false, LinearKind::Product);
        let dense = at.linear_of("dense", hidden, hidden, false, LinearKind::Product);
        at.plain("attention_dropout");
        let heads = Heads { kv_heads: 1, ..self_heads(setup) };
        Self { module, qkv, dense, heads }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let fused = self.qkv.call(&x).view();
            let mut q = fused.slice(x.elements());
            let mut k = self.pick_head(&fused);
            let v = self.pick_head(&fused);
            (q, k) = (q.rope(rotary), k.rope(rotary));
            let mut out = {
                let places = self.heads.batch * self.heads.queries * self.heads.keys;
                let mask = tape.fresh(places, x.element_bytes(), Category::Activation);
                let layout = HeadsFirst::default();
                q.composed_attention(&k, &v, &Mask::Float(&mask), self.heads, layout, false)
            };
            out = out.copy();
            self.dense.call(&out)
        })
    }

    /// One head picked by a list of one index, which copies it.
    fn pick_head<'t>(&self, fused: &Tensor<'t>) -> Tensor<'t> {
        let index = fused.tape().index_tensor(1);
        let elements = self.heads.batch * self.heads.queries * self.heads.width;
        fused.gather_rows(&index, elements)
    }
}

impl Mlp {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let (hidden, inner) = (setup.shape.hidden, setup.shape.intermediate);
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        Self {
            module,
            up: at.linear_of("dense_h_to_4h", hidden, inner, false, LinearKind::Product),
            act: at.plain("act"),
            down: at.linear_of("dense_4h_to_h", inner, hidden, false, LinearKind::Product),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let h = {
                let up = self.up.call(&x);
                tape.call(self.act, &up, |up| up.activate())
            };
            self.down.call(&h)
        })
    }
}
