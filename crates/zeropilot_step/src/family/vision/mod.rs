//! Vision towers: from pixels to the tokens a language model reads in their place.

mod gemma3;
mod intern;
mod patch_tower;
mod projected;
mod qwen;
mod siglip;

use super::Setup;
use super::build::Builder;
use crate::model::{Module, Parameter};
use crate::shape::{Vision, VisionKind};
use crate::tape::{Tape, Tensor};

/// Checkpoint keys of the blocks of a tower start here.
pub(super) const TOWER_KEYS: usize = 1 << 16;

/// What a tower gives the language model.
#[derive(Debug)]
pub(super) struct Seen<'t> {
    /// The features that take the places of image tokens.
    pub(super) features: Tensor<'t>,
    /// Features that are added to the states of the first layers.
    pub(super) deepstack: Vec<Tensor<'t>>,
    /// What lives until the model returns.
    pub(super) _held: Vec<Tensor<'t>>,
}

/// A tower with what joins it to the language model.
#[derive(Debug)]
pub(super) enum Tower {
    Qwen(Box<qwen::Tower>),
    Gemma3(Box<gemma3::Tower>),
    Intern(Box<intern::Tower>),
    Projected(Box<projected::Tower>),
}

impl Tower {
    /// Built into the module that holds the language model too.
    pub(super) fn build(at: &mut Builder<'_>, setup: &Setup, vision: &Vision) -> Self {
        match vision.kind {
            VisionKind::Qwen2 | VisionKind::Qwen25 | VisionKind::Qwen3 => {
                Self::Qwen(Box::new(qwen::Tower::build(at, setup, vision)))
            }
            VisionKind::Gemma3 => Self::Gemma3(Box::new(gemma3::Tower::build(at, setup, vision))),
            VisionKind::Intern => Self::Intern(Box::new(intern::Tower::build(at, setup, vision))),
            VisionKind::Projected => {
                Self::Projected(Box::new(projected::Tower::build(at, setup, vision)))
            }
        }
    }

    /// Look at the images of the micro batch.
    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Seen<'t> {
        match self {
            Self::Qwen(tower) => tower.see(setup, vision, tape),
            Self::Gemma3(tower) => tower.see(setup, vision, tape),
            Self::Intern(tower) => tower.see(setup, vision, tape),
            Self::Projected(tower) => tower.see(setup, vision, tape),
        }
    }

    /// Call one block; the first argument is the hidden states.
    pub(super) fn call_block<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        match self {
            Self::Qwen(tower) => tower.call_block(index, arguments),
            Self::Gemma3(tower) => tower.call_block(index, arguments),
            Self::Intern(tower) => tower.call_block(index, arguments),
            Self::Projected(tower) => tower.call_block(index, arguments),
        }
    }
}

/// Whether the output of the tower's input layer is made to need a gradient.
fn differentiates_input(setup: &Setup, vision: &Vision) -> bool {
    let switches = setup.switches;
    (switches.checkpointing || switches.input_gradients) && vision.kind.names_input_layer()
}

/// Call all blocks of a tower, each checkpointed if layers are.
fn run_blocks<'t>(
    setup: &Setup,
    blocks: usize,
    first: Tensor<'t>,
    others: impl Fn(usize) -> Vec<Tensor<'t>>,
    call: impl Fn(usize, &[Tensor<'t>]) -> Tensor<'t>,
    mut after: impl FnMut(usize, &Tensor<'t>),
) -> Tensor<'t> {
    let tape = first.tape();
    let mut x = first;
    for index in 0..blocks {
        let mut arguments = others(index);
        arguments.insert(0, x.clone());
        let key = super::causal::key(TOWER_KEYS + index);
        x = tape
            .part(key, setup.switches.checkpointing, arguments, |arguments| call(index, arguments));
        after(index, &x);
    }
    x
}

/// A feed-forward part of two layers with a gelu between them.
#[derive(Debug)]
struct Mlp {
    module: Module,
    up: super::layer::Linear,
    down: super::layer::Linear,
    act: Module,
    is_quick: bool,
}

/// How a family names the parts of its feed-forward parts.
struct MlpNames {
    up: &'static str,
    down: &'static str,
    act: &'static str,
    /// The activation is registered before the layers.
    act_first: bool,
}

impl Mlp {
    fn build(parent: &mut Builder<'_>, names: &MlpNames, hidden: u64, inner: u64) -> Self {
        let (module, mut at) = parent.inside(crate::model::Label::Name("mlp"));
        let first = names.act_first.then(|| at.plain(names.act));
        let up = at.linear(names.up, hidden, inner, true);
        let down = at.linear(names.down, inner, hidden, true);
        let act = first.unwrap_or_else(|| at.plain(names.act));
        Self { module, up, down, act, is_quick: false }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let active = {
                let inner = self.up.call(&x);
                tape.call(self.act, &inner, |inner| {
                    if self.is_quick { inner.quick_gelu() } else { inner.activate() }
                })
            };
            self.down.call(&active)
        })
    }
}

/// A parameter that is repeated for every image, as a tensor of `elements`.
fn repeated<'t>(tape: &'t Tape, parameter: Parameter, elements: u64) -> Tensor<'t> {
    tape.parameter_as(parameter, parameter.element_bytes).expand(elements)
}
