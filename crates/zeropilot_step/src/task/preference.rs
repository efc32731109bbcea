//! Losses of answers and their log-probabilities: DPO, KTO, ORPO, CPO, reward models, GRPO.

use serde::Deserialize;

use super::Role;
use super::objective::{Stage, last_logits};
use crate::family::{FusedOutputs, Returns};
use crate::tape::{Mark, Tensor};

/// How log-probabilities of labels come from hidden states, by library and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scores {
    /// Tile by tile, without whole logits: TRL from 1.15 on.
    #[default]
    Fused,
    /// Log-softmax of 16-bit logits, sequence by sequence: TRL 0.15 to 1.14.
    RowByRow,
    /// The same of a copy of the shifted logits: TRL 0.29 to 1.0.
    RowByRowOfCopy,
    /// Log-softmax of all 16-bit logits at once: TRL to 0.14.
    AtOnce,
    /// 32-bit logits and one log-softmax of them: LLaMA-Factory.
    Wide,
}

impl<'t> Stage<'_, 't> {
    pub(super) fn dpo(&self, scores: Scores, is_last: bool) -> Option<Tensor<'t>> {
        let all = FusedOutputs { entropy: true, mean: true, top1: true };
        let returns = match is_last {
            true => last_logits(self.sizes.completion),
            false => self.returns(scores, all),
        };
        let (outputs, logs) = self.scores(scores, returns)?;
        let sums = self.per_sequence(&logs);
        let reference = self.reference(returns);
        let score = |returned| self.tape.no_grad(|| self.returned_scores(scores, returned));
        let reference = reference.and_then(score);
        self.tape.mark(Mark::Loss);
        let ratios = match &reference {
            Some((_, reference)) => sums.sub(&self.per_sequence(reference)),
            None => sums.clone(),
        };
        let loss = self.contrast(&ratios);
        drop((outputs, logs, reference));
        Some(loss)
    }

    pub(super) fn kto(&self, scores: Scores) -> Option<Tensor<'t>> {
        // The divergence from the reference is estimated on a second batch.
        let divergence = {
            let returned = self.score(self.returns(scores, FusedOutputs::default()))?;
            let score = || self.returned_scores(scores, returned);
            let (_outputs, logs) = self.tape.no_grad(score)?;
            self.per_sequence(&logs)
        };
        let all = FusedOutputs { entropy: false, mean: true, top1: false };
        let _labels = self.tape.index_tensor(self.sizes.batch.tokens());
        let (outputs, logs) = self.scores(scores, self.returns(scores, all))?;
        let sums = self.per_sequence(&logs);
        let mut references = Vec::new();
        for _ in 0..2 {
            let reference = self.reference(self.returns(scores, all));
            let score = |returned| self.tape.no_grad(|| self.returned_scores(scores, returned));
            // Of what it returned only the sum of each sequence is kept.
            let sums = reference.and_then(score).map(|(_, logs)| self.per_sequence(&logs));
            references.extend(sums);
        }
        self.tape.mark(Mark::Loss);
        let loss = self.contrast(&sums);
        drop((outputs, logs, references, divergence));
        Some(loss)
    }

    /// Two answers to each prompt, or single ones: a number for each of them becomes the loss.
    fn contrast(&self, scores: &Tensor<'t>) -> Tensor<'t> {
        let margins = scores.scale().activate();
        margins.neg().mean(margins.elements())
    }

    /// Calls the trained model for log-probabilities: what stays alive of what it returned, and they.
    fn scores(&self, scores: Scores, returns: Returns) -> Option<(Vec<Tensor<'t>>, Tensor<'t>)> {
        let returned = self.train(returns)?;
        if scores != Scores::Fused {
            self.tape.mark(Mark::Loss);
        }
        self.returned_scores(scores, returned)
    }

    fn returns(&self, scores: Scores, fused: FusedOutputs) -> Returns {
        match scores {
            Scores::Fused => Returns::LogProbabilities(fused),
            _ => Returns::Logits,
        }
    }

    /// Log-probabilities of the labels from what a model has returned, after what stays alive of that.
    fn returned_scores(
        &self,
        scores: Scores,
        mut returned: Vec<Tensor<'t>>,
    ) -> Option<(Vec<Tensor<'t>>, Tensor<'t>)> {
        let first = returned.first()?.clone();
        let (sequences, vocabulary) = (self.sizes.batch.sequences, self.sizes.vocabulary);
        // The logits of the last position predict nothing.
        let positions = first.elements() / (sequences * vocabulary).max(1);
        let predicted = sequences * positions.saturating_sub(1) * vocabulary;
        let logs = match scores {
            Scores::Fused => first,
            // Labels are rolled: also the last position is scored, and masked afterwards.
            Scores::RowByRow => first.selective_log_softmax(sequences, vocabulary),
            Scores::RowByRowOfCopy => {
                let copied = first.slice(predicted).copy();
                let logs = copied.selective_log_softmax(sequences, vocabulary);
                returned.push(copied);
                logs
            }
            Scores::AtOnce => first.slice(predicted).whole_log_softmax(vocabulary),
            Scores::Wide => {
                // Those in 32 bits take their place and stay for the metrics.
                returned = vec![first.cast_loss(4)];
                drop(first);
                returned.first()?.slice(predicted).whole_log_softmax(vocabulary)
            }
        };
        Some((returned, logs))
    }

    pub(super) fn policy_gradient(&self, scores: Scores, completion: u64) -> Option<Tensor<'t>> {
        let fused = FusedOutputs { entropy: true, ..FusedOutputs::default() };
        // Token ids and masks of what was generated.
        let generated = if self.generation.is_some() { 2 * self.sizes.batch.tokens() } else { 0 };
        let of_step = self.tape.index_tensor(generated);
        let returns = match scores {
            Scores::Fused => Returns::LogProbabilities(fused),
            _ => Returns::LastLogits(completion + 1),
        };
        let has_scored = self.generation.is_some_and(|(generation, _)| generation.scores);
        if has_scored {
            drop(self.score(returns)?);
        }
        // Of the reference only log-probabilities are kept.
        if let Some(returned) = self.reference(returns) {
            drop(self.tape.no_grad(|| self.kept_scores(scores, completion, returned)));
        }
        drop(self.visit(Role::Reward));
        // What precedes runs once in a step, what follows in every micro step: each must free what it allocates.
        drop(of_step);
        self.rolled();
        let _of_micro_step = self.tape.index_tensor(generated);
        let (outputs, logs) = if scores == Scores::Fused {
            let outputs = self.train(returns)?;
            self.tape.mark(Mark::Loss);
            let logs = outputs.first()?.clone();
            (outputs, logs)
        } else {
            let outputs = self.train(returns)?;
            self.tape.mark(Mark::Loss);
            (Vec::new(), self.kept_scores(scores, completion, outputs)?)
        };
        let ratios = logs.sub(&logs).exp();
        let weighted = ratios.scale();
        let loss = weighted.neg().mean(weighted.elements());
        drop(outputs);
        Some(loss)
    }

    /// Log-probabilities of the completion from the logits that were kept, which `logits / temperature` replaces.
    fn kept_scores(
        &self,
        scores: Scores,
        completion: u64,
        returned: Vec<Tensor<'t>>,
    ) -> Option<Tensor<'t>> {
        let first = returned.into_iter().next()?;
        let (sequences, vocabulary) = (self.sizes.batch.sequences, self.sizes.vocabulary);
        if scores == Scores::Fused {
            return Some(first);
        }
        let kept = sequences * completion.min(self.sizes.batch.length) * vocabulary;
        let scaled = first.slice(kept).scale();
        drop(first);
        Some(scaled.selective_log_softmax(sequences, vocabulary))
    }

    /// ORPO and CPO of TRL: cross entropy of the better answers, then log-probabilities of all.
    pub(super) fn without_reference(&self) -> Option<Tensor<'t>> {
        let outputs = self.train(Returns::Logits)?;
        self.tape.mark(Mark::Loss);
        let logits = outputs.first()?;
        let (sequences, vocabulary) = (self.sizes.batch.sequences, self.sizes.vocabulary);
        let positions = self.sizes.predicted() / vocabulary.max(1);
        let _labels = self.tape.index_tensor(self.sizes.batch.tokens());
        let _shifted = self.tape.index_tensor(2 * positions);
        let better = {
            let half = logits.slice(logits.elements() / 2);
            let shifted = half.slice(self.sizes.predicted() / 2);
            let copied = shifted.copy();
            self.tape.plain_cross_entropy(&copied)
        };
        let logs =
            logits.slice(self.sizes.predicted()).selective_log_softmax(sequences, vocabulary);
        let masked = logs.scale();
        let loss = self.contrast(&self.per_sequence(&masked)).add(&better);
        drop(outputs);
        Some(loss)
    }

    pub(super) fn reward(&self) -> Option<Tensor<'t>> {
        let outputs = self.train(Returns::Score)?;
        self.tape.mark(Mark::Loss);
        let [better, worse] = outputs.first()?.chunk2();
        let margins = better.sub(&worse).activate();
        let loss = margins.neg().mean(margins.elements());
        drop(outputs);
        Some(loss)
    }
}
