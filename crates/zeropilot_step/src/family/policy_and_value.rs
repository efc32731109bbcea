//! A policy and its value model in one engine: the `PolicyAndValueWrapper` of TRL's PPO.

use super::part::{Part, build};
use super::{Family, Output, Program, Returns, Setup};
use crate::model::{Label, Model, Module};
use crate::tape::{Rerun, Tape, Tensor};

#[derive(Debug)]
struct PolicyAndValue {
    model: Model,
    wrapper: Module,
    policy: Box<dyn Part>,
    value: Box<dyn Part>,
}

/// Build the program of both; `None` if one of them is not a causal language model.
///
/// Layers of the value model are never run again: its trainers checkpoint those of the policy only.
pub(crate) fn build_with_value(policy: &Setup, value: &Setup) -> Option<Box<dyn Program>> {
    if !is_causal(policy) || !is_causal(value) || value.switches.checkpointing {
        return None;
    }
    let mut model = Model::default();
    let wrapper = model.add_module(None, Label::Top, &policy.training.leaves);
    let policy = build(&mut model, policy);
    let value = build(&mut model, value);
    Some(Box::new(PolicyAndValue { model, wrapper, policy, value }))
}

fn is_causal(setup: &Setup) -> bool {
    use Family::{Bert, BertClassifier, T5, Whisper};
    !matches!(setup.family, Bert | BertClassifier | T5 | Whisper)
}

impl Rerun for PolicyAndValue {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        self.policy.rerun(key, arguments)
    }
}

impl Program for PolicyAndValue {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        self.policy.forward(tape)
    }

    fn call<'t>(&self, tape: &'t Tape, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        Some(self.policy.call(tape, returns))
    }

    fn call_both<'t>(&self, tape: &'t Tape) -> Option<[Tensor<'t>; 2]> {
        tape.enter_silently(self.wrapper);
        let before = tape.kept();
        let values = self.value.values(tape);
        // The variable that holds what the value model has returned lives until both have.
        let of_value = before..tape.kept();
        let logits = self.policy.call(tape, Returns::Logits).into_iter().next()?;
        tape.drop_kept_in(of_value);
        tape.leave_silently(self.wrapper);
        Some([&logits, &values].map(|output| tape.wrap_output(self.wrapper, output)))
    }

    fn call_value<'t>(&self, tape: &'t Tape) -> Option<Tensor<'t>> {
        Some(self.value.values(tape))
    }
}
