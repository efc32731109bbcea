//! The value model that PPO trains in one engine with the policy.

use std::sync::Arc;

use zeropilot_model::Model;
use zeropilot_units::Bytes;

use super::{Conditions, LowerError, Method, Recipe, adapter_bytes, parameters, setup, shape};
use crate::family::{Program, Setup, build, build_with_value};
use crate::head::LossHead;
use crate::shape::Batch;
use crate::task::Critic;
use crate::zero::{Loading, Parameter};

/// A value model, before its program is built with that of the policy.
#[derive(Debug)]
pub(super) struct Value {
    model: Arc<Model>,
    /// With what is trained marked, and with adapters.
    trained: Model,
    setup: Setup,
}

impl Value {
    pub(super) fn new(
        critic: &Critic,
        recipe: &Recipe,
        conditions: &Conditions,
        loading: Loading,
    ) -> Result<Self, LowerError> {
        let method = match &recipe.method {
            method if critic.as_policy => with_trained_head(method),
            _ => Method::Full,
        };
        // Its trainers checkpoint the policy only.
        let recipe = Recipe { method, checkpointing: false, ..recipe.clone() };
        let model = Arc::clone(&critic.model);
        let trained = super::trained_model(&model, &recipe.method)?;
        let base = recipe.method.base(&model);
        let mut setup = setup(&model, &trained, &recipe, conditions, loading, base)?;
        setup.head = LossHead::Score;
        Ok(Self { model, trained, setup })
    }

    /// Its parameters as the optimizer sees them, before any is packed.
    pub(super) fn parameters(&self, recipe: &Recipe) -> Vec<Parameter> {
        let element = self.setup.training.element_bytes;
        parameters(&self.trained, recipe, element, adapter_bytes(&self.setup))
    }

    /// Packs those of them that are stored in a smaller format.
    pub(super) fn pack(&self, parameters: &mut [Parameter]) {
        if let Some(quantized) = &self.setup.training.quantized {
            super::pack_all(parameters, &self.trained, &quantized.base);
        }
    }

    pub(super) fn buffers(&self, is_stage_3: bool) -> Bytes {
        super::buffers(&self.setup, &self.trained, is_stage_3)
    }

    /// Whether its program is its own, apart from its parameters.
    pub(super) fn is_known(&self) -> bool {
        shape::program(&self.model).1 && self.model.stand_in().is_none()
    }
}

/// The program of a model, and of its value model if it has one, for so many sequences.
pub(super) fn program(
    setup: &Setup,
    value: Option<&Value>,
    sequences: u64,
) -> Result<Box<dyn Program>, LowerError> {
    let of = |setup: &Setup| Setup { batch: Batch { sequences, ..setup.batch }, ..setup.clone() };
    match value {
        None => Ok(build(&of(setup))),
        Some(value) => {
            build_with_value(&of(setup), &of(&value.setup)).ok_or(LowerError::TaskOfLanguageModels)
        }
    }
}

/// PEFT trains the head of a sequence classifier whole.
fn with_trained_head(method: &Method) -> Method {
    let mut method = method.clone();
    if let Method::Lora(lora) | Method::QLora { lora, .. } = &mut method {
        lora.modules_to_save.push("score".to_owned());
    }
    method
}
