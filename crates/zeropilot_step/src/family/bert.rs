//! BERT, with a masked-language-model head or a sequence classifier.

use super::attention::self_heads;
use super::build::{Builder, add_tops, item};
use super::layer::{Embedding, Linear, Norm, NormKind, Wrapper};
use super::{Family, Output, Program, Setup, leave_tops};
use crate::model::{Label, Model, Module};
use crate::primitive::{Heads, HeadsFirst, LinearKind, Mask};
use crate::shape::Switches;
use crate::tape::{Mark, Rerun, Tape, Tensor};

#[derive(Debug)]
pub(super) struct Bert {
    model: Model,
    setup: Setup,
    tops: Vec<Module>,
    body: Module,
    embeddings: Embeddings,
    encoder: Module,
    layers: Vec<Layer>,
    head: Head,
}

#[derive(Debug)]
struct Embeddings {
    module: Module,
    words: Embedding,
    positions: Embedding,
    types: Embedding,
    norm: Norm,
    dropout: Module,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Module,
    own: Module,
    q: Linear,
    k: Linear,
    v: Linear,
    attention_output: Residual,
    intermediate: Module,
    up: Linear,
    act: Module,
    output: Residual,
    heads: Heads,
    switches: Switches,
}

/// A projection, dropout, and a norm over the sum with the input.
#[derive(Debug)]
struct Residual {
    module: Module,
    dense: Linear,
    norm: Norm,
    dropout: Module,
    has_dropout: bool,
}

#[derive(Debug)]
enum Head {
    MaskedTokens(Box<MaskedHead>),
    Classifier(Box<Classifier>),
}

#[derive(Debug)]
struct MaskedHead {
    cls: Module,
    predictions: Module,
    transform: Module,
    dense: Linear,
    act: Module,
    norm: Norm,
    decoder: Linear,
}

#[derive(Debug)]
struct Classifier {
    pooler: Module,
    dense: Linear,
    activation: Module,
    dropout: Module,
    classifier: Linear,
}

/// Classes of the classifier: the library's default.
const CLASSES: u64 = 2;
/// Kinds of tokens BERT tells apart.
const TOKEN_TYPES: u64 = 2;

impl Bert {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut model = Model::default();
        let tops = add_tops(&mut model, &setup.training);
        let mut top = Builder::under(&mut model, &setup.training, &tops);
        let hidden = setup.shape.hidden;
        let (body, mut at) = top.inside(Label::Name("bert"));
        let embeddings = Embeddings::build(&mut at, setup);
        let (encoder, mut inner) = at.inside(Label::Name("encoder"));
        let layers =
            (0..setup.shape.layers).map(|index| Layer::build(&mut inner, setup, index)).collect();
        let head = if setup.family == Family::Bert {
            Head::MaskedTokens(Box::new(MaskedHead::build(&mut top, setup, &embeddings.words)))
        } else {
            let (pooler, mut inner) = at.inside(Label::Name("pooler"));
            let dense = inner.linear("dense", hidden, hidden, true);
            let activation = inner.plain("activation");
            let dropout = top.plain("dropout");
            let classifier = top.linear("classifier", hidden, CLASSES, true);
            Head::Classifier(Box::new(Classifier {
                pooler,
                dense,
                activation,
                dropout,
                classifier,
            }))
        };
        Self { model, setup: setup.clone(), tops, body, embeddings, encoder, layers, head }
    }

    fn run_encoder<'t>(&self, tape: &'t Tape) -> Tensor<'t> {
        let embedded = self.embeddings.call(&self.setup, tape);
        tape.call(self.encoder, &embedded, |embedded| {
            let mut x = embedded;
            for (index, layer) in self.layers.iter().enumerate() {
                tape.layer_border();
                let (key, checkpointing) =
                    (super::causal::key(index), self.setup.switches.checkpointing);
                x = tape.part(key, checkpointing, vec![x.clone()], |arguments| {
                    layer.call(&arguments[0])
                });
            }
            tape.layer_border();
            x
        })
    }

    fn masked_tokens<'t>(&self, tape: &'t Tape, head: &MaskedHead) -> Output<'t> {
        let hidden = tape.call_by_keyword(self.body, || self.run_encoder(tape));
        let logits = head.call(&hidden);
        let loss = tape.plain_cross_entropy(&logits);
        Output { loss, rest: vec![logits] }
    }

    fn classify<'t>(&self, tape: &'t Tape, head: &Classifier) -> Output<'t> {
        tape.enter_silently(self.body);
        let hidden = self.run_encoder(tape);
        let mut pooled = tape.call(head.pooler, &hidden, |hidden| {
            let first = hidden.slice(self.setup.batch.sequences * self.setup.shape.hidden);
            let mut pooled = head.dense.call(&first);
            pooled = tape.call(head.activation, &pooled, |pooled| pooled.squash());
            pooled
        });
        tape.leave_silently(self.body);
        let hidden = tape.wrap_output(self.body, &hidden);
        pooled = tape.wrap_output(self.body, &pooled);
        let drops = self.setup.switches.residual_dropout;
        pooled = tape.call(head.dropout, &pooled, |pooled| pooled.dropout(drops));
        let logits = head.classifier.call(&pooled);
        let loss = tape.plain_cross_entropy(&logits);
        drop(hidden);
        Output { loss, rest: vec![logits] }
    }
}

impl Rerun for Bert {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        Some(self.layers[key as usize].call(&arguments[0]))
    }
}

impl Program for Bert {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        for &top in &self.tops {
            tape.enter_silently(top);
        }
        let output = match &self.head {
            Head::MaskedTokens(head) => self.masked_tokens(tape, head),
            Head::Classifier(head) => self.classify(tape, head),
        };
        leave_tops(tape, &self.tops, output)
    }
}

impl Embeddings {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        let (module, mut at) = parent.inside(Label::Name("embeddings"));
        Self {
            module,
            words: at.embedding("word_embeddings", shape.vocabulary, shape.hidden),
            positions: at.embedding("position_embeddings", shape.positions, shape.hidden),
            types: at.embedding("token_type_embeddings", TOKEN_TYPES, shape.hidden),
            norm: at.norm("LayerNorm", shape.hidden, NormKind::Layer),
            dropout: at.plain("dropout"),
        }
    }

    fn call<'t>(&self, setup: &Setup, tape: &'t Tape) -> Tensor<'t> {
        let batch = setup.batch;
        tape.call_by_keyword(self.module, || {
            // All types of a batch are views of one row.
            let row = tape.index_tensor(batch.length);
            let types = row.expand(batch.tokens());
            let ids = tape.outside(batch.tokens(), 8);
            let words = self.words.call(&ids);
            let types = self.types.call(&types);
            let mut embedded = words.add(&types);
            let place = tape.outside(batch.length, 8);
            let positions = self.positions.call(&place);
            embedded = embedded.add(&positions);
            embedded = self.norm.call(&embedded);
            let drops = setup.switches.embedding_dropout;
            embedded = tape.call(self.dropout, &embedded, |embedded| embedded.dropout(drops));
            embedded
        })
    }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u64) -> Self {
        let (hidden, inner) = (setup.shape.hidden, setup.shape.intermediate);
        let drops = setup.switches.residual_dropout;
        let (module, mut at) = parent.inside(item("layer", index));
        let (attention, mut inside) = at.inside(Label::Name("attention"));
        let (own, mut projections) = inside.inside(Label::Name("self"));
        let q = projections.linear("query", hidden, hidden, true);
        let k = projections.linear("key", hidden, hidden, true);
        let v = projections.linear("value", hidden, hidden, true);
        projections.plain("dropout");
        let attention_output = Residual::build(&mut inside, "output", (hidden, hidden), drops);
        let (intermediate, mut inside) = at.inside(Label::Name("intermediate"));
        let up = inside.linear("dense", hidden, inner, true);
        let act = inside.plain("intermediate_act_fn");
        let output = Residual::build(&mut at, "output", (inner, hidden), drops);
        let heads = self_heads(setup);
        Self {
            module,
            attention,
            own,
            q,
            k,
            v,
            attention_output,
            intermediate,
            up,
            act,
            output,
            heads,
            switches: setup.switches,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let attended = tape.call(self.attention, &x, |x| {
                let attended = tape.call(self.own, &x, |x| {
                    let q = self.view(self.q.call(&x), true);
                    let k = self.view(self.k.call(&x), self.heads.batch > 1);
                    let v = self.view(self.v.call(&x), true);
                    self.attend(&q, &k, &v)
                });
                self.attention_output.call(&attended, &x)
            });
            let wide = tape.call(self.intermediate, &attended, |x| {
                let mut h = self.up.call(&x);
                h = tape.call(self.act, &h, |h| h.activate());
                h
            });
            self.output.call(&wide, &attended)
        })
    }
}

impl Layer {
    /// Composed attention needs its gradients flattened token by token, except that of a single
    /// sequence's key.
    fn view<'t>(&self, tensor: Tensor<'t>, is_copied: bool) -> Tensor<'t> {
        if self.switches.attention_dropout && is_copied {
            tensor.view_with_copied_gradient()
        } else {
            tensor.view()
        }
    }

    fn attend<'t>(&self, q: &Tensor<'t>, k: &Tensor<'t>, v: &Tensor<'t>) -> Tensor<'t> {
        if !self.switches.attention_dropout {
            return q.flash(k, v, None, self.heads);
        }
        let layout = HeadsFirst::default();
        let made = q.composed_attention(k, v, &Mask::None, self.heads, layout, true);
        made.copy()
    }
}

impl Residual {
    fn build(
        parent: &mut Builder<'_>,
        name: &'static str,
        widths: (u64, u64),
        has_dropout: bool,
    ) -> Self {
        let (width_in, width_out) = widths;
        let (module, mut at) = parent.inside(Label::Name(name));
        Self {
            module,
            dense: at.linear("dense", width_in, width_out, true),
            norm: at.norm("LayerNorm", width_out, NormKind::Layer),
            dropout: at.plain("dropout"),
            has_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, input: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        let x = tape.enter(self.module, x);
        let input = tape.wrap_argument(self.module, input);
        let mut h = self.dense.call(&x);
        h = tape.call(self.dropout, &h, |h| h.dropout(self.has_dropout));
        h = {
            let sum = h.add(&input);
            self.norm.call(&sum)
        };
        tape.leave(self.module, h)
    }
}

impl MaskedHead {
    fn build(top: &mut Builder<'_>, setup: &Setup, words: &Embedding) -> Self {
        let (hidden, vocabulary) = (setup.shape.hidden, setup.shape.vocabulary);
        let (cls, mut at) = top.inside(Label::Name("cls"));
        let (predictions, mut inside) = at.inside(Label::Name("predictions"));
        let bias = inside.parameter("bias", vocabulary);
        let (transform, mut inner) = inside.inside(Label::Name("transform"));
        let dense = inner.linear("dense", hidden, hidden, true);
        let act = inner.plain("transform_act_fn");
        let norm = inner.norm("LayerNorm", hidden, NormKind::Layer);
        let mut decoder = inside.tied_linear("decoder", words);
        inside.borrow(decoder.module, bias);
        decoder.bias = Some(bias);
        debug_assert!(matches!(decoder.wrapper, Wrapper::None));
        debug_assert!(decoder.kind == LinearKind::Linear);
        Self { cls, predictions, transform, dense, act, norm, decoder }
    }

    fn call<'t>(&self, hidden: &Tensor<'t>) -> Tensor<'t> {
        let tape = hidden.tape();
        tape.call(self.cls, hidden, |x| {
            tape.call(self.predictions, &x, |x| {
                let h = tape.call(self.transform, &x, |x| {
                    let mut h = self.dense.call(&x);
                    h = tape.call(self.act, &h, |h| h.activate());
                    h = self.norm.call(&h);
                    h
                });
                tape.mark(Mark::Head);
                let logits = self.decoder.call(&h);
                tape.mark_backward(&logits, Mark::HeadDone);
                logits
            })
        })
    }
}
