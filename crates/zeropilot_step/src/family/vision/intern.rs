//! `InternVL`: a vision transformer with layer scales, four patches shuffled into one token, a projector.

use super::patch_tower::Attention;
use super::{Mlp, MlpNames, Seen, differentiates_input, repeated, run_blocks};
use crate::family::Setup;
use crate::family::build::{Builder, item};
use crate::family::layer::{Convolution, Linear, Norm, NormKind};
use crate::model::{Label, Module, Parameter};
use crate::shape::Vision;
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(crate) struct Tower {
    module: Module,
    embeddings: Embeddings,
    encoder: Module,
    layers: Vec<Layer>,
    norm: Module,
    projector: Projector,
}

#[derive(Debug)]
struct Embeddings {
    module: Module,
    class_token: Parameter,
    positions: Parameter,
    patches: Module,
    projection: Convolution,
    dropout: Module,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    scales: (Parameter, Parameter),
    attention: Attention,
    mlp: Mlp,
    norms: (Norm, Norm),
    dropout: Module,
}

#[derive(Debug)]
struct Projector {
    module: Module,
    norm: Norm,
    up: Linear,
    act: Module,
    down: Linear,
}

impl Tower {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup, vision: &Vision) -> Self {
        let hidden = vision.hidden;
        let (module, mut at) = parent.inside(Label::Name("vision_tower"));
        let embeddings = Embeddings::build(&mut at, vision);
        let (encoder, mut inner) = at.inside(Label::Name("encoder"));
        let layers =
            (0..vision.layers).map(|index| Layer::build(&mut inner, vision, index)).collect();
        let norm = at.plain("layernorm");
        let (projector, mut at) = parent.inside(Label::Name("multi_modal_projector"));
        let token = hidden * vision.merge * vision.merge;
        let out = setup.shape.hidden;
        let projector = Projector {
            module: projector,
            norm: at.norm("layer_norm", token, NormKind::Layer),
            up: at.linear("linear_1", token, out, true),
            act: at.plain("act"),
            down: at.linear("linear_2", out, out, true),
        };
        Self { module, embeddings, encoder, layers, norm, projector }
    }

    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Seen<'t> {
        let pixels = tape.outside(vision.pixels(), 4).cast(setup.training.element_bytes);
        let states = tape.call_by_keyword(self.module, || {
            let embedded = self.embeddings.call(setup, vision, &pixels);
            let encoded = tape.call(self.encoder, &embedded, |x| {
                let call =
                    |index: usize, arguments: &[Tensor<'t>]| self.layers[index].call(&arguments[0]);
                run_blocks(setup, self.layers.len(), x, |_| Vec::new(), call, |_, _| {})
            });
            tape.call(self.norm, &encoded, |x| x)
        });
        let tokens = {
            let mut x = states.slice(vision.patches() * vision.hidden);
            x = if vision.images.len() > 1 { x.copy() } else { x.view() };
            x = x.view().copy();
            x = x.view().copy();
            x.view()
        };
        let features = tape.call(self.projector.module, &tokens, |x| {
            let mut x = x;
            x = self.projector.norm.call(&x);
            x = self.projector.up.call(&x);
            x = tape.call(self.projector.act, &x, |x| x.activate());
            self.projector.down.call(&x)
        });
        drop(pixels);
        Seen { features, deepstack: Vec::new(), _held: vec![states] }
    }

    pub(super) fn call_block<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.layers[index].call(&arguments[0])
    }
}

impl Embeddings {
    fn build(parent: &mut Builder<'_>, vision: &Vision) -> Self {
        let hidden = vision.hidden;
        let (module, mut at) = parent.inside(Label::Name("embeddings"));
        let class_token = at.parameter("cls_token", hidden);
        let positions =
            at.parameter("position_embeddings", (vision.patches_of_an_image() + 1) * hidden);
        let (patches, mut inner) = at.inside(Label::Name("patch_embeddings"));
        let projection = inner.convolution("projection", vision.patch_values(), hidden, true);
        let dropout = at.plain("dropout");
        Self { module, class_token, positions, patches, projection, dropout }
    }

    fn call<'t>(&self, setup: &Setup, vision: &Vision, pixels: &Tensor<'t>) -> Tensor<'t> {
        let tape = pixels.tape();
        tape.call(self.module, pixels, |pixels| {
            let mut x = tape.call(self.patches, &pixels, |pixels| {
                let seen = self.projection.call(&pixels, vision.patches());
                let seen = seen.view_with_copied_gradient().view();
                if differentiates_input(setup, vision) { tape.require_grad(seen) } else { seen }
            });
            let class =
                repeated(tape, self.class_token, vision.images.len() as u64 * vision.hidden);
            x = class.cat(&x);
            x = x.add_parameter(self.positions);
            tape.call(self.dropout, &x, |x| x)
        })
    }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, vision: &Vision, index: u64) -> Self {
        let hidden = vision.hidden;
        let kind = if vision.has_rms_norms { NormKind::Rms } else { NormKind::Layer };
        let names = MlpNames { up: "fc1", down: "fc2", act: "activation_fn", act_first: true };
        let (module, mut at) = parent.inside(item("layer", index));
        let scales = (at.parameter("lambda_1", hidden), at.parameter("lambda_2", hidden));
        let attention = Attention::intern(&mut at, vision, vision.patches_of_an_image() + 1);
        let mlp = Mlp::build(&mut at, &names, hidden, vision.intermediate);
        let norms =
            (at.norm("layernorm_before", hidden, kind), at.norm("layernorm_after", hidden, kind));
        Self { module, scales, attention, mlp, norms, dropout: at.plain("dropout") }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let mut attended = {
                let normed = self.norms.0.call(&x);
                self.attention.call(&normed)
            };
            attended = attended.mul_parameter(self.scales.0);
            let mut x = x;
            x = attended.add(&x);
            let mut out = self.norms.1.call(&x);
            out = self.mlp.call(&out);
            out = tape.call(self.dropout, &out, |out| out);
            out = out.mul_parameter(self.scales.1);
            out.add(&x)
        })
    }
}
