//! What losses of several models make of logits.

use crate::primitive::{Kept, Saves, kept, operation};
use crate::tape::{Category, Formula, Tape, TapeOperation, Tensor};

/// Rows that are told apart; of more, several are taken together.
const MOST_ROWS: u8 = 128;

impl<'t> Tensor<'t> {
    /// Log-probabilities of one label of each position, sequence by sequence (`selective_log_softmax` of TRL, 16 bits).
    pub(super) fn selective_log_softmax(&self, sequences: u64, vocabulary: u64) -> Tensor<'t> {
        let parts = u8::try_from(sequences.max(1)).unwrap_or(MOST_ROWS).min(MOST_ROWS);
        let rows = self.unbind(parts);
        let mut gathered = Vec::new();
        // The variable of the loop holds those of one sequence until those of the next exist.
        let mut last = None;
        for row in &rows {
            let log_probabilities = row.log_softmax();
            gathered.push(log_probabilities.of_labels(vocabulary));
            last = Some(log_probabilities);
        }
        drop(last);
        self.tape().stack(&gathered)
    }

    /// The same of all sequences at once.
    pub(super) fn whole_log_softmax(&self, vocabulary: u64) -> Tensor<'t> {
        let log_probabilities = self.log_softmax();
        log_probabilities.of_labels(vocabulary)
    }

    fn of_labels(&self, vocabulary: u64) -> Tensor<'t> {
        let labels = self.tape().outside(self.elements() / vocabulary, 8);
        self.gather_elements(&labels)
    }

    /// `a - b` of 16-bit log-probabilities, `exp` of the second times it: `F.kl_div` with `log_target`.
    pub(super) fn kl_div_of_logs(&self, target: &Tensor<'t>) -> Tensor<'t> {
        let exponential = target.exp();
        let difference = target.sub(self);
        exponential.mul(&difference)
    }

    /// `F.kl_div` of log-probabilities and probabilities: `xlogy(target, target) - target * self`.
    pub(super) fn kl_div(&self, target: &Tensor<'t>) -> Tensor<'t> {
        let entropy = target.exp();
        let product = target.mul(self);
        entropy.sub(&product)
    }

    /// An exponential, or another function whose gradient needs only its result.
    pub(super) fn exp(&self) -> Tensor<'t> {
        let (elements, bytes) = (self.elements(), self.element_bytes());
        self.unary_of_loss(Formula::FreshLike, Saves::Output, elements, bytes)
    }

    /// `logsumexp` over two tensors stacked in `self`.
    pub(super) fn log_sum_exp_of_two(&self) -> Tensor<'t> {
        let (elements, bytes) = (self.elements(), self.element_bytes());
        let tape = self.tape();
        let highest = tape.fresh(elements / 2, bytes, Category::Loss);
        let shifted = tape.fresh(elements, bytes, Category::Loss);
        let inputs = [self.input()];
        let saved = Kept::new([kept(self.storage, self.needs_grad())]);
        let operation = TapeOperation {
            category: Category::Loss,
            ..operation(Formula::LogSumExp, &inputs, saved.as_slice())
        };
        let result = tape.record(&operation, elements / 2, bytes, true, &[]);
        drop((shifted, highest));
        result
    }

    /// Each sequence by itself; their gradients are put together when all have arrived.
    fn unbind(&self, count: u8) -> Vec<Tensor<'t>> {
        let inputs = [self.input()];
        let elements = self.elements() / u64::from(count);
        self.tape().many_views_of(self, elements, count, &operation(Formula::Gather, &inputs, &[]))
    }
}

impl Tape {
    /// Tensors of one size put together.
    pub(super) fn stack<'t>(&'t self, tensors: &[Tensor<'t>]) -> Tensor<'t> {
        let inputs: Vec<_> = tensors.iter().map(Tensor::input).collect();
        let elements = tensors.iter().map(Tensor::elements).sum();
        let bytes = tensors.first().map_or(2, Tensor::element_bytes);
        let operation =
            TapeOperation { category: Category::Loss, ..operation(Formula::View, &inputs, &[]) };
        self.record(&operation, elements, bytes, false, &[])
    }
}
