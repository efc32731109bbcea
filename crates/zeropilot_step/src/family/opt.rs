//! OPT.

use super::Setup;
use super::attention::self_heads;
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::layer::{Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::{Heads, HeadsFirst, Mask};
use crate::tape::{Category, Tape, Tensor};

#[derive(Debug)]
pub(super) struct Opt {
    tokens: Embedding,
    positions: Embedding,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Attention,
    act: Module,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    final_norm: Norm,
    has_dropout: bool,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    k: Linear,
    v: Linear,
    q: Linear,
    out: Linear,
    heads: Heads,
    has_dropout: bool,
}

impl Body for Opt {
    // The causal model calls the decoder directly; the module between them is never called.
    const CONTAINER: &'static str = "model.decoder";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            tokens: at.embedding("embed_tokens", shape.vocabulary, shape.hidden),
            positions: at.embedding("embed_positions", shape.positions + 2, shape.hidden),
            norm: at.norm("final_layer_norm", shape.hidden, NormKind::Layer),
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.tokens
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let count = setup.batch.tokens();
        let ids = tape.outside(count, 8);
        let tokens = self.tokens.call_on_input(&ids, setup.switches, false);
        let _mask = tape.fresh(count, 4, Category::Index);
        let place = tape.index_tensor(count);
        let positions = tape.call_by_keyword(self.positions.module, || {
            let shifted = tape.index_tensor(count);
            self.positions.apply(&shifted)
        });
        let mut x = tokens.add(&positions);
        // Drawn for every layer to decide whether it is left out.
        let _chance = tape.fresh(1, 4, Category::Index);
        x = self.run_layers(setup, x, |_| vec![place.clone()]);
        x = self.norm.call(&x);
        x.into()
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
        let (hidden, inner) = (setup.shape.hidden, setup.shape.intermediate);
        let (module, mut at) = parent.inside(item("layers", index));
        Self {
            module,
            attention: Attention::build(&mut at, setup),
            act: at.plain("activation_fn"),
            attention_norm: at.norm("self_attn_layer_norm", hidden, NormKind::Layer),
            up: at.linear("fc1", hidden, inner, true),
            down: at.linear("fc2", inner, hidden, true),
            final_norm: at.norm("final_layer_norm", hidden, NormKind::Layer),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut h = self.attention_norm.call(&x);
            h = self.attention.call(&h);
            h = h.dropout(self.has_dropout);
            // The feed-forward part works on rows of all sequences together.
            h = x.add(&h).view();
            let residual = h.clone();
            h = self.final_norm.call(&h);
            h = self.up.call(&h);
            h = tape.call(self.act, &h, |h| h.squash());
            h = self.down.call(&h);
            h = h.dropout(self.has_dropout);
            residual.add(&h).view()
        })
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(Label::Name("self_attn"));
        Self {
            module,
            k: at.linear("k_proj", hidden, hidden, true),
            v: at.linear("v_proj", hidden, hidden, true),
            q: at.linear("q_proj", hidden, hidden, true),
            out: at.linear("out_proj", hidden, hidden, true),
            heads: self_heads(setup),
            has_dropout: setup.switches.attention_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        x.tape().call_by_keyword(self.module, || {
            let mut q = {
                let plain = self.q.call(x);
                plain.scale()
            };
            q = q.view();
            let k = self.k.call(x);
            let v = self.v.call(x);
            let (k, v) = (k.view(), v.view());
            let out = if self.has_dropout {
                let layout = HeadsFirst::default();
                q.composed_attention(&k, &v, &Mask::Causal, self.heads, layout, true).copy()
            } else {
                q.flash(&k, &v, None, self.heads)
            };
            self.out.call(&out)
        })
    }
}
