//! BLOOM.

use super::Setup;
use super::attention::self_heads;
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::layer::{Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::Heads;
use crate::shape::Switches;
use crate::tape::{Category, Tape, Tensor};

#[derive(Debug)]
pub(super) struct Bloom {
    embedding: Embedding,
    embedding_norm: Norm,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    input_norm: Norm,
    attention: Attention,
    post_norm: Norm,
    mlp: Mlp,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    dense: Linear,
    dropout: Module,
    heads: Heads,
    drops: Switches,
}

#[derive(Debug)]
struct Mlp {
    module: Module,
    up: Linear,
    gelu: Module,
    down: Linear,
    has_dropout: bool,
}

impl Body for Bloom {
    const CONTAINER: &'static str = "transformer";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            embedding: at.embedding("word_embeddings", shape.vocabulary, shape.hidden),
            embedding_norm: at.norm("word_embeddings_layernorm", shape.hidden, NormKind::Layer),
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
            norm: at.norm("ln_f", shape.hidden, NormKind::Layer),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let ids = tape.outside(setup.batch.tokens(), 8);
        let embedded = self.embedding.call_on_input(&ids, setup.switches, false);
        let mut x = self.embedding_norm.call(&embedded);
        let (sequences, length) = (setup.batch.sequences, setup.batch.length);
        let bytes = setup.training.element_bytes;
        let _slopes = tape.fresh(setup.shape.heads, 4, Category::Activation);
        let alibi = {
            let places = sequences * setup.shape.heads * length;
            let _wide = tape.fresh(places, 4, Category::Activation);
            tape.fresh(places, bytes, Category::Activation)
        };
        let mask = tape.fresh(sequences * length * length, bytes, Category::Activation);
        let others = [alibi, mask];
        let _weights;
        (x, _weights) = self.run_with_weights(setup, x, &others);
        x = self.norm.call(&x);
        x.into()
    }

    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.layers[index].call(arguments).0
    }
}

impl Bloom {
    /// The layers return their attention probabilities too; each lives until the next
    /// layer returns, the last one until the body does.
    fn run_with_weights<'t>(
        &self,
        setup: &Setup,
        first: Tensor<'t>,
        others: &[Tensor<'t>],
    ) -> (Tensor<'t>, Option<Tensor<'t>>) {
        let tape = first.tape();
        let mut x = first;
        let mut weights = None;
        for (index, layer) in self.layers.iter().enumerate() {
            tape.layer_border();
            let mut arguments = vec![x.clone()];
            arguments.extend_from_slice(others);
            let made;
            let key = super::causal::key(index);
            (x, made) = tape.part(key, setup.switches.checkpointing, arguments, |arguments| {
                layer.call(arguments)
            });
            weights = Some(made);
        }
        tape.layer_border();
        (x, weights)
    }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u64) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(item("h", index));
        Self {
            module,
            input_norm: at.norm("input_layernorm", hidden, NormKind::Layer),
            attention: Attention::build(&mut at, setup),
            post_norm: at.norm("post_attention_layernorm", hidden, NormKind::Layer),
            mlp: Mlp::build(&mut at, hidden, setup.switches.residual_dropout),
        }
    }

    /// Arguments: hidden states, alibi, mask. Returns the output and the attention probabilities.
    fn call<'t>(&self, arguments: &[Tensor<'t>]) -> (Tensor<'t>, Tensor<'t>) {
        let tape = arguments[0].tape();
        let x = tape.enter(self.module, &arguments[0]);
        let mut normed = self.input_norm.call(&x);
        let (attended, weights) = self.attention.call(&normed, &x, &arguments[1], &arguments[2]);
        normed = self.post_norm.call(&attended);
        let out = self.mlp.call(&normed, &attended);
        tape.leave_silently(self.module);
        (tape.wrap_output(self.module, &out), tape.wrap_output(self.module, &weights))
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(Label::Name("self_attention"));
        Self {
            module,
            qkv: at.linear("query_key_value", hidden, 3 * hidden, true),
            dense: at.linear("dense", hidden, hidden, true),
            dropout: at.plain("attention_dropout"),
            heads: self_heads(setup),
            drops: setup.switches,
        }
    }

    fn call<'t>(
        &self,
        x: &Tensor<'t>,
        residual: &Tensor<'t>,
        alibi: &Tensor<'t>,
        mask: &Tensor<'t>,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let tape = x.tape();
        let x = tape.enter(self.module, x);
        let residual = tape.wrap_argument(self.module, residual);
        let (out, weights) = self.run(&x, &residual, alibi, mask);
        tape.leave_silently(self.module);
        (tape.wrap_output(self.module, &out), tape.wrap_output(self.module, &weights))
    }

    fn run<'t>(
        &self,
        x: &Tensor<'t>,
        residual: &Tensor<'t>,
        alibi: &Tensor<'t>,
        mask: &Tensor<'t>,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let tape = x.tape();
        let fused = self.qkv.call(x).view();
        let part = || fused.slice(x.elements());
        let (q, k, v) = (part(), part(), part());
        let q = self.merge(q);
        let k = self.merge(k);
        let v = self.merge(v);
        let scores = alibi.add_scaled_product(&q, &k, self.heads.scores(), self.heads.width);
        let weights = scores.add(mask);
        let mut probabilities = {
            let wide = weights.softmax_in_fp32();
            wide.cast(x.element_bytes())
        };
        let dropped =
            tape.call(self.dropout, &probabilities, |it| it.dropout(self.drops.attention_dropout));
        probabilities = dropped;
        let mut context = probabilities.matmul(&v, self.heads.output(), self.heads.keys);
        context = context.split_heads_and_copy(self.heads);
        let out = {
            let dense = self.dense.call(&context).dropout(self.drops.residual_dropout);
            residual.add(&dense)
        };
        (out, probabilities)
    }

    /// Heads of several sequences in one dimension: a copy.
    fn merge<'t>(&self, part: Tensor<'t>) -> Tensor<'t> {
        if self.heads.batch > 1 { part.copy() } else { part.view() }
    }
}

impl Mlp {
    fn build(parent: &mut Builder<'_>, hidden: u64, has_dropout: bool) -> Self {
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        Self {
            module,
            up: at.linear("dense_h_to_4h", hidden, 4 * hidden, true),
            gelu: at.plain("gelu_impl"),
            down: at.linear("dense_4h_to_h", 4 * hidden, hidden, true),
            has_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, residual: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        let x = tape.enter(self.module, x);
        let residual = tape.wrap_argument(self.module, residual);
        let h = {
            let up = self.up.call(&x);
            tape.call(self.gelu, &up, |up| up.bloom_gelu())
        };
        let out = {
            let down = self.down.call(&h).dropout(self.has_dropout);
            residual.add(&down)
        };
        tape.leave(self.module, out)
    }
}
