//! GPT-2.

use super::Setup;
use super::attention::self_heads;
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::layer::{Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::{Heads, HeadsFirst, LinearKind, Mask};
use crate::shape::Switches;
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(super) struct Gpt2 {
    tokens: Embedding,
    positions: Embedding,
    dropout: Module,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    norm_1: Norm,
    attention: Attention,
    norm_2: Norm,
    mlp: Mlp,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    out: Linear,
    residual_dropout: Module,
    heads: Heads,
    switches: Switches,
}

#[derive(Debug)]
struct Mlp {
    module: Module,
    up: Linear,
    down: Linear,
    act: Module,
    dropout: Module,
    has_dropout: bool,
}

impl Body for Gpt2 {
    const CONTAINER: &'static str = "transformer";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            tokens: at.embedding("wte", shape.vocabulary, shape.hidden),
            positions: at.embedding("wpe", shape.positions, shape.hidden),
            dropout: at.plain("drop"),
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
            norm: at.norm("ln_f", shape.hidden, NormKind::Layer),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.tokens
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let ids = tape.outside(setup.batch.tokens(), 8);
        let tokens = self.tokens.call_on_input(&ids, setup.switches, false);
        let place = tape.index_tensor(setup.batch.length);
        let positions = self.positions.call(&place);
        let mut x = tokens.add(&positions);
        x = tape.call(self.dropout, &x, |x| x.dropout(setup.switches.embedding_dropout));
        x = self.run_layers(setup, x, |_| vec![place.clone()]);
        x = self.norm.call(&x);
        x.view().into()
    }

    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.layers[index].call(&arguments[0])
    }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u64) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(item("h", index));
        Self {
            module,
            norm_1: at.norm("ln_1", hidden, NormKind::Layer),
            attention: Attention::build(&mut at, setup),
            norm_2: at.norm("ln_2", hidden, NormKind::Layer),
            mlp: Mlp::build(&mut at, setup),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| {
            let mut h = self.norm_1.call(&x);
            let attended = self.attention.call(&h);
            h = attended.add(&x);
            let residual = h.clone();
            h = self.norm_2.call(&h);
            let fed = self.mlp.call(&h);
            residual.add(&fed)
        })
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(Label::Name("attn"));
        let qkv = at.linear_of("c_attn", hidden, 3 * hidden, true, LinearKind::Conv1d);
        let out = at.linear_of("c_proj", hidden, hidden, true, LinearKind::Conv1d);
        at.plain("attn_dropout");
        let residual_dropout = at.plain("resid_dropout");
        let (heads, switches) = (self_heads(setup), setup.switches);
        Self { module, qkv, out, residual_dropout, heads, switches }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let [q, k, v] = {
                let qkv = self.qkv.call(&x);
                qkv.split([x.elements(); 3])
            };
            let view = |tensor: Tensor<'t>| {
                if self.switches.attention_dropout {
                    tensor.view_with_copied_gradient()
                } else {
                    tensor.view()
                }
            };
            // The gradient of the key comes out in token order.
            let (k, v) = (k.view(), view(v));
            let q = view(q);
            let mut out = self.attend(&q, &k, &v);
            out = self.out.call(&out);
            tape.call(self.residual_dropout, &out, |out| {
                out.dropout(self.switches.residual_dropout)
            })
        })
    }

    fn attend<'t>(&self, q: &Tensor<'t>, k: &Tensor<'t>, v: &Tensor<'t>) -> Tensor<'t> {
        if !self.switches.attention_dropout {
            return q.flash(k, v, None, self.heads);
        }
        let layout = HeadsFirst::default();
        let made = q.composed_attention(k, v, &Mask::Causal, self.heads, layout, true);
        made.copy()
    }
}

impl Mlp {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let (hidden, inner) = (setup.shape.hidden, setup.shape.intermediate);
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        Self {
            module,
            up: at.linear_of("c_fc", hidden, inner, true, LinearKind::Conv1d),
            down: at.linear_of("c_proj", inner, hidden, true, LinearKind::Conv1d),
            act: at.plain("act"),
            dropout: at.plain("dropout"),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut h = self.up.call(&x);
            h = tape.call(self.act, &h, |h| h.gelu_new());
            h = self.down.call(&h);
            tape.call(self.dropout, &h, |h| h.dropout(self.has_dropout))
        })
    }
}
