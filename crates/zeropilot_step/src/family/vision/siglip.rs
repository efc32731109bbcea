//! SigLIP: patches with learned positions, layers that see the whole image.

use super::patch_tower::Attention;
use super::{Mlp, MlpNames, differentiates_input, run_blocks};
use crate::family::Setup;
use crate::family::build::{Builder, item};
use crate::family::layer::{Convolution, Embedding, Norm, NormKind};
use crate::model::{Label, Module};
use crate::shape::Vision;
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(super) struct Siglip {
    module: Module,
    embeddings: Module,
    patches: Convolution,
    positions: Embedding,
    encoder: Module,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    first_norm: Norm,
    attention: Attention,
    second_norm: Norm,
    mlp: Mlp,
}

const NAMES: MlpNames = MlpNames { up: "fc1", down: "fc2", act: "activation_fn", act_first: true };

impl Siglip {
    pub(super) fn build(parent: &mut Builder<'_>, vision: &Vision) -> Self {
        let hidden = vision.hidden;
        let length = vision.patches_of_an_image();
        let (module, mut at) = parent.inside(Label::Name("vision_tower"));
        let (embeddings, mut inner) = at.inside(Label::Name("embeddings"));
        let patches = inner.convolution("patch_embedding", vision.patch_values(), hidden, true);
        let positions = inner.embedding("position_embedding", length, hidden);
        let (encoder, mut inner) = at.inside(Label::Name("encoder"));
        let layers =
            (0..vision.layers).map(|index| Layer::build(&mut inner, vision, index)).collect();
        let norm = at.norm("post_layernorm", hidden, NormKind::Layer);
        if vision.has_pooling_head {
            pooling_head(&mut at, vision);
        }
        Self { module, embeddings, patches, positions, encoder, layers, norm }
    }

    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Tensor<'t> {
        let pixels = tape.outside(vision.pixels(), 4);
        tape.call_by_keyword(self.module, || {
            let x =
                tape.call(self.embeddings, &pixels, |pixels| self.embed(setup, vision, &pixels));
            let encoded = tape.call_by_keyword(self.encoder, || {
                let call =
                    |index: usize, arguments: &[Tensor<'t>]| self.layers[index].call(&arguments[0]);
                run_blocks(setup, self.layers.len(), x.clone(), |_| Vec::new(), call, |_, _| {})
            });
            self.norm.call(&encoded)
        })
    }

    pub(super) fn call_block<'t>(&self, index: usize, x: &Tensor<'t>) -> Tensor<'t> {
        self.layers[index].call(x)
    }

    fn embed<'t>(&self, setup: &Setup, vision: &Vision, pixels: &Tensor<'t>) -> Tensor<'t> {
        let tape = pixels.tape();
        let pixels = pixels.cast(setup.training.element_bytes);
        let mut x = tape.call(self.patches.module, &pixels, |pixels| {
            let seen = self.patches.apply(&pixels, vision.patches());
            if differentiates_input(setup, vision) { tape.require_grad(seen) } else { seen }
        });
        x = x.view_with_copied_gradient().view();
        let places = tape.outside(self.positions.weight.elements / vision.hidden.max(1), 8);
        let positions = self.positions.call(&places);
        x.add(&positions)
    }
}

/// Built and counted with the tower; the language model takes the states before it.
fn pooling_head(parent: &mut Builder<'_>, vision: &Vision) {
    let (hidden, inner) = (vision.hidden, vision.intermediate);
    let (_, mut at) = parent.inside(Label::Name("head"));
    at.parameter("probe", hidden);
    let (_, mut attention) = at.inside(Label::Name("attention"));
    attention.parameter("in_proj_weight", 3 * hidden * hidden);
    attention.parameter("in_proj_bias", 3 * hidden);
    attention.linear("out_proj", hidden, hidden, true);
    at.norm("layernorm", hidden, NormKind::Layer);
    Mlp::build(&mut at, &NAMES, hidden, inner);
}

impl Layer {
    fn build(parent: &mut Builder<'_>, vision: &Vision, index: u64) -> Self {
        let hidden = vision.hidden;
        let (module, mut at) = parent.inside(item("layers", index));
        Self {
            module,
            first_norm: at.norm("layer_norm1", hidden, NormKind::Layer),
            attention: Attention::siglip(&mut at, vision, vision.length_of_an_image()),
            second_norm: at.norm("layer_norm2", hidden, NormKind::Layer),
            mlp: Mlp::build(&mut at, &NAMES, hidden, vision.intermediate),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| {
            let mut h = self.first_norm.call(&x);
            h = self.attention.call(&h);
            h = x.add(&h);
            drop(x);
            let residual = h.clone();
            h = self.second_norm.call(&h);
            let branch = self.mlp.call(&h);
            residual.add(&branch)
        })
    }
}
