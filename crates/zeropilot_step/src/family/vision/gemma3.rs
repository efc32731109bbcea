//! Gemma 3: SigLIP, then an average over neighbouring patches and one product.

use super::Seen;
use super::siglip::Siglip;
use crate::family::Setup;
use crate::family::build::Builder;
use crate::family::layer::{Norm, NormKind};
use crate::model::{Label, Module, Parameter};
use crate::primitive::LinearKind;
use crate::shape::Vision;
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(crate) struct Tower {
    siglip: Siglip,
    projector: Projector,
}

#[derive(Debug)]
struct Projector {
    module: Module,
    weight: Parameter,
    norm: Norm,
    pool: Module,
}

impl Tower {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup, vision: &Vision) -> Self {
        let siglip = Siglip::build(parent, vision);
        let (module, mut at) = parent.inside(Label::Name("multi_modal_projector"));
        let weight = at.parameter("mm_input_projection_weight", vision.hidden * setup.shape.hidden);
        let norm = at.norm("mm_soft_emb_norm", vision.hidden, NormKind::Gemma);
        let pool = at.plain("avg_pool");
        Self { siglip, projector: Projector { module, weight, norm, pool } }
    }

    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Seen<'t> {
        let states = self.siglip.see(setup, vision, tape);
        let features = tape.call(self.projector.module, &states, |states| {
            let Projector { weight, norm, pool, .. } = &self.projector;
            let mut x = states.view().copy();
            let pooled = vision.tokens() * vision.hidden;
            x = tape.call(*pool, &x, |x| x.average_pool(pooled));
            x = x.view();
            x = norm.call(&x);
            x = x.view();
            if vision.images.len() > 1 {
                x = x.copy();
            }
            x.linear(*weight, None, LinearKind::Product, vision.hidden)
        });
        Seen { features, deepstack: Vec::new(), _held: vec![states] }
    }

    pub(super) fn call_block<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.siglip.call_block(index, &arguments[0])
    }
}
