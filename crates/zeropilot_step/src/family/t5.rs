//! T5: an encoder, a decoder that attends to it, relative position biases.

use super::build::{Builder, add_tops, item};
use super::layer::{Embedding, Linear, Norm, NormKind};
use super::{Output, Program, Setup, leave_tops};
use crate::model::{Label, Model, Module};
use crate::primitive::{Heads, HeadsFirst, Mask};
use crate::tape::{Category, Mark, Rerun, Tape, Tensor};

/// Buckets of relative positions: the library's default.
const BUCKETS: u64 = 32;
/// Checkpoint keys of decoder layers start here.
const DECODER_KEYS: u32 = 1 << 16;

#[derive(Debug)]
pub(super) struct T5 {
    model: Model,
    setup: Setup,
    tops: Vec<Module>,
    encoder: Stack,
    decoder: Stack,
    head: Linear,
}

#[derive(Debug)]
struct Stack {
    module: Module,
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: Norm,
    dropout: Module,
    has_dropout: bool,
    checkpointing: bool,
    first_key: u32,
}

#[derive(Debug)]
struct Block {
    module: Module,
    own: AttentionLayer,
    cross: Option<AttentionLayer>,
    feed_forward: FeedForward,
}

#[derive(Debug)]
struct AttentionLayer {
    module: Module,
    attention: Attention,
    norm: Norm,
    dropout: Module,
    has_dropout: bool,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    bias: Option<Embedding>,
    is_causal: bool,
    is_cross: bool,
    has_dropout: bool,
    checkpointing: bool,
    heads: Heads,
}

#[derive(Debug)]
struct FeedForward {
    module: Module,
    dense: Module,
    up: Up,
    down: Linear,
    inner_dropout: Module,
    act: Module,
    norm: Norm,
    dropout: Module,
    has_dropout: bool,
}

/// The first half of the feed-forward part.
#[derive(Debug)]
enum Up {
    /// The original: one projection and relu.
    Plain(Linear),
    /// Version 1.1: gelu of one projection times another.
    Gated(Linear, Linear),
}

/// What a block is given and returns: hidden states and the two position biases.
struct States<'t> {
    hidden: Tensor<'t>,
    bias: Option<Tensor<'t>>,
    encoded: Option<Tensor<'t>>,
    cross_bias: Option<Tensor<'t>>,
}

impl<'t> States<'t> {
    /// As checkpoint arguments; an empty outside tensor stands for what is absent.
    fn into_arguments(self) -> Vec<Tensor<'t>> {
        let tape = self.hidden.tape();
        let or_empty = |tensor: Option<Tensor<'t>>| tensor.unwrap_or_else(|| tape.outside(0, 1));
        let (bias, encoded, cross_bias) =
            (or_empty(self.bias), or_empty(self.encoded), or_empty(self.cross_bias));
        vec![self.hidden, bias, encoded, cross_bias]
    }

    fn from_arguments(arguments: &[Tensor<'t>]) -> Self {
        let present =
            |index: usize| arguments.get(index).filter(|tensor| tensor.elements() > 0).cloned();
        Self {
            hidden: arguments[0].clone(),
            bias: present(1),
            encoded: present(2),
            cross_bias: present(3),
        }
    }
}

impl T5 {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut model = Model::default();
        let tops = add_tops(&mut model, &setup.training);
        let mut top = Builder::under(&mut model, &setup.training, &tops);
        let shape = setup.shape;
        let shared = top.embedding("shared", shape.vocabulary, shape.hidden);
        let encoder = Stack::build(&mut top, setup, &shared, false);
        let decoder = Stack::build(&mut top, setup, &shared, true);
        let head = if setup.is_tied() {
            top.tied_linear("lm_head", &shared)
        } else {
            top.linear("lm_head", shape.hidden, shape.vocabulary, false)
        };
        Self { model, setup: setup.clone(), tops, encoder, decoder, head }
    }
}

impl Rerun for T5 {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        let block = match key.checked_sub(DECODER_KEYS) {
            Some(index) => &self.decoder.blocks[index as usize],
            None => &self.encoder.blocks[key as usize],
        };
        let _ = block.call(&arguments);
        None
    }
}

impl Program for T5 {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        for &top in &self.tops {
            tape.enter_silently(top);
        }
        let batch = self.setup.batch;
        let ids = tape.outside(batch.tokens(), 8);
        let encoded = self.encoder.call(&ids, None);
        let shifted = tape.index_tensor(batch.sequences * batch.target_length);
        let decoded = self.decoder.call(&shifted, Some(&encoded));
        let mut sequence = decoded.clone();
        if self.setup.is_tied() {
            sequence = sequence.scale();
        }
        tape.mark(Mark::Head);
        let logits = self.head.call(&sequence);
        tape.mark_backward(&logits, Mark::HeadDone);
        let loss = tape.plain_cross_entropy(&logits);
        drop((sequence, decoded, shifted));
        leave_tops(tape, &self.tops, Output { loss, rest: vec![logits, encoded] })
    }
}

impl Stack {
    fn build(
        parent: &mut Builder<'_>,
        setup: &Setup,
        shared: &Embedding,
        is_decoder: bool,
    ) -> Self {
        let hidden = setup.shape.hidden;
        let name = if is_decoder { "decoder" } else { "encoder" };
        let (module, mut at) = parent.inside(Label::Name(name));
        let table = at.plain("embed_tokens");
        at.borrow(table, shared.weight);
        let embedding = Embedding { module: table, ..*shared };
        let blocks = (0..setup.shape.layers)
            .map(|index| Block::build(&mut at, setup, is_decoder, index))
            .collect();
        Self {
            module,
            embedding,
            blocks,
            norm: at.norm("final_layer_norm", hidden, NormKind::T5),
            dropout: at.plain("dropout"),
            has_dropout: setup.switches.residual_dropout,
            checkpointing: setup.switches.checkpointing,
            first_key: if is_decoder { DECODER_KEYS } else { 0 },
        }
    }

    fn call<'t>(&self, ids: &Tensor<'t>, encoded: Option<&Tensor<'t>>) -> Tensor<'t> {
        ids.tape().call_by_keyword(self.module, || self.run(ids, encoded))
    }

    fn run<'t>(&self, ids: &Tensor<'t>, encoded: Option<&Tensor<'t>>) -> Tensor<'t> {
        let tape = ids.tape();
        let drop_out = |x: &Tensor<'t>| tape.call(self.dropout, x, |x| x.dropout(self.has_dropout));
        let embedded = self.embedding.call(ids);
        let mut hidden = drop_out(&embedded);
        let (mut bias, mut cross_bias) = (None, None);
        for (key, block) in (self.first_key..).zip(&self.blocks) {
            let states = States {
                hidden: hidden.clone(),
                bias: bias.clone(),
                encoded: encoded.cloned(),
                cross_bias: cross_bias.clone(),
            };
            let arguments = states.into_arguments();
            let made =
                tape.part(key, self.checkpointing, arguments, |arguments| block.call(arguments));
            hidden = made.hidden;
            bias = made.bias;
            cross_bias = made.cross_bias;
        }
        hidden = self.norm.call(&hidden);
        hidden = drop_out(&hidden);
        hidden
    }
}

impl Block {
    fn build(parent: &mut Builder<'_>, setup: &Setup, is_decoder: bool, index: u64) -> Self {
        let (module, mut at) = parent.inside(item("block", index));
        let place = if is_decoder { Place::Decoder } else { Place::Encoder };
        let own = AttentionLayer::build(&mut at, setup, place, index == 0);
        let cross = is_decoder.then(|| AttentionLayer::build(&mut at, setup, Place::Cross, false));
        let last = if is_decoder { 2 } else { 1 };
        Self { module, own, cross, feed_forward: FeedForward::build(&mut at, setup, last) }
    }

    /// All tensors are positional arguments.
    fn call<'t>(&self, arguments: &[Tensor<'t>]) -> States<'t> {
        let given = States::from_arguments(arguments);
        let tape = given.hidden.tape();
        tape.enter_silently(self.module);
        let wrap = |tensor: &Tensor<'t>| tape.wrap_argument(self.module, tensor);
        let mut hidden = wrap(&given.hidden);
        let bias = given.bias.as_ref().map(wrap);
        let encoded = given.encoded.as_ref().map(wrap);
        let given_cross_bias = given.cross_bias.as_ref().map(wrap);
        let mut cross_bias = None;
        let own_bias;
        (hidden, own_bias) = self.own.call(&hidden, None, bias.as_ref());
        if let (Some(cross), Some(encoded)) = (&self.cross, &encoded) {
            let made;
            (hidden, made) = cross.call(&hidden, Some(encoded), given_cross_bias.as_ref());
            cross_bias = Some(made);
        }
        hidden = self.feed_forward.call(&hidden);
        tape.leave_silently(self.module);
        States {
            hidden: tape.wrap_output(self.module, &hidden),
            bias: Some(tape.wrap_output(self.module, &own_bias)),
            encoded: None,
            cross_bias: cross_bias.map(|bias| tape.wrap_output(self.module, &bias)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Encoder,
    Decoder,
    Cross,
}

impl AttentionLayer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, place: Place, has_bias: bool) -> Self {
        let is_cross = place == Place::Cross;
        let (module, mut at) = parent.inside(Label::Item("layer", u32::from(is_cross)));
        Self {
            module,
            attention: Attention::build(&mut at, setup, place, has_bias),
            norm: at.norm("layer_norm", setup.shape.hidden, NormKind::T5),
            dropout: at.plain("dropout"),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    fn call<'t>(
        &self,
        x: &Tensor<'t>,
        encoded: Option<&Tensor<'t>>,
        bias: Option<&Tensor<'t>>,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let tape = x.tape();
        let x = tape.enter(self.module, x);
        let normed = self.norm.call(&x);
        let (mut out, bias) = self.attention.call(&normed, encoded, bias);
        out = {
            let kept = tape.call(self.dropout, &out, |out| out.dropout(self.has_dropout));
            x.add(&kept)
        };
        tape.leave_silently(self.module);
        (tape.wrap_output(self.module, &out), tape.wrap_output(self.module, &bias))
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup, place: Place, has_bias: bool) -> Self {
        let Setup { shape, batch, .. } = setup;
        let is_cross = place == Place::Cross;
        let name = if is_cross { "EncDecAttention" } else { "SelfAttention" };
        let (module, mut at) = parent.inside(Label::Name(name));
        let (hidden, inner) = (shape.hidden, shape.heads * shape.head_width);
        let queries = if place == Place::Encoder { batch.length } else { batch.target_length };
        let keys = if place == Place::Decoder { batch.target_length } else { batch.length };
        Self {
            module,
            q: at.linear("q", hidden, inner, false),
            k: at.linear("k", hidden, inner, false),
            v: at.linear("v", hidden, inner, false),
            o: at.linear("o", inner, hidden, false),
            bias: has_bias.then(|| at.embedding("relative_attention_bias", BUCKETS, shape.heads)),
            is_causal: place == Place::Decoder,
            is_cross,
            has_dropout: setup.switches.attention_dropout,
            checkpointing: setup.switches.checkpointing,
            heads: Heads {
                batch: batch.sequences,
                queries,
                keys,
                heads: shape.heads,
                kv_heads: shape.heads,
                width: shape.head_width,
                value_width: shape.head_width,
            },
        }
    }

    /// Returns the output and the position bias it used.
    fn call<'t>(
        &self,
        x: &Tensor<'t>,
        encoded: Option<&Tensor<'t>>,
        bias: Option<&Tensor<'t>>,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let tape = x.tape();
        let x = tape.enter(self.module, x);
        let view = |tensor: Tensor<'t>, is_copied: bool| {
            let is_copied = is_copied && self.is_composed();
            if is_copied { tensor.view_with_copied_gradient() } else { tensor.view() }
        };
        let q = view(self.q.call(&x), true);
        let source = encoded.unwrap_or(&x);
        // The gradient of a single sequence's key comes out in token order.
        let k = view(self.k.call(source), self.heads.batch > 1);
        let v = view(self.v.call(source), true);
        let bias = bias.cloned().unwrap_or_else(|| self.make_bias(tape, x.element_bytes()));
        let attended = self.attend(&q, &k, &v, &bias);
        let out = self.o.call(&attended);
        tape.leave_silently(self.module);
        (tape.wrap_output(self.module, &out), tape.wrap_output(self.module, &bias))
    }

    /// A bias that wants a gradient, or dropout, rules the fused kernel out. The zero bias of cross
    /// attention is made to want one under checkpointing.
    fn is_composed(&self) -> bool {
        !self.is_cross || self.has_dropout || self.checkpointing
    }

    fn make_bias<'t>(&self, tape: &'t Tape, element_bytes: u8) -> Tensor<'t> {
        let places = self.heads.queries * self.heads.keys;
        match &self.bias {
            Some(table) => {
                let (_distances, buckets) = relative_buckets(tape, places, self.is_causal);
                table.call(&buckets).view()
            }
            None => {
                let zeros =
                    tape.fresh(self.heads.heads * places, element_bytes, Category::Activation);
                if self.checkpointing { tape.require_grad(zeros) } else { zeros }
            }
        }
    }

    fn attend<'t>(
        &self,
        q: &Tensor<'t>,
        k: &Tensor<'t>,
        v: &Tensor<'t>,
        bias: &Tensor<'t>,
    ) -> Tensor<'t> {
        if !self.is_composed() {
            return q.flash(k, v, Some(bias), self.heads);
        }
        let mask = if self.is_causal {
            let places = self.heads.queries * self.heads.keys;
            let lower = q.tape().fresh(places, 1, Category::Index);
            let masked = bias.where_mask(&lower);
            masked.copy()
        } else if self.is_cross {
            bias.clone()
        } else {
            bias.copy()
        };
        let layout = HeadsFirst::default();
        let made =
            q.composed_attention(k, v, &Mask::Float(&mask), self.heads, layout, self.has_dropout);
        made.copy()
    }
}

/// Distances between positions and the buckets they fall into, with the helpers made on the way.
///
/// They matter because every one of them is a 64-bit number per pair of positions.
fn relative_buckets(tape: &Tape, places: u64, is_causal: bool) -> (Tensor<'_>, Tensor<'_>) {
    let integers = || tape.index_tensor(places);
    let distances = integers();
    let sides = (!is_causal).then(|| {
        let doubled = {
            let _side = integers();
            integers()
        };
        let sides = integers();
        drop(doubled);
        sides
    });
    let magnitude = {
        let _smaller = is_causal.then(|| {
            let _zeros = integers();
            integers()
        });
        integers()
    };
    let near = tape.fresh(places, 1, Category::Index);
    let far = far_buckets(tape, places);
    let chosen = integers();
    let buckets = sides.unwrap_or_else(integers);
    drop((chosen, magnitude, near, far));
    (distances, buckets)
}

/// Logarithmic buckets of distant pairs, cut off at the last bucket.
fn far_buckets(tape: &Tape, places: u64) -> Tensor<'_> {
    let mut logarithm = tape.fresh(places, 4, Category::Index);
    for _ in 0..4 {
        logarithm = tape.fresh(places, 4, Category::Index);
    }
    let mut bucket = tape.index_tensor(places);
    drop(logarithm);
    bucket = {
        let _whole = bucket;
        tape.index_tensor(places)
    };
    let last = tape.index_tensor(places);
    let far = tape.index_tensor(places);
    drop((last, bucket));
    far
}

impl FeedForward {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u32) -> Self {
        let (hidden, inner) = (setup.shape.hidden, setup.shape.intermediate);
        let (module, mut at) = parent.inside(Label::Item("layer", index));
        let (dense, mut inside) = at.inside(Label::Name("DenseReluDense"));
        let up = if setup.switches.is_gated {
            let gate = inside.linear("wi_0", hidden, inner, false);
            Up::Gated(gate, inside.linear("wi_1", hidden, inner, false))
        } else {
            Up::Plain(inside.linear("wi", hidden, inner, false))
        };
        let down = inside.linear("wo", inner, hidden, false);
        let inner_dropout = inside.plain("dropout");
        let act = inside.plain("act");
        Self {
            module,
            dense,
            up,
            down,
            inner_dropout,
            act,
            norm: at.norm("layer_norm", hidden, NormKind::T5),
            dropout: at.plain("dropout"),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut h = self.norm.call(&x);
            h = tape.call(self.dense, &h, |h| self.run_dense(&h));
            let kept = tape.call(self.dropout, &h, |h| h.dropout(self.has_dropout));
            x.add(&kept)
        })
    }

    fn run_dense<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        let mut h = match &self.up {
            Up::Plain(up) => {
                let h = up.call(x);
                tape.call(self.act, &h, |h| h.squash())
            }
            Up::Gated(gate, up) => {
                let gate = {
                    let h = gate.call(x);
                    tape.call(self.act, &h, |h| h.gelu_new())
                };
                let up = up.call(x);
                gate.mul(&up)
            }
        };
        h = tape.call(self.inner_dropout, &h, |h| h.dropout(self.has_dropout));
        self.down.call(&h)
    }
}
