//! A plain tower with two layers behind it, as in LLaVA.
//!
//! Towers of this form differ in class tokens, norms and in which layer is taken; this one stands in for them.

use super::Seen;
use super::siglip::Siglip;
use crate::family::Setup;
use crate::family::build::Builder;
use crate::family::layer::Linear;
use crate::model::{Label, Module};
use crate::shape::Vision;
use crate::tape::{Tape, Tensor};

#[derive(Debug)]
pub(crate) struct Tower {
    siglip: Siglip,
    projector: Module,
    up: Linear,
    act: Module,
    down: Linear,
    token: u64,
}

impl Tower {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup, vision: &Vision) -> Self {
        let siglip = Siglip::build(parent, vision);
        let token = vision.hidden * vision.merge * vision.merge;
        let out = setup.shape.hidden;
        let (projector, mut at) = parent.inside(Label::Name("multi_modal_projector"));
        let up = at.linear("linear_1", token, out, true);
        let act = at.plain("act");
        let down = at.linear("linear_2", out, out, true);
        Self { siglip, projector, up, act, down, token }
    }

    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Seen<'t> {
        let states = self.siglip.see(setup, vision, tape);
        let features = tape.call(self.projector, &states, |states| {
            // Patches that become one token are brought together by a copy.
            let merged = if self.token > vision.hidden { states.copy() } else { states.view() };
            let active = {
                let inner = self.up.call(&merged);
                tape.call(self.act, &inner, |inner| inner.activate())
            };
            self.down.call(&active)
        });
        Seen { features, deepstack: Vec::new(), _held: vec![states] }
    }

    pub(super) fn call_block<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.siglip.call_block(index, &arguments[0])
    }
}
