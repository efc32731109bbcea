//! Language models that see: features of a vision tower take the places of image tokens.

use super::Setup;
use super::build::Builder;
use super::causal::{Body, Hidden, key};
use super::decoder::Decoder;
use super::layer::Embedding;
use super::vision::{Seen, TOWER_KEYS, Tower};
use crate::model::{Label, Module};
use crate::primitive::Rotary;
use crate::shape::{Vision, VisionKind};
use crate::tape::{Category, Tape, Tensor};

#[derive(Debug)]
pub(super) struct VisionLanguage {
    vision: Vision,
    tower: Tower,
    module: Module,
    language: Decoder,
}

impl VisionLanguage {
    fn is_mrope(&self) -> bool {
        self.vision.kind.is_packed()
    }
}

impl Body for VisionLanguage {
    const CONTAINER: &'static str = "model";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let vision = setup.vision().cloned().unwrap_or_else(|| unreachable!("built for a tower"));
        let tower = Tower::build(at, setup, &vision);
        let (module, mut inner) = at.inside(Label::Name("language_model"));
        let language = Decoder::build(&mut inner, setup);
        Self { vision, tower, module, language }
    }

    fn embedding(&self) -> &Embedding {
        self.language.embedding()
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let batch = setup.batch;
        let tokens = batch.tokens();
        let mut embedded = self.language.embed(setup, tape);
        let sees = !self.vision.images.is_empty();
        let seen = sees.then(|| self.tower.see(setup, &self.vision, tape));
        let mask = sees.then(|| {
            let mask = tape.fresh(tokens, 1, Category::Index);
            if self.is_mrope() {
                drop(tape.fresh(tokens, 1, Category::Index));
            }
            mask
        });
        if let (Some(Seen { features, .. }), Some(mask)) = (&seen, &mask) {
            embedded = embedded.masked_scatter(features, mask);
        }
        let deepstack: Vec<Tensor<'t>> =
            (seen.iter()).flat_map(|seen| seen.deepstack.iter().map(Tensor::joined)).collect();
        let masks = setup.sees_both_ways().then(|| {
            let blocks = tape.index_tensor(tokens);
            let mask = || tape.fresh(tokens * batch.length, 1, Category::Index);
            Masks { whole: mask(), window: mask(), _blocks: blocks }
        });
        let _streams = self
            .is_mrope()
            .then(|| tape.index_tensor(if sees { 3 * tokens } else { batch.length }));
        let hidden = tape.call_by_keyword(self.module, || {
            let (positions, rotary) = if self.is_mrope() {
                (None, self.rotate_streams(setup, tape))
            } else {
                (Some(tape.index_tensor(batch.length)), self.language.rotate(setup, tape))
            };
            let others = |index: usize| {
                let mut others = vec![rotary.cos.clone(), rotary.sin.clone()];
                others.extend(positions.clone());
                others.extend(masks.as_ref().map(|masks| masks.of(index).clone()));
                others
            };
            let mut x = embedded.clone();
            let mut _before = None;
            for index in 0..self.language.layers() {
                tape.layer_border();
                let mut arguments = others(index);
                arguments.insert(0, x.clone());
                x = tape.part(key(index), setup.switches.checkpointing, arguments, |arguments| {
                    self.language.call_layer(index, arguments)
                });
                _before = Some(x.clone());
                if let Some(features) = deepstack.get(index) {
                    x = add_to_images(&x, features, tokens);
                }
            }
            tape.layer_border();
            self.language.finish(&x)
        });
        let rest = match self.vision.kind {
            kind if kind.is_packed() => Vec::new(),
            _ => seen.iter().map(|seen| seen.features.clone()).collect(),
        };
        Hidden { states: hidden, rest }
    }

    fn layers(&self) -> usize {
        self.language.layers()
    }

    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        match index.checked_sub(TOWER_KEYS) {
            Some(block) => self.tower.call_block(block, arguments),
            None => self.language.call_layer(index, arguments),
        }
    }
}

impl VisionLanguage {
    /// The tables of three position streams (time, row, column), one row for every token of the batch.
    fn rotate_streams<'t>(&self, setup: &Setup, tape: &'t Tape) -> Rotary<'t> {
        let module = self.language.rotary();
        tape.enter_silently(module);
        let rows = setup.batch.tokens();
        let width = setup.shape.head_width;
        let table = |elements: u64| tape.fresh(elements, 4, Category::Activation);
        let streams = 3 * rows * width / 2;
        let _frequencies = {
            let _positions = table(3 * rows);
            table(streams)
        };
        let renewed = |old: Tensor<'t>, elements: u64| {
            let new = table(elements);
            drop(old);
            new
        };
        let mut cos = renewed(table(streams), streams);
        let mut sin = renewed(table(streams), streams);
        if self.vision.kind == VisionKind::Qwen3 {
            sin = renewed(sin, rows * width);
            cos = renewed(cos, rows * width);
        } else {
            let half = table(rows * width / 2);
            sin = renewed(sin, rows * width);
            let half = renewed(half, rows * width / 2);
            cos = renewed(cos, rows * width);
            drop(half);
        }
        let element = setup.training.element_bytes;
        let tables = Rotary { cos: cos.cast(element), sin: sin.cast(element) };
        tape.leave_silently(module);
        tables
    }
}

/// Gemma 3's masks: one for layers that see everything, one for those with a window.
#[derive(Debug)]
struct Masks<'t> {
    whole: Tensor<'t>,
    window: Tensor<'t>,
    /// The numbers of the images, from which both are made.
    _blocks: Tensor<'t>,
}

/// Every sixth layer sees everything.
const WHOLE_EVERY: usize = 6;

impl<'t> Masks<'t> {
    fn of(&self, layer: usize) -> &Tensor<'t> {
        if (layer + 1).is_multiple_of(WHOLE_EVERY) { &self.whole } else { &self.window }
    }
}

/// Features of a block of the tower, added to the states of image tokens in a copy of all states.
fn add_to_images<'t>(states: &Tensor<'t>, features: &Tensor<'t>, tokens: u64) -> Tensor<'t> {
    let tape = states.tape();
    let mask = tape.outside(tokens, 1);
    let states = states.copy();
    let local = {
        let rows = states.pick(&mask, features.elements());
        rows.add(features)
    };
    states.put_rows(&local, &mask)
}
