//! GPT-NeoX, with parallel residual branches.

use super::Setup;
use super::attention::self_heads;
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::layer::{Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::{Heads, HeadsFirst, Mask, Rotary};
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(super) struct GptNeoX {
    embedding: Embedding,
    dropout: Module,
    layers: Vec<Layer>,
    norm: Norm,
    rotary: Module,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    input_norm: Norm,
    post_norm: Norm,
    attention_dropout: Module,
    mlp_dropout: Module,
    has_dropout: bool,
    attention: Attention,
    mlp: Mlp,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    dense: Linear,
    heads: Heads,
    rotated: u64,
    has_dropout: bool,
}

#[derive(Debug)]
struct Mlp {
    module: Module,
    up: Linear,
    down: Linear,
    act: Module,
}

impl Body for GptNeoX {
    const CONTAINER: &'static str = "gpt_neox";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            embedding: at.embedding("embed_in", shape.vocabulary, shape.hidden),
            dropout: at.plain("emb_dropout"),
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
            norm: at.norm("final_layer_norm", shape.hidden, NormKind::Layer),
            rotary: at.plain("rotary_emb"),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let ids = tape.outside(setup.batch.tokens(), 8);
        let embedded = self.embedding.call_on_input(&ids, setup.switches, false);
        let positions = tape.index_tensor(setup.batch.length);
        let drops = setup.switches.embedding_dropout;
        let mut x = tape.call(self.dropout, &embedded, |x| x.dropout(drops));
        tape.enter_silently(self.rotary);
        let rotary =
            tape.rotary(setup.batch.length, setup.rotated_width(), setup.training.element_bytes);
        tape.leave_silently(self.rotary);
        let others = [rotary.cos.clone(), rotary.sin.clone(), positions];
        x = self.run_layers(setup, x, |_| others.to_vec());
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
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(item("layers", index));
        Self {
            module,
            input_norm: at.norm("input_layernorm", hidden, NormKind::Layer),
            post_norm: at.norm("post_attention_layernorm", hidden, NormKind::Layer),
            attention_dropout: at.plain("post_attention_dropout"),
            mlp_dropout: at.plain("post_mlp_dropout"),
            attention: Attention::build(&mut at, setup),
            mlp: Mlp::build(&mut at, hidden, setup.shape.intermediate),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut attended = {
                let h = self.input_norm.call(&x);
                self.attention.call(&h, rotary)
            };
            attended =
                tape.call(self.attention_dropout, &attended, |h| h.dropout(self.has_dropout));
            let mut fed = {
                let h = self.post_norm.call(&x);
                self.mlp.call(&h)
            };
            fed = tape.call(self.mlp_dropout, &fed, |h| h.dropout(self.has_dropout));
            let both = fed.add(&attended);
            both.add(&x)
        })
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(Label::Name("attention"));
        Self {
            module,
            qkv: at.linear("query_key_value", hidden, 3 * hidden, true),
            dense: at.linear("dense", hidden, hidden, true),
            heads: self_heads(setup),
            rotated: setup.rotated_width(),
            has_dropout: setup.switches.attention_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| {
            let qkv = self.qkv.call(&x).view_with_copied_gradient();
            let [mut q, mut k, v] = qkv.split([x.elements(); 3]);
            (q, k) = q.partial_rope_together(&k, rotary, self.rotated, self.heads.width);
            let out = {
                let made = if self.has_dropout {
                    let layout = HeadsFirst::default();
                    q.composed_attention(&k, &v, &Mask::Causal, self.heads, layout, true)
                } else {
                    q.flash(&k, &v, None, self.heads)
                };
                made.copy()
            };
            self.dense.call(&out)
        })
    }
}

impl Mlp {
    fn build(parent: &mut Builder<'_>, hidden: u64, inner: u64) -> Self {
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        Self {
            module,
            up: at.linear("dense_h_to_4h", hidden, inner, true),
            down: at.linear("dense_4h_to_h", inner, hidden, true),
            act: at.plain("act"),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut h = self.up.call(&x);
            h = tape.call(self.act, &h, |h| h.activate());
            self.down.call(&h)
        })
    }
}
