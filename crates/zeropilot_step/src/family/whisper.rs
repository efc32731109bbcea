//! Whisper: an encoder of sound of one length, a decoder that attends to it.

use super::build::{Builder, add_tops, item};
use super::layer::{Convolution, Embedding, Linear, Norm, NormKind};
use super::{Output, Program, Setup, leave_tops};
use crate::model::{Label, Model, Module};
use crate::primitive::{Heads, HeadsFirst, Mask};
use crate::shape::{Speech, Tower};
use crate::tape::{Mark, Rerun, Tape, Tensor};

/// Samples a convolution looks at.
const KERNEL: u64 = 3;
/// Checkpoint keys of decoder layers start here.
const DECODER_KEYS: u32 = 1 << 16;

#[derive(Debug)]
pub(super) struct Whisper {
    model: Model,
    setup: Setup,
    speech: Speech,
    tops: Vec<Module>,
    container: Module,
    encoder: Encoder,
    decoder: Decoder,
    head: Linear,
}

#[derive(Debug)]
struct Encoder {
    module: Module,
    convolutions: (Convolution, Convolution),
    positions: Embedding,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Decoder {
    module: Module,
    tokens: Embedding,
    positions: Embedding,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    own: Attention,
    own_norm: Norm,
    cross: Option<(Attention, Norm)>,
    act: Module,
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
    is_causal: bool,
    has_dropout: bool,
}

impl Whisper {
    pub(super) fn new(setup: &Setup) -> Self {
        let speech = setup.speech();
        let mut model = Model::default();
        let tops = add_tops(&mut model, &setup.training);
        let mut top = Builder::under(&mut model, &setup.training, &tops);
        let (container, mut at) = top.inside(Label::Name("model"));
        let encoder = Encoder::build(&mut at, setup, &speech);
        let decoder = Decoder::build(&mut at, setup, &speech);
        let head = if setup.is_tied() {
            top.tied_linear("proj_out", &decoder.tokens)
        } else {
            top.linear("proj_out", setup.shape.hidden, setup.shape.vocabulary, false)
        };
        Self { model, setup: setup.clone(), speech, tops, container, encoder, decoder, head }
    }
}

impl Setup {
    /// The encoder of a speech model; one of the decoder's sizes where none is given.
    fn speech(&self) -> Speech {
        match self.tower {
            Tower::Speech(speech) => speech,
            _ => Speech {
                layers: self.shape.layers,
                heads: self.shape.heads,
                intermediate: self.shape.intermediate,
                mel_bins: 80,
                positions: 1500,
            },
        }
    }
}

impl Rerun for Whisper {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        let layer = match key.checked_sub(DECODER_KEYS) {
            Some(index) => &self.decoder.layers[index as usize],
            None => &self.encoder.layers[key as usize],
        };
        Some(layer.call(&arguments))
    }
}

impl Program for Whisper {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        let Setup { batch, switches, .. } = &self.setup;
        for &top in &self.tops {
            tape.enter_silently(top);
        }
        let shifted = tape.index_tensor(batch.tokens());
        tape.enter_silently(self.container);
        let encoded = self.encoder.call(&self.setup, &self.speech, tape);
        let decoded = self.decoder.call(switches.checkpointing, &shifted, &encoded);
        tape.leave_silently(self.container);
        let (hidden, encoded) = (
            tape.wrap_output(self.container, &decoded),
            tape.wrap_output(self.container, &encoded),
        );
        drop(decoded);
        tape.mark(Mark::Head);
        let logits = self.head.call(&hidden);
        tape.mark_backward(&logits, Mark::HeadDone);
        let loss = tape.plain_cross_entropy(&logits.view());
        drop((hidden, shifted));
        leave_tops(tape, &self.tops, Output { loss, rest: vec![logits, encoded] })
    }
}

/// Call all layers, each checkpointed if layers are.
fn run_layers<'t>(
    layers: &[Layer],
    first_key: u32,
    checkpointing: bool,
    first: Tensor<'t>,
    encoded: Option<&Tensor<'t>>,
) -> Tensor<'t> {
    let tape = first.tape();
    let mut x = first;
    for (key, layer) in (first_key..).zip(layers) {
        let arguments: Vec<Tensor<'t>> =
            Some(x.clone()).into_iter().chain(encoded.cloned()).collect();
        x = tape.part(key, checkpointing, arguments, |arguments| layer.call(arguments));
    }
    x
}

impl Encoder {
    fn build(parent: &mut Builder<'_>, setup: &Setup, speech: &Speech) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(Label::Name("encoder"));
        Self {
            module,
            convolutions: (
                at.convolution("conv1", speech.mel_bins * KERNEL, hidden, true),
                at.convolution("conv2", hidden * KERNEL, hidden, true),
            ),
            // A sinusoid that is held as a parameter and never trained.
            positions: at.frozen_embedding("embed_positions", speech.positions, hidden),
            layers: (0..speech.layers)
                .map(|index| Layer::build(&mut at, setup, speech, Place::Encoder, index))
                .collect(),
            norm: at.norm("layer_norm", hidden, NormKind::Layer),
        }
    }

    fn call<'t>(&self, setup: &Setup, speech: &Speech, tape: &'t Tape) -> Tensor<'t> {
        tape.call_by_keyword(self.module, || {
            let sequences = setup.batch.sequences;
            let places = sequences * speech.positions;
            let has_dropout = setup.switches.residual_dropout;
            let frames = 2 * places;
            let sound = tape.outside(frames * speech.mel_bins, setup.training.element_bytes);
            let mut y = {
                let heard = self.convolutions.0.call(&sound, frames);
                heard.activate()
            };
            y = {
                let heard = self.convolutions.1.call(&y, places);
                heard.activate()
            };
            let numbers = tape.index_tensor(speech.positions);
            let mut x = {
                let positions = self.positions.call(&numbers);
                y.view().add(&positions)
            };
            x = x.dropout(has_dropout);
            x = run_layers(&self.layers, 0, setup.switches.checkpointing, x, None);
            self.norm.call(&x)
        })
    }
}

impl Decoder {
    fn build(parent: &mut Builder<'_>, setup: &Setup, speech: &Speech) -> Self {
        let shape = setup.shape;
        let (module, mut at) = parent.inside(Label::Name("decoder"));
        Self {
            module,
            tokens: at.embedding("embed_tokens", shape.vocabulary, shape.hidden),
            positions: at.embedding("embed_positions", shape.positions, shape.hidden),
            layers: (0..shape.layers)
                .map(|index| Layer::build(&mut at, setup, speech, Place::Decoder, index))
                .collect(),
            norm: at.norm("layer_norm", shape.hidden, NormKind::Layer),
        }
    }

    fn call<'t>(&self, checkpointing: bool, ids: &Tensor<'t>, encoded: &Tensor<'t>) -> Tensor<'t> {
        let tape = ids.tape();
        tape.call_by_keyword(self.module, || {
            let has_dropout = self.layers.first().is_some_and(|layer| layer.has_dropout);
            let tokens = self.tokens.call(ids);
            let places = tape.index_tensor(ids.elements());
            let positions = tape.call_by_keyword(self.positions.module, || {
                let table = self.positions.weight;
                let rows = tape.parameter_as(table, table.element_bytes);
                rows.pick(&places, ids.elements() * self.positions.width)
            });
            let mut x = tokens.add(&positions);
            x = x.dropout(has_dropout);
            x = run_layers(&self.layers, DECODER_KEYS, checkpointing, x, Some(encoded));
            self.norm.call(&x)
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Encoder,
    Decoder,
    Cross,
}

impl Layer {
    fn build(
        parent: &mut Builder<'_>,
        setup: &Setup,
        speech: &Speech,
        place: Place,
        index: u64,
    ) -> Self {
        let hidden = setup.shape.hidden;
        let (module, mut at) = parent.inside(item("layers", index));
        let own = Attention::build(&mut at, setup, speech, place);
        let mut act = (place == Place::Decoder).then(|| at.plain("activation_fn"));
        let own_norm = at.norm("self_attn_layer_norm", hidden, NormKind::Layer);
        let cross = (place == Place::Decoder).then(|| {
            let attention = Attention::build(&mut at, setup, speech, Place::Cross);
            (attention, at.norm("encoder_attn_layer_norm", hidden, NormKind::Layer))
        });
        let act = *act.get_or_insert_with(|| at.plain("activation_fn"));
        let inner = match place {
            Place::Encoder => speech.intermediate,
            _ => setup.shape.intermediate,
        };
        Self {
            module,
            own,
            own_norm,
            cross,
            act,
            up: at.linear("fc1", hidden, inner, true),
            down: at.linear("fc2", inner, hidden, true),
            final_norm: at.norm("final_layer_norm", hidden, NormKind::Layer),
            has_dropout: setup.switches.residual_dropout,
        }
    }

    /// Arguments: hidden states, and in the decoder what the encoder made.
    fn call<'t>(&self, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        let tape = arguments[0].tape();
        tape.call(self.module, &arguments[0], |x| {
            let mut h = self.own_norm.call(&x);
            h = self.own.call(&h, None);
            h = self.add(&x, &h);
            drop(x);
            let mut residual = h.clone();
            if let (Some((attention, norm)), Some(encoded)) = (&self.cross, arguments.get(1)) {
                h = norm.call(&h);
                h = attention.call(&h, Some(encoded));
                h = self.add(&residual, &h);
                residual = h.clone();
            }
            h = self.final_norm.call(&h);
            h = {
                let inner = self.up.call(&h);
                tape.call(self.act, &inner, |inner| inner.activate())
            };
            h = self.down.call(&h);
            self.add(&residual, &h)
        })
    }

    fn add<'t>(&self, residual: &Tensor<'t>, branch: &Tensor<'t>) -> Tensor<'t> {
        let kept = branch.dropout(self.has_dropout);
        residual.add(&kept)
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, setup: &Setup, speech: &Speech, place: Place) -> Self {
        let Setup { shape, batch, switches, .. } = setup;
        let hidden = shape.hidden;
        let name = if place == Place::Cross { "encoder_attn" } else { "self_attn" };
        let (module, mut at) = parent.inside(Label::Name(name));
        let heads = if place == Place::Encoder { speech.heads } else { shape.heads };
        let width = hidden / heads.max(1);
        let queries = if place == Place::Encoder { speech.positions } else { batch.length };
        let keys = if place == Place::Decoder { batch.length } else { speech.positions };
        Self {
            module,
            k: at.linear("k_proj", hidden, hidden, false),
            v: at.linear("v_proj", hidden, hidden, true),
            q: at.linear("q_proj", hidden, hidden, true),
            out: at.linear("out_proj", hidden, hidden, true),
            heads: Heads {
                batch: batch.sequences,
                queries,
                keys,
                heads,
                kv_heads: heads,
                width,
                value_width: width,
            },
            is_causal: place == Place::Decoder,
            has_dropout: switches.attention_dropout,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, encoded: Option<&Tensor<'t>>) -> Tensor<'t> {
        let tape = x.tape();
        match encoded {
            None => tape.call_by_keyword(self.module, || self.run(x, x)),
            Some(encoded) => tape.call(self.module, x, |x| self.run(&x, encoded)),
        }
    }

    fn run<'t>(&self, x: &Tensor<'t>, source: &Tensor<'t>) -> Tensor<'t> {
        let q = {
            let scaled = {
                let plain = self.q.call(x);
                plain.scale()
            };
            scaled.view().copy()
        };
        let k = {
            let plain = self.k.call(source);
            plain.view().copy()
        };
        let v = {
            let plain = self.v.call(source);
            plain.view().copy()
        };
        let attended = if self.has_dropout {
            let mask = if self.is_causal { Mask::Causal } else { Mask::None };
            let layout = HeadsFirst { query: true, key: true, value: true };
            q.composed_attention(&k, &v, &mask, self.heads, layout, true).copy()
        } else if self.is_causal {
            q.flash(&k, &v, None, self.heads).view().copy()
        } else {
            q.flash_both_ways(&k, &v, self.heads).view().copy()
        };
        self.out.call(&attended.view())
    }
}
