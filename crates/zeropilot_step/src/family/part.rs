//! A causal language model as one of the models of a program.

use super::causal::CausalLm;
use super::decoder::Decoder;
use super::vision_language::VisionLanguage;
use super::{Family, Output, Program, Returns, Setup, bloom, falcon, gpt_neox, gpt2, opt};
use crate::model::Model;
use crate::tape::{Rerun, Tape, Tensor};

/// A causal language model whose modules are among those of a program.
pub(super) trait Part: Rerun + std::fmt::Debug + Send + Sync {
    /// Run the model and its loss.
    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t>;
    /// Run the model for something else than its own loss.
    fn call<'t>(&self, tape: &'t Tape, returns: Returns) -> Vec<Tensor<'t>>;
    /// Run the body and the head, without the model around them: what the head makes of every position.
    fn values<'t>(&self, tape: &'t Tape) -> Tensor<'t>;
}

/// Add a causal language model to the modules of a program.
pub(super) fn build(model: &mut Model, setup: &Setup) -> Box<dyn Part> {
    if setup.vision().is_some() {
        return Box::new(CausalLm::<VisionLanguage>::new(model, setup));
    }
    match setup.family {
        Family::Gpt2 => Box::new(CausalLm::<gpt2::Gpt2>::new(model, setup)),
        Family::GptNeoX => Box::new(CausalLm::<gpt_neox::GptNeoX>::new(model, setup)),
        Family::Opt => Box::new(CausalLm::<opt::Opt>::new(model, setup)),
        Family::Bloom => Box::new(CausalLm::<bloom::Bloom>::new(model, setup)),
        Family::Falcon => Box::new(CausalLm::<falcon::Falcon>::new(model, setup)),
        _ => Box::new(CausalLm::<Decoder>::new(model, setup)),
    }
}

/// A program of one causal language model.
#[derive(Debug)]
pub(super) struct Alone {
    model: Model,
    part: Box<dyn Part>,
}

impl Alone {
    pub(super) fn new(model: Model, part: Box<dyn Part>) -> Self {
        Self { model, part }
    }
}

impl Rerun for Alone {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        self.part.rerun(key, arguments)
    }
}

impl Program for Alone {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        self.part.forward(tape)
    }

    fn call<'t>(&self, tape: &'t Tape, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        Some(self.part.call(tape, returns))
    }
}
