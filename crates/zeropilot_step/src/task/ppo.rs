//! PPO of TRL to 1.12: a policy and its value model in one engine, a reference, and a reward model.

use super::objective::{Ran, Stage};
use super::{Role, Sizes};
use crate::family::Returns;
use crate::tape::{Category, Mark, Tensor};

/// How PPO is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ppo {
    /// Tokens of a completion.
    pub completion: u64,
    /// Whether everything lives as long as the variables of TRL's loop hold it, from its source (0.24 to 1.12): hidden
    /// states that models return too, outputs until backward is complete, and those of the micro step before until the
    /// models have run again. Steps that were recorded let go of all that at once.
    pub as_trl: bool,
}

impl<'t> Stage<'_, 't> {
    pub(super) fn ppo(&self, it: Ppo) -> Option<Ran<'t>> {
        self.judge(it);
        self.rolled();
        let mut held = vec![self.generated(), self.sampled_logits()];
        let (before, entropy) = self.before(it);
        held.push(entropy);
        self.tape.mark(Mark::Begin);
        let [logits, values] = self.program.call_both(self.tape)?;
        drop(before);
        self.tape.mark(Mark::Loss);
        let logs = tempered_scores(&logits, it.completion, self.sizes);
        held.extend(Some(logits).filter(|_| it.as_trl));
        let ratios = logs.scale().sub(&logs.scale()).exp();
        let gains = ratios.scale();
        let policy_loss = gains.neg().mean(gains.elements());
        let errors = values.slice(self.sizes.batch.sequences * it.completion).scale().pow();
        let loss = policy_loss.add(&errors.mean(errors.elements()).scale());
        Some(Ran { loss, held })
    }

    /// What happens once for the completions of a step: reference, value model and reward model run on them.
    fn judge(&self, it: Ppo) {
        let (program, sizes) = self.rollout.unwrap_or((self.program, self.sizes));
        let _generated = self.generated();
        let _sampled = self.sampled_logits();
        self.tape.no_grad(|| {
            let reference = self.reference_by(program, Returns::Logits);
            if let Some(logits) = reference.as_ref().and_then(|returned| returned.first()) {
                drop(tempered_scores(logits, it.completion, sizes));
            }
            drop(reference);
            self.tape.drop_kept();
            self.tape.mark(Mark::Value);
            drop(program.call_value(self.tape));
            self.tape.drop_kept();
            drop(self.visit(Role::Reward));
        });
    }

    /// Token ids and masks of what was generated.
    fn generated(&self) -> Tensor<'t> {
        let tokens = if self.generation.is_some() { self.sizes.batch.tokens() } else { 0 };
        self.tape.index_tensor(2 * tokens)
    }

    /// The logits of all sampled tokens, where they are kept.
    fn sampled_logits(&self) -> Tensor<'t> {
        let Sizes { batch, vocabulary, .. } = self.sizes;
        let kept = self.generation.map_or(0, |(it, _)| it.kept_logits(batch.sequences, vocabulary));
        self.tape.fresh(kept, 4, Category::Loss)
    }

    /// What is left of the micro step before, if it is not the only one: what its models returned, and the softmax of
    /// which the entropy was computed.
    fn before(&self, it: Ppo) -> (Vec<Tensor<'t>>, Tensor<'t>) {
        let has_more = self.generation.is_some_and(|(it, _)| it.micro_batches > 1);
        let tape = self.tape;
        let element =
            self.program.model().parameters.first().map_or(2, |it| it.parameter.element_bytes);
        let Sizes { batch, vocabulary, .. } = self.sizes;
        let (logits, hidden, scored) = match it.as_trl && has_more {
            true => (
                batch.tokens() * vocabulary,
                self.sizes.hidden_states,
                batch.sequences * it.completion * vocabulary,
            ),
            false => (0, 0, 0),
        };
        let fresh = |elements| tape.fresh(elements, element, Category::Loss);
        (vec![fresh(logits), fresh(hidden)], fresh(scored))
    }
}

/// Log-probabilities of a completion from all logits, which are divided by a temperature where they are.
fn tempered_scores<'t>(logits: &Tensor<'t>, completion: u64, sizes: Sizes) -> Tensor<'t> {
    let Sizes { batch, vocabulary, .. } = sizes;
    let scored = batch.sequences * completion.min(batch.length) * vocabulary;
    let divided = logits.scale_part_in_place(scored);
    divided.slice(scored).selective_log_softmax(batch.sequences, vocabulary)
}
